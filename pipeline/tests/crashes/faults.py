"""The connector with faults in it, as a data source of its own: ``crashing``.

Which faults there are is planned before; where each one strikes is said by the plan and the seed,
so that a run of a scenario can be done again. Each planned kill strikes once: it leaves a file.
"""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_semel import SemelDataSource
from pyspark_semel.sink import transaction_name
from pyspark_semel.sink.batch import BatchWriter
from pyspark_semel.sink.stream import StreamWriter
from pyspark_semel.sink.write import Written, receipts_of, task_name, task_property, write

PLAN = "plan"
STALL_S = 900.0
"""How long a driver sleeps at the most; another one starts and finishes meanwhile."""


class PlannedError(Exception):
    """A failure on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes wrong. Numbers are those of micro-batches, percents are of tasks."""

    folder: str
    """Where faults leave notes."""
    seed: int = 0
    kill_before_commit: tuple[int, ...] = ()
    kill_after_commit: tuple[int, ...] = ()
    fail_before_commit: tuple[int, ...] = ()
    fail_after_commit: tuple[int, ...] = ()
    """The commit has taken effect, and its answer is lost."""
    stall_in_commit: int | None = None
    """The driver sleeps before this commit until there is a file ``awake``."""
    fail_task: int = 0
    exit_task: int = 0
    """The worker process ends at once."""
    kill_executor: tuple[int, ...] = ()
    straggle: int = 0
    """A task that has written everything is slow to say so."""
    straggle_s: float = 6.0
    forget_versions: bool = False
    """The negative control: every run commits under an id of its own."""

    def to_json(self) -> str:
        """Return it as an option."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        values = json.loads(text)
        named = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**named)  # type: ignore[arg-type]  # what ``to_json`` wrote

    def note(self, what: str) -> None:
        """Leave a note for the report."""
        with (Path(self.folder) / "notes").open("a", encoding="utf-8") as notes:
            notes.write(f"{what}\n")

    def is_first(self, what: str) -> bool:
        """Whether this is the first time that something planned happens; notes it then."""
        try:
            (Path(self.folder) / f"struck {what}").touch(exist_ok=False)
        except FileExistsError:
            return False
        self.note(what.rpartition(" ")[0])
        return True


class CrashingSource(SemelDataSource):
    """Spark's data source, with one option more: the plan."""

    @classmethod
    def name(cls) -> str:
        return "crashing"

    def streamWriter(  # noqa: N802 - Spark's
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 - Spark's
    ) -> StreamWriter:
        return CrashingStreamWriter(*_split(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        plan, options = _split(self.options)
        return CrashingBatchWriter(plan, options, schema, overwrite=overwrite)


class CrashingStreamWriter(StreamWriter):
    """The writer of a stream."""

    def __init__(self, plan: Plan, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        handle = transaction_name.of_stream(self._options, task_property)
        if self._plan.forget_versions:
            handle = replace(handle, transactional_id=f"naive-{handle.run}", owner=handle.run)
        task = _Task(self._plan)
        written = write(self._options, handle, task.reading(iterator), name=task_name())
        task.written()
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        _before_commit(self._plan, messages, batchId)
        super().commit(messages, batchId)
        _after_commit(self._plan, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        self._plan.note("abort")
        super().abort(messages, batchId)


class CrashingBatchWriter(BatchWriter):
    """The writer of a batch, within foreachBatch."""

    def __init__(
        self, plan: Plan, options: Mapping[str, str], schema: StructType, *, overwrite: bool
    ) -> None:
        super().__init__(options, schema, overwrite=overwrite)
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = _Task(self._plan)
        written = super().write(task.reading(iterator))
        task.written()
        return written

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        batch_id = receipts_of(messages)[0].handle.txn_version
        _before_commit(self._plan, messages, batch_id)
        super().commit(messages)
        _after_commit(self._plan, batch_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._plan.note("abort")
        super().abort(messages)


class _Task:
    """The fate of one attempt of a task."""

    def __init__(self, plan: Plan) -> None:
        context = TaskContext.get()
        assert context is not None
        self._plan = plan
        self._batch = int(task_property("streaming.sql.batchId") or 0)
        self._attempt = context.attemptNumber()
        run = task_property("spark.jobGroup.id")
        chance = Random(f"{plan.seed} {run} {self._batch} {context.partitionId()} {self._attempt}")
        self._percent = chance.uniform(0, 100)
        self._when = chance.choice(("before", "mid", "after"))

    def reading(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass the input on, or fail."""
        self._strike("before")
        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            self._strike("mid")
            yield batch.slice(half)

    def written(self) -> None:
        """Be slow, fail, or take the executor along."""
        self._strike("after")
        batch = self._batch
        if batch in self._plan.kill_executor and self._plan.is_first(f"executor killed {batch}"):
            _kill_java()
        if not self._attempt and self._percent > 100 - self._plan.straggle:
            self._plan.note("straggler")
            time.sleep(self._plan.straggle_s)

    def _strike(self, when: str) -> None:
        plan = self._plan
        if when != self._when:
            return
        if self._percent < plan.fail_task:
            plan.note("task failure")
            raise PlannedError(when)
        if self._percent < plan.fail_task + plan.exit_task:
            plan.note("worker exit")
            os._exit(1)


def _before_commit(plan: Plan, messages: list[WriterCommitMessage | None], batch: int) -> None:
    if any(receipt.already_committed for receipt in receipts_of(messages)):
        plan.note("replay")
    if batch == plan.stall_in_commit and plan.is_first(f"stall {batch}"):
        _sleep_until(Path(plan.folder) / "awake")
    if batch in plan.fail_before_commit and plan.is_first(f"failure before commit {batch}"):
        raise PlannedError("before commit")
    if batch in plan.kill_before_commit and plan.is_first(f"kill before commit {batch}"):
        _kill_java()


def _after_commit(plan: Plan, batch: int) -> None:
    if batch in plan.fail_after_commit and plan.is_first(f"failure after commit {batch}"):
        raise PlannedError("after commit")
    if batch in plan.kill_after_commit and plan.is_first(f"kill after commit {batch}"):
        _kill_java()


def _split(options: Mapping[str, str]) -> tuple[Plan, dict[str, str]]:
    own = {name.lower(): value for name, value in options.items()}
    return Plan.from_json(own.pop(PLAN)), own


def _sleep_until(flag: Path) -> None:
    end = time.monotonic() + STALL_S
    while not flag.exists() and time.monotonic() < end:
        time.sleep(0.05)


def _kill_java() -> None:
    """Kill the JVM that this process belongs to; without it, this one has nothing to say."""
    process = os.getppid()
    while Path(f"/proc/{process}/comm").read_text("utf-8").strip() != "java":
        status = Path(f"/proc/{process}/stat").read_text("utf-8")
        process = int(status.rpartition(")")[2].split()[1])
    os.kill(process, signal.SIGKILL)
    time.sleep(STALL_S)
