"""What tracing costs in machine instructions: transactions off, with none and 1 % sampled.

On a shared machine the processor time of two clients that do the same differs by more than 1 %
sampled costs; the instructions that they execute differ by 0.2 %. Client and services, each a
process of its own, run under Valgrind, whose callgrind counts what they execute outside of the
kernel, in all their threads: Python, protobuf, SQLite, the export.

All is some 40 times as slow there, so pauses and time-outs are as much longer, and spans are
exported every 90 s, which is still twice as often as every 5 s. A turn begins after the first
export, which also connects to the collector.

How many transactions are recorded is up to chance: what each of them takes is counted, and 1 % is
what a hundredth of it makes.
"""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from bench.measure import Figure
from bench.tracing.client import PACE
from bench.tracing.sampled import NONE, OFF, ONE_PERCENT, collector
from bench.turns import PRODUCERS
from semel_local import ProcessCluster
from semel_local.layout import Role

_SAMPLED = "1 %"
_KINDS: Mapping[str, Mapping[str, str]] = {
    "off": OFF,
    "none": NONE,
    _SAMPLED: ONE_PERCENT,
    "off again": OFF,
}
_EXPORT_INTERVAL_S = 90
_REST_S = _EXPORT_INTERVAL_S + 10
"""Before the turn, so that nothing of before is exported in it, and after it, so that all that it
leaves to be exported counts."""
UNIT = "thousand/transaction"
_SLOW: Mapping[Role, Mapping[str, str | int]] = {
    Role.BROKER: {"superseded_inquiry_delay_ms": 60_000}
}


@dataclass(frozen=True, slots=True)
class Turn:
    """What one kind's turn took."""

    thousands: float
    """Instructions for a transaction."""
    recorded: float
    """The share of its transactions that were recorded."""


async def instructions() -> list[Figure]:
    """Count each once. Raises SystemExit where there is no Valgrind."""
    with collector() as export:
        often = {"OTEL_BSP_SCHEDULE_DELAY": str(_EXPORT_INTERVAL_S * 1000)}
        turns = {
            name: await count_turn({**sampling, **export, **often} if sampling else {})
            for name, sampling in _KINDS.items()
        }
    off, none = turns["off"].thousands, turns["none"].thousands
    recorded = (turns[_SAMPLED].thousands - none) / turns[_SAMPLED].recorded
    counts = {name: turn.thousands for name, turn in turns.items()}
    counts[_SAMPLED] = none + recorded / 100
    return [
        *(Figure(name=name, value=count, unit=UNIT) for name, count in counts.items()),
        Figure(name="recorded: more than none", value=recorded, unit=UNIT),
        *(
            Figure(
                name=f"{name}: more",
                value=100 * (count / off - 1),
                unit="%",
                goal="≤ 3" if name == _SAMPLED else "",
            )
            for name, count in counts.items()
            if name != "off"
        ),
    ]


async def count_turn(
    environment: Mapping[str, str], coordinators: Mapping[str, str | int] = MappingProxyType({})
) -> Turn:
    """Return what new processes take for a transaction; ``coordinators`` are settings of theirs.

    Raises SystemExit where there is no Valgrind.
    """
    if shutil.which("callgrind_control") is None:
        raise SystemExit("there is no callgrind_control: install Valgrind")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # The order of a set must not depend on chance.
        stack.enter_context(patch.dict(os.environ, {**environment, "PYTHONHASHSEED": "0"}))
        with _counting_python(folder):
            settings = {**_SLOW, Role.COORDINATOR: coordinators}
            cluster = ProcessCluster(folder / "cluster", settings=settings)
            await stack.enter_async_context(cluster)
            client = await stack.enter_async_context(_client(cluster.bootstrap))
        await asyncio.sleep(_REST_S)
        pids = [*cluster.pids().values(), client.pid]
        _tell(pids, "--instr=on")
        recorded = await _turn(client)
        await asyncio.sleep(_REST_S)
        _tell(pids, "--dump")
        transactions = PRODUCERS * PACE.each
        counted = sum(_counted(folder, pid) for pid in pids)
        return Turn(counted / transactions / 1000, recorded / transactions)


async def _turn(client: Process) -> int:
    """Return how many transactions were recorded."""
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(b"turn\n")
    return int(await client.stdout.readline())


@asynccontextmanager
async def _client(bootstrap: str) -> AsyncIterator[Process]:
    """Run the client; yields when it is warm."""
    command = (sys.executable, "-m", "bench.tracing.client", bootstrap)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await process.stdout.readline()
        yield process
    finally:
        process.stdin.close()
        await process.wait()


@contextmanager
def _counting_python(folder: Path) -> Iterator[None]:
    """Let Python that is started meanwhile run under callgrind, which does not count at first."""
    counting = folder / "python"
    callgrind = "valgrind --quiet --tool=callgrind --instr-atstart=no --log-file=/dev/null"
    output, python = shlex.quote(f"{folder}/counts.%p"), shlex.quote(sys.executable)
    command = f'exec {callgrind} --callgrind-out-file={output} {python} "$@"'
    counting.write_text(f"#!/bin/sh\n{command}\n")
    counting.chmod(0o755)
    with patch.object(sys, "executable", str(counting)):
        yield


def _tell(pids: Iterable[int], order: str) -> None:
    """Tell the callgrind of each process; returns when all have done it."""
    for pid in pids:
        command = ["callgrind_control", order, str(pid)]
        subprocess.run(command, check=True, capture_output=True)


def _counted(folder: Path, pid: int) -> int:
    """Return the count in the dump of a process."""
    (dump,) = folder.glob(f"counts.{pid}.*")
    (count,) = re.findall(r"^summary: (\d+)$", dump.read_text(), re.MULTILINE)
    return int(count)
