"""Group commit: the queue of records that were decided and are not durable yet.

Records go into the last commit of the queue until the committer takes it; a commit that is full is
followed by another one. A commit ends once, durable or failed, and wakes all its waiters.

The committer takes a commit when a caller waits for it. Records without a waiter stay in the queue
until another commit takes them along, or until they have waited long enough: they cost no write to
disk of their own.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from opentelemetry.trace import Span

from semel_common.errors import KafkaStorageError
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.runner.runner_options import RunnerOptions

R = TypeVar("R")


class Decided(Struct, Generic[R], frozen=True, kw_only=True):
    """The records and batches of one decision, serialized."""

    records: Sequence[R]
    encoded: Sequence[bytes]
    batches: Sequence[StoredBatch]
    size_bytes: int


class Commit(Generic[R]):
    """One journal append, and the event that all its waiters share."""

    __slots__ = ("_done", "_failure", "at", "batches", "encoded", "records", "served", "size_bytes")

    def __init__(self, at: int) -> None:
        self.at = at
        self.records: list[R] = []
        self.encoded: list[bytes] = []
        self.batches: list[StoredBatch] = []
        self.size_bytes = 0
        self.served: tuple[Span, ...] = ()
        """Spans of the traced requests that wait for it."""
        self._done = asyncio.Event()
        self._failure: BaseException | None = None

    def add(self, decided: Decided[R]) -> None:
        """Let a decision ride along."""
        self.records.extend(decided.records)
        self.encoded.extend(decided.encoded)
        self.batches.extend(decided.batches)
        self.size_bytes += decided.size_bytes

    async def wait(self) -> None:
        """Wait until this commit is durable; raise KafkaStorageError if it failed."""
        await self._done.wait()
        if self._failure is not None:
            raise KafkaStorageError(f"journal failed: {self._failure}") from self._failure

    def end(self, failure: BaseException | None = None) -> None:
        """Wake all who wait."""
        self._failure = failure
        self._done.set()


class CommitQueue(Generic[R]):
    """Commits in order: the one in flight, if any, then the waiting ones."""

    def __init__(self, options: RunnerOptions, *, next_offset: int) -> None:
        self._options = options
        self._waiting: deque[Commit[R]] = deque()
        self._wanted = asyncio.Event()
        self._lingering: asyncio.TimerHandle | None = None
        self.next_offset = next_offset
        self.durable_offset = next_offset
        """Where the journal ends; later decisions are not durable yet."""
        self.pending_records = 0
        self.pending_bytes = 0
        self.last: Commit[R] | None = None
        """The newest commit that has not ended; None when everything is durable."""

    def add(self, decided: Decided[R]) -> Commit[R]:
        """Queue a decision until it is wanted; returns the commit that it is part of."""
        commit = self._open_commit(decided)
        commit.add(decided)
        self.next_offset += len(decided.encoded)
        self.pending_records += len(decided.encoded)
        self.pending_bytes += decided.size_bytes
        return commit

    def want(self) -> None:
        """Let everything that has queued be written now."""
        if self._waiting:
            self._wanted.set()

    def want_within(self, delay_ms: int) -> None:
        """Let everything that has queued be written after this time, unless it is before."""
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_ms / 1000
        if self._waiting and (self._lingering is None or due < self._lingering.when()):
            self._forget_lingering()
            self._lingering = loop.call_at(due, self.want)

    async def take(self) -> Commit[R]:
        """Wait for the next commit that is wanted, and close it to further decisions."""
        await self._wanted.wait()
        commit = self._waiting.popleft()
        if not self._waiting:
            self._wanted.clear()
            self._forget_lingering()
        return commit

    def end(self, commit: Commit[R]) -> None:
        """Note that a commit is durable, and wake its waiters."""
        self.pending_records -= len(commit.encoded)
        self.pending_bytes -= commit.size_bytes
        self.durable_offset = commit.at + len(commit.encoded)
        if self.last is commit:
            self.last = None
        commit.end()

    def fail(self, in_flight: Commit[R] | None, failure: BaseException) -> None:
        """End the commit in flight and all that wait for it, as failed."""
        if in_flight is not None:
            in_flight.end(failure)
        for commit in self._waiting:
            commit.end(failure)
        self._waiting.clear()
        self._forget_lingering()

    def _forget_lingering(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None

    def _open_commit(self, decided: Decided[R]) -> Commit[R]:
        if self._waiting and self._fits(self._waiting[-1], decided):
            return self._waiting[-1]
        commit: Commit[R] = Commit(self.next_offset)
        self._waiting.append(commit)
        self.last = commit
        return commit

    def _fits(self, commit: Commit[R], decided: Decided[R]) -> bool:
        return (
            commit.size_bytes + decided.size_bytes <= self._options.commit_bytes_max
            and len(commit.batches) + len(decided.batches) <= self._options.commit_batches_max
        )
