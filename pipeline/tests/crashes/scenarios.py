"""The scenarios: what crashes when, and whether each record is in the topic once.

Each runs the job again and again from its checkpoint, as its operator would, until a run comes to
its end; then it compares the topic to the expected records, one by one.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cluster import Cluster

from aiosemel import IsolationLevel, OffsetSpec
from crashes.faults import Plan
from crashes.job import STOPPED, TIMEOUT_MS, fill
from crashes.processes import Run, standalone

BATCHES = 6
ROWS = 200
RUNS_MAX = 25
SLACK_S = 15.0
"""What brokers and coordinator take to notice a time-out, and to tell of it, at the most."""
_CLUSTER_CONF = (
    "spark.speculation=true",
    "spark.speculation.interval=100ms",
    "spark.speculation.multiplier=1.5",
    "spark.speculation.quantile=0.5",
    "spark.speculation.minTaskRuntime=100ms",
    "spark.executor.cores=2",
    "spark.executor.memory=512m",
    "spark.task.maxFailures=20",
    "spark.deploy.maxExecutorRetries=-1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a scenario."""

    name: str
    missing: int
    doubled: int
    runs: int
    notes: Counter[str]
    """The fault, and the reaction of the sink."""
    discarded: int
    """Records that were written and never became visible."""
    is_control: bool = False
    """It must fail: a harness that finds no duplicates there would find none anywhere."""

    @property
    def is_right(self) -> bool:
        """Whether this is the expected view."""
        if self.is_control:
            return self.doubled > 0 and not self.missing
        return not self.missing and not self.doubled


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where one scenario plays."""

    name: str
    semel: Cluster
    source: str
    folder: Path
    random: Random
    batches: int = BATCHES
    rows: int = ROWS
    runs: list[int | None] = field(default_factory=list)
    """The exit statuses so far."""

    def some(self, count: int) -> tuple[int, ...]:
        """Return the numbers of some micro-batches."""
        return tuple(self.random.sample(range(self.batches), count))

    def plan(self, **faults: object) -> Plan:
        """Return a plan of these faults."""
        seed = self.random.randrange(1 << 30)
        return Plan(folder=str(self.folder), seed=seed, **faults)  # type: ignore[arg-type]  # as the names say

    def start(self, topic: str, plan: Plan, *more: str) -> Run:
        """Start the job."""
        return Run(
            [
                *("--source", self.source, "--rows", str(self.rows), "--topic", topic),
                *("--bootstrap", self.semel.bootstrap, "--plan", plan.to_json()),
                *("--checkpoint", str(self.folder / "checkpoint"), *more),
            ],
            self.folder / "log",
        )

    def until_done(self, topic: str, plan: Plan, *more: str) -> None:
        """Run the job until a run comes to its end."""
        while len(self.runs) < RUNS_MAX:
            status = self.run(self.start(topic, plan, *more))
            if status == 0 or status is None:
                return

    def run(self, run: Run, kill_after_s: float | None = None) -> int | None:
        """Wait for a run to end, or kill it."""
        status = run.wait() if kill_after_s is None else run.wait(kill_after_s)
        if status is None:
            run.kill()
        self.runs.append(status)
        return status


Play = Callable[[Stage, str], None]


def plain(stage: Stage, topic: str) -> None:
    """Nothing crashes."""
    stage.until_done(topic, stage.plan())


def kills_before_the_decision(stage: Stage, topic: str) -> None:
    """The driver is killed when all is written, and nothing is decided."""
    stage.until_done(topic, stage.plan(kill_before_commit=stage.some(2)))


def kills_after_the_decision(stage: Stage, topic: str) -> None:
    """The driver is killed when all is decided, and Spark has not noted it."""
    stage.until_done(topic, stage.plan(kill_after_commit=stage.some(2)))


def task_failures(stage: Stage, topic: str) -> None:
    """Tasks fail before, while and after they write; their processes end."""
    stage.until_done(topic, stage.plan(fail_task=15, exit_task=10))


def all_of_it(stage: Stage, topic: str) -> None:
    """Kills before and after the decision, lost answers, failing tasks."""
    plan = stage.plan(
        kill_before_commit=stage.some(1),
        kill_after_commit=stage.some(1),
        fail_after_commit=stage.some(2),
        fail_task=10,
        exit_task=5,
    )
    stage.until_done(topic, plan)


def stops(stage: Stage, topic: str) -> None:
    """The query is stopped, and started again."""
    plan = stage.plan()
    for _ in range(2):
        if stage.run(stage.start(topic, plan, "--stop-after", "3")) != STOPPED:
            return
    stage.until_done(topic, plan)


def kills_from_outside(stage: Stage, topic: str) -> None:
    """All processes of the job are killed, at any time."""
    plan = stage.plan()
    first_batch = stage.folder / "checkpoint" / "offsets" / "0"
    for _ in range(2):
        run = stage.start(topic, plan)
        while not first_batch.exists():
            if run.wait(0.2) is not None:
                break
        if stage.run(run, stage.random.uniform(5, 20)) == 0:
            return
    stage.until_done(topic, plan)


def zombie(stage: Stage, topic: str) -> None:
    """A driver sleeps in its commit while another one goes on from the checkpoint."""
    plan = stage.plan(stall_in_commit=2)
    stalled = stage.folder / "struck stall 2"
    while True:
        old = stage.start(topic, plan)
        while not stalled.exists() and (status := old.wait(0.2)) is None:
            pass  # It has not come so far.
        if stalled.exists():
            break
        stage.runs.append(status)
        if status == 0:
            return
    stage.until_done(topic, plan)
    (stage.folder / "awake").touch()
    if stage.run(old) == 0:
        stage.semel.send(topic, [b"the zombie has come to its end, and noted it"])


def abandoned(stage: Stage, topic: str) -> None:
    """A job is killed, and not started again until readers have been released by the time-out."""
    plan = stage.plan(kill_before_commit=(0,))
    while not (stage.folder / "struck kill before commit 0").exists():
        if stage.run(stage.start(topic, plan)) == 0:
            return
    killed_s = time.monotonic()
    assert not _is_settled(stage.semel, topic), "the transaction of the killed job is open"
    while not _is_settled(stage.semel, topic):
        time.sleep(0.1)
    waited_s = time.monotonic() - killed_s
    plan.note(f"released after {waited_s:.0f} s")
    assert waited_s < TIMEOUT_MS / 1_000 + SLACK_S, waited_s
    stage.until_done(topic, plan)


def long_batches(stage: Stage, topic: str) -> None:
    """Nothing crashes, and a task takes longer than the time-out when it has written all."""
    plan = stage.plan(straggle=100, straggle_s=25.0)
    stage.until_done(topic, plan, "--timeout-ms", "10000")
    if len(stage.runs) > 1:
        stage.semel.send(topic, [b"a transaction that was worked on has timed out"])


def _is_settled(semel: Cluster, topic: str) -> bool:
    """Whether no transaction holds back the readers of a topic."""
    admin = semel.client.admin()
    partitions = dict.fromkeys(((topic, number) for number in range(4)), OffsetSpec.LATEST)
    committed = semel.call(
        admin.list_offsets(partitions, isolation_level=IsolationLevel.READ_COMMITTED)
    )
    return committed == semel.call(admin.list_offsets(partitions))


def for_each_batch(stage: Stage, topic: str) -> None:
    """Kills and failing tasks within foreachBatch."""
    plan = stage.plan(
        kill_before_commit=stage.some(1), kill_after_commit=stage.some(1), fail_task=10
    )
    stage.until_done(topic, plan, "--for-each-batch")


def cluster_with_stragglers(stage: Stage, topic: str) -> None:
    """Two workers, and speculation: losers have written everything."""
    _on_cluster(stage, topic, stage.plan(straggle=30))


def cluster_with_killed_executors(stage: Stage, topic: str) -> None:
    """The same, while executors are killed and tasks fail."""
    plan = stage.plan(straggle=20, fail_task=5, kill_executor=stage.some(2))
    _on_cluster(stage, topic, plan)


def _on_cluster(stage: Stage, topic: str, plan: Plan) -> None:
    with standalone(stage.folder, stage.random) as master:
        conf = [word for each in _CLUSTER_CONF for word in ("--conf", each)]
        stage.until_done(topic, plan, "--master", master, *conf)


def without_versions(stage: Stage, topic: str) -> None:
    """The negative control: each run has an id of its own, so the cluster cannot know a repeat."""
    plan = stage.plan(kill_after_commit=stage.some(2), forget_versions=True)
    stage.until_done(topic, plan)


SCENARIOS: dict[str, Play] = {
    "plain": plain,
    "k1": kills_before_the_decision,
    "k2": kills_after_the_decision,
    "taskfail": task_failures,
    "mixed": all_of_it,
    "stop": stops,
    "extkill": kills_from_outside,
    "zombie": zombie,
    "abandoned": abandoned,
    "long": long_batches,
    "foreachbatch": for_each_batch,
    "cluster": cluster_with_stragglers,
    "clusterkill": cluster_with_killed_executors,
    "naive": without_versions,
}


def run_scenario(stage: Stage, play: Play | None = None) -> Report:
    """Play a scenario, that of the stage's name or another, and look at its topic."""
    stage.folder.mkdir(parents=True)
    expected = fill(stage.semel, stage.source, batches=stage.batches, rows=stage.rows)
    topic = stage.semel.topic(4)
    (play or SCENARIOS[stage.name])(stage, topic)
    found = Counter(stage.semel.values(topic))
    wanted = Counter[bytes | None](expected)
    notes = stage.folder / "notes"
    written = len(stage.semel.values(topic, IsolationLevel.READ_UNCOMMITTED))
    return Report(
        name=stage.name,
        missing=(wanted - found).total(),
        doubled=(found - wanted).total(),
        runs=len(stage.runs),
        notes=Counter(_lines(notes)),
        discarded=written - found.total(),
        is_control=stage.name == "naive",
    )


def _lines(path: Path) -> Sequence[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else ()
