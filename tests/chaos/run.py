"""One run: a cluster starts, clients work, faults come and go, and all must come to its end."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from semel_checker.check import check
from semel_checker.history import History, Invoked, Returned
from semel_checker.names import Outcome
from semel_checker.observations import FaultsOver, RunStarted, TopicMade
from semel_checker.operations import EndJoint, EndTransaction
from semel_checker.storage import write_history
from simulation.recorded import Records
from simulation.workloads import CLIENT, TRANSACTION_TIMEOUT_MS

from aiosemel import SemelClient
from chaos.clients import NAMES, TOPICS, Clients
from chaos.database import open_database
from chaos.ending import Ending
from chaos.faults import PRIMARY, Faults
from chaos.progress import longest_standstill, pauses_after
from chaos.recording import events_path, merge, open_records
from chaos.stage import Stage

CALM_S = 5.0
"""How long clients work on at least after the last fault."""
FINISH_S = 60.0
"""How long a client may take to end the transactions that it has begun."""
SLACK_MS = 15_000
PROGRESS_MS = 60_000

Engine: TypeAlias = Literal["sqlite", "postgres"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a run."""

    seed: int
    faults: Counter[str]
    kills: Counter[str]
    has_disk_faults: bool
    """False where there is no C compiler, or no Linux."""
    failed_calls: Counter[str]
    """How many calls of services the disks have let fail."""
    service_ends: int
    client_ends: int
    operations: int
    outcomes: Counter[str]
    committed: int
    aborted: int
    joint_versions: int
    """How many versions of joint transactions are known to have committed."""
    standstill_ms: int
    """The longest time in which a partition took nothing, from the end of the last fault on."""
    fail_overs_ms: tuple[int, ...]
    """For each primary that was killed: the time to the next commit that began afterwards."""
    history: Path
    violations: tuple[str, ...] = field(default=())


async def run(
    folder: Path,
    *,
    seed: int,
    window_s: float,
    interval_s: float,
    calm_s: float = CALM_S,
    names: Sequence[str] = NAMES,
    engine: Engine = "sqlite",
) -> Report:
    """Make a run in a folder, which keeps its history, and everything else that is left."""
    random = Random(seed)
    began_ns = time.monotonic_ns()
    records = open_records(events_path(folder, "chaos"), began_ns=began_ns, first=0)
    problems: list[str] = []
    async with AsyncExitStack() as stack:
        database = None
        if engine == "postgres":
            database = await stack.enter_async_context(open_database())
        stage = Stage(folder, database=database)
        await stack.enter_async_context(stage)
        own = Random(random.getrandbits(64))
        async with (
            Clients(
                folder, names, bootstrap=stage.bootstrap, began_ns=began_ns, random=own
            ) as clients,
            SemelClient(stage.bootstrap, options=CLIENT) as operator,
        ):
            await _begin(operator, records, f"make chaos SECONDS={window_s:g} SEED={seed}")
            await clients.start_all()
            faults = Faults(stage, clients, records.recorder, operator)
            await faults.inject(
                Random(random.getrandbits(64)), window_s=window_s, interval_s=interval_s
            )
            records.recorder.observed("chaos", FaultsOver())
            clients.calm()
            await stage.wait_ready()
            ending = Ending(operator, records)
            await asyncio.sleep(calm_s)
            await ending.wait_taken(PROGRESS_MS / 1000)
            problems += await ending.wait_consumed()
            late = await clients.finish(FINISH_S)
            problems += [f"{name} did not end in {FINISH_S:g} s" for name in late]
            problems += await ending.wait_settled()
            await ending.read_all()
        problems += [*stage.problems, *clients.problems]
        problems += _broken_handlers({**stage.log_paths(), **clients.log_paths()})
    history = merge(folder)
    write_history(folder / "history.jsonl", history)
    problems += [str(each) for each in check(history)]
    return _report(
        folder, history, problems, seed=seed, faults=faults, stage=stage, clients=clients
    )


async def _begin(operator: SemelClient, records: Records, name: str) -> None:
    started = RunStarted(
        name=name,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        slack_ms=SLACK_MS,
        progress_ms=PROGRESS_MS,
    )
    records.recorder.observed("chaos", started)
    for topic, partitions in TOPICS.items():
        await operator.admin().create_topic(topic, partitions=partitions)
        records.recorder.observed("chaos", TopicMade(topic=topic, partitions=partitions))


def _broken_handlers(logs: dict[str, Path]) -> list[str]:
    """Return errors in logs that no fault explains: handlers and tasks that broke down."""
    signs = ("handler failed", "background work failed", " ERROR aiosemel", "Traceback")
    found = []
    for name, path in logs.items():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines):
            if any(sign in line for sign in signs):
                excerpt = "\n    ".join(lines[number : number + 30])
                found.append(f"{name} logs:\n    {excerpt}")
                break
    return found


def _report(
    folder: Path,
    history: History,
    problems: list[str],
    *,
    seed: int,
    faults: Faults,
    stage: Stage,
    clients: Clients,
) -> Report:
    returns = [event.what for event in history if isinstance(event.what, Returned)]
    failed: Counter[str] = Counter()
    for disk in stage.disks.values():
        failed.update(disk.failed._asdict())
    ends = _ends(history)
    return Report(
        seed=seed,
        faults=faults.injected,
        kills=faults.kills,
        has_disk_faults=stage.has_disk_faults,
        failed_calls=failed,
        service_ends=stage.ends,
        client_ends=clients.ends,
        operations=sum(isinstance(event.what, Invoked) for event in history),
        outcomes=Counter(str(returned.outcome) for returned in returns),
        committed=ends[True],
        aborted=ends[False],
        joint_versions=len(_joint_versions(history)),
        standstill_ms=longest_standstill(history),
        fail_overs_ms=tuple(pauses_after(history, PRIMARY)),
        history=folder / "history.jsonl",
        violations=tuple(problems),
    )


def _joint_versions(history: History) -> set[int]:
    asked: dict[int, int] = {}
    found: set[int] = set()
    for event in history:
        match event.what:
            case Invoked(op=op, operation=EndJoint(commit=True, joint=joint)):
                asked[op] = joint.txn_version
            case Returned(op=op, outcome=Outcome.OK) if op in asked:
                found.add(asked[op])
            case _:
                pass
    return found


def _ends(history: History) -> Counter[bool]:
    """Count the transactions that are known to have committed, or been aborted."""
    asked: dict[int, bool] = {}
    counts: Counter[bool] = Counter()
    for event in history:
        match event.what:
            case Invoked(op=op, operation=EndTransaction(commit=commit)):
                asked[op] = commit
            case Returned(op=op, outcome=Outcome.OK) if op in asked:
                counts[asked[op]] += 1
            case Returned(op=op, outcome=Outcome.FAILED) if op in asked:
                counts[False] += 1
            case _:
                pass
    return counts
