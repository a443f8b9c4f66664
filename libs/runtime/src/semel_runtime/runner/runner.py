"""The runner: decide, append, replay, wait until it is on disk.

Theory of operation. `run` calls a handler, which decides on the current state and changes nothing.
Its records get the next journal offsets and are replayed at once; no await lies between, so the
event loop makes it one atomic step. Then `run` waits until all records appended so far are
durable. Reads and errors wait too: no caller ever sees a state that is not on disk.
When nothing is pending, `run` returns without having awaited anything.

One committer task writes what has queued, one append at a time; what queues meanwhile is the next.
Records without a waiter (`run_lazily`), or with a patient one (`Result.patient`), queue for a while
without an append of their own.
Callers own no part of it: cancelling one loses only its waiting. If an append fails, what reached
the disk is unknown until the next replay, so the runner stops for good: all waiters get
`KafkaStorageError`, `failed` is set, and the process must end. The same if the journal's handle
dies while nothing is written: another process may own the journal before anybody here would write.
That end depends on nothing else: not on the log, spans or metrics (see `observers`).
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

import structlog
from opentelemetry.trace import Tracer

from semel_common.errors import (
    KafkaStorageError,
    MessageTooLargeError,
    ThrottlingQuotaExceededError,
)
from semel_common.telemetry import trace_context
from semel_runtime.claims import ClaimHistory, JournalMark
from semel_runtime.journal.contract import Claim, Journal, Reserve, StoredBatch
from semel_runtime.machine import Machine, Result, Serde
from semel_runtime.runner.claim_history import remember_claim
from semel_runtime.runner.group_commit import Commit, CommitQueue, Decided
from semel_runtime.runner.observers import CommitObservers, tell
from semel_runtime.runner.runner_options import CommitFigures, RunnerOptions, RunnerStats
from semel_runtime.runner.snapshot_schedule import SnapshotPieces, SnapshotPolicy
from semel_runtime.runner.state_loading import load

R = TypeVar("R")
T = TypeVar("T")

log = structlog.get_logger(__name__)


class Runner(Generic[R]):
    """Runs handlers of one machine over one journal. Made by `open`; `async with` closes it.

    The journal is borrowed: its opener closes it, after the runner.
    """

    def __init__(
        self,
        journal: Journal,
        machine: Machine[R],
        serde: Serde[R],
        *,
        claim: Claim,
        token: str,
        history: ClaimHistory,
        options: RunnerOptions,
        tracer: Tracer | None = None,
    ) -> None:
        self._journal = journal
        self._machine = machine
        self._serde = serde
        self._claim = claim
        self._token = token
        self.history = history
        """The claims of the journal, this one included."""
        self._options = options
        self._queue: CommitQueue[R] = CommitQueue(options, next_offset=claim.next_offset)
        self._policy = SnapshotPolicy(records_min=options.snapshot_records_min)
        self._observers = CommitObservers(tracer)
        self._listeners: list[Callable[[Sequence[R]], None]] = []
        self._batch_listeners: list[Callable[[Sequence[StoredBatch]], None]] = []
        self._in_flight: Commit[R] | None = None
        self._committer: asyncio.Task[None] | None = None
        self._snapshotter: asyncio.Task[None] | None = None
        self._closed = False
        self._commits = self._records = self._batches = self._snapshots = 0
        self.failed = asyncio.Event()
        """Set when the runner has stopped for good; `failure` says why. The process must end."""
        self.failure: BaseException | None = None

    @classmethod
    async def open(
        cls,
        journal: Journal,
        machine: Machine[R],
        serde: Serde[R],
        *,
        options: RunnerOptions | None = None,
        token: str | None = None,
        tracer: Tracer | None = None,
    ) -> Self:
        """Claim the journal, bring the (empty) machine to its state, and start serving.

        `token` must differ at every opening; by default it is random. A simulation gives its own.
        Raises what `Journal.claim` and `Journal.read` raise.
        """
        token = token or secrets.token_hex(16)
        claim = await journal.claim(token)
        history = await remember_claim(journal, claim, token)
        options = options or RunnerOptions()
        runner = cls(
            journal,
            machine,
            serde,
            claim=claim,
            token=token,
            history=history,
            options=options,
            tracer=tracer,
        )
        await load(
            journal,
            machine,
            serde,
            claim=claim,
            policy=runner._policy,
            read_bytes=options.read_bytes,
        )
        runner._committer = asyncio.create_task(runner._commit_all(), name="journal committer")
        journal.on_death(runner._fail)
        return runner

    @property
    def claim_epoch(self) -> int:
        """The journal's claim epoch: higher than that of every process before."""
        return self._claim.epoch

    def mark(self) -> JournalMark:
        """Return how far the journal goes now, durably."""
        return JournalMark(
            claim_epoch=self._claim.epoch,
            claim_token=self._token,
            end_offset=self._queue.durable_offset,
        )

    async def run(
        self,
        handler: Callable[[], Result[T, R]],
        *,
        privileged: bool = False,
        may_use: Reserve = Reserve.ALL,
    ) -> T:
        """Decide, append, replay, and answer once everything appended so far is durable.

        The handler runs at once, before the first await. What it raises is raised here, behind the
        same barrier. `privileged` is for markers and deletions, which go on when the queue is full.
        `may_use` is how much of the disk's reserve the records may use: the runner refuses new data
        of users below the reserve. `below_reserve` says it for each RPC.

        Decisions that append are refused past a limit; a handler is pure, so a refused decision
        has changed nothing, while reads and repeats go on. Raises ThrottlingQuotaExceededError
        (queue or disk is full; nothing was stored), MessageTooLargeError, and KafkaStorageError
        (the journal failed: what was asked may have happened).
        """
        self._check_serving()
        try:
            result = handler()
        except Exception:
            await self._durable()
            raise
        if result.records or result.batches or result.verify:
            commit = self._append(result, privileged=privileged, may_use=may_use)
            if self._observers.traces and (served := trace_context.spans_of_now()):
                commit.served += served
        if self._queue.last is not None:
            await self._durable(patient=result.patient)
        return result.response

    def run_lazily(self, handler: Callable[[], Result[T, R]], *, privileged: bool = False) -> T:
        """Decide, append and replay like `run`, but wait for nothing and write nothing at once.

        For facts without a waiter that a restart finds out again: they share the next commit, or
        get one after `linger_ms`. A caller of `run` sees them meanwhile, so it waits for them.
        Raises the errors of `run`, but behind no barrier.
        """
        self._check_serving()
        result = handler()
        if result.records or result.batches or result.verify:
            self._append(result, privileged=privileged)
            self._queue.want_within(self._options.linger_ms)
        return result.response

    def on_durable(self, listener: Callable[[Sequence[R]], None]) -> None:
        """Call `listener` with the records of each commit, in order, once they are durable.

        Listeners must be quick and must not fail.
        """
        self._listeners.append(listener)

    def on_batches(self, listener: Callable[[Sequence[StoredBatch]], None]) -> None:
        """Call `listener` with the batches of each commit that has any, once they are durable.

        Listeners run before the waiters go on. They must be quick and must not fail.
        """
        self._batch_listeners.append(listener)

    def on_commit(self, listener: Callable[[CommitFigures], None]) -> None:
        """Call `listener` with the figures of each commit, once it is durable.

        Listeners must be quick. One that fails is logged, and changes nothing.
        """
        self._observers.add(listener)

    def stats(self) -> RunnerStats:
        """Return the figures of now."""
        return RunnerStats(
            commits=self._commits,
            records=self._records,
            batches=self._batches,
            snapshots=self._snapshots,
            pending_records=self._queue.pending_records,
            pending_bytes=self._queue.pending_bytes,
            next_offset=self._queue.next_offset,
        )

    async def close(self) -> None:
        """Refuse new calls, finish the decided commits, and stop. Idempotent; raises no failure."""
        self._closed = True
        try:
            if self.failure is None:
                await self._durable()
        except KafkaStorageError:
            pass  # `failure` says so, and every waiter has got the error.
        finally:
            await _stop(self._snapshotter)
            await _stop(self._committer)
            if self.failure is None:  # Of a close that was cancelled, some may still wait.
                self._queue.fail(self._in_flight, KafkaStorageError("journal is closed"))

    async def __aenter__(self) -> Self:
        """Return the runner itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    # -- deciding ------------------------------------------------------------------------------

    def _check_serving(self) -> None:
        if self.failure is not None:
            raise KafkaStorageError(f"journal failed: {self.failure}") from self.failure
        if self._closed:
            raise KafkaStorageError("journal is closed")

    def _append(
        self, result: Result[T, R], *, privileged: bool, may_use: Reserve = Reserve.ALL
    ) -> Commit[R]:
        decided = self._encode(result)
        self._check_limits(decided, privileged=privileged)
        if decided.encoded and not privileged:
            self._check_disk(may_use)
        try:
            for offset, record in enumerate(decided.records, self._queue.next_offset):
                self._machine.replay(offset, record)
        except BaseException as failure:
            self._fail(failure)
            raise
        return self._queue.add(decided)

    def _encode(self, result: Result[T, R]) -> Decided[R]:
        assert result.records or not result.batches, "batches never ride without a record"
        encoded = [self._serde.encode(record) for record in result.records]
        size_bytes = sum(map(len, encoded)) + sum(batch.size_bytes for batch in result.batches)
        return Decided(
            records=result.records, encoded=encoded, batches=result.batches, size_bytes=size_bytes
        )

    def _check_limits(self, decided: Decided[R], *, privileged: bool) -> None:
        options = self._options
        if decided.size_bytes > options.decision_bytes_max:
            raise MessageTooLargeError(
                f"{decided.size_bytes} bytes in one call are over {options.decision_bytes_max}"
            )
        if len(decided.batches) > options.commit_batches_max:
            raise MessageTooLargeError(
                f"{len(decided.batches)} batches in one call are over {options.commit_batches_max}"
            )
        if privileged or not decided.encoded:
            return
        if self._queue.pending_records + len(decided.encoded) > options.pending_records_max:
            raise ThrottlingQuotaExceededError(
                f"{self._queue.pending_records} records wait for the disk, the limit is "
                f"{options.pending_records_max}"
            )
        if self._queue.pending_bytes + decided.size_bytes > options.pending_bytes_max:
            raise ThrottlingQuotaExceededError(
                f"{self._queue.pending_bytes} bytes wait for the disk, the limit is "
                f"{options.pending_bytes_max}"
            )

    def _check_disk(self, may_use: Reserve) -> None:
        shortage = self._journal.shortage(self._queue.pending_bytes, may_use)
        if shortage is not None:
            raise ThrottlingQuotaExceededError(
                shortage.sentence(self._options.owner),
                disk_folder=shortage.folder,
                disk_free_bytes=shortage.free_bytes,
                disk_reserve_bytes=shortage.reserve_bytes,
            )

    async def _durable(self, *, patient: bool = False) -> None:
        if self._queue.last is not None:
            if patient:
                self._queue.want_within(self._options.patience_ms)
            else:
                self._queue.want()
            await self._queue.last.wait()

    # -- committing ----------------------------------------------------------------------------

    async def _commit_all(self) -> None:
        try:
            while self.failure is None:
                self._in_flight = await self._queue.take()
                await self._commit(self._in_flight)
        except Exception as failure:  # noqa: BLE001  # whatever it is, the effect is unknown
            self._fail(failure)

    async def _commit(self, commit: Commit[R]) -> None:
        spans = self._observers.begin(commit)
        started = time.perf_counter()
        try:
            write_s = await self._journal.append(commit.at, commit.encoded, commit.batches)
        except BaseException as failure:
            self._observers.fail(spans, failure)
            raise
        figures = CommitFigures(
            time.perf_counter() - started, len(commit.encoded), commit.size_bytes, write_s
        )
        if self.failure is None:
            self._in_flight = None
            self._queue.end(commit)
            self._became_durable(commit)
        self._observers.end(spans, figures)

    def _became_durable(self, commit: Commit[R]) -> None:
        self._commits += 1
        self._records += len(commit.encoded)
        self._batches += len(commit.batches)
        if commit.batches:
            for keep in self._batch_listeners:
                keep(commit.batches)
        for listener in self._listeners:
            listener(commit.records)
        self._policy.add(records=len(commit.encoded), size_bytes=sum(map(len, commit.encoded)))
        self._snapshot_if_due()

    def _fail(self, failure: BaseException) -> None:
        """Stop for good. The end depends on nothing, so the log is told last, if it can be."""
        if self.failure is not None:
            return
        self.failure = failure
        self.failed.set()
        self._queue.fail(self._in_flight, failure)
        tell(log.error, "journal failed: the process must end", error=str(failure))

    # -- snapshots -----------------------------------------------------------------------------

    def _snapshot_if_due(self) -> None:
        if self._snapshotter is not None or not self._policy.due() or self._closed:
            return
        free_bytes = self._journal.free_bytes()
        if free_bytes is not None and free_bytes < 2 * self._policy.size_bytes_max():
            return
        self._snapshotter = asyncio.create_task(self._snapshot(), name="journal snapshot")

    async def _snapshot(self) -> None:
        upto = self._queue.next_offset
        pieces = SnapshotPieces(piece_bytes=self._options.snapshot_piece_bytes)
        try:
            entries = self._machine.snapshot()
            self._policy.start()
            await self._durable()
            await self._journal.replace(upto, pieces.cut(entries, self._serde))
        except Exception as failure:  # noqa: BLE001  # a dead journal is dead for appends too
            self._fail(failure)
            return
        self._policy.took(records=pieces.records, size_bytes=pieces.size_bytes)
        self._snapshots += 1
        self._snapshotter = None
        tell(
            log.info,
            "snapshot taken",
            upto=upto,
            records=pieces.records,
            size_bytes=pieces.size_bytes,
        )


async def _stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait for its end."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
