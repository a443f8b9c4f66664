"""The seam between services and storage engines.

A journal is a sequence of opaque records at consecutive offsets from 0, with one owner at a time.
Opening a handle gives it no right to anything: `claim` comes first, raises the epoch durably, and
from then on every older handle is fenced. Then the snapshot and the records after it are read, then
appends follow, one at a time. Record batches ride in appends, and a `BatchStore` beside the journal
reads them.

Machines and services know this page only, never an engine. An engine is one package that passes
the conformance tests in `libs/runtime/tests/journal`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, Self, TypeAlias

from msgspec import Struct

from semel_runtime.journal.journal_errors import JournalUnknownError

Entry: TypeAlias = tuple[int, bytes]
"""A journal offset and the record at it."""

Piece: TypeAlias = Sequence[Entry]
"""Some consecutive entries, in order of their offsets: the unit in which journals are read."""


BATCH_MEMORY_BYTES = 400
"""What a batch takes in memory beside header and payload, about. Reads count it: else a megabyte of
small batches would be thousands of them, which take more work than memory."""

REWRITTEN_MAX = 500
"""The most batches of one step of `BatchStore.rewrite`."""


class Reserve(Enum):
    """How much of the reserve of a disk a write may use."""

    NONE = 0.0
    """New data of users: without bounds, so the reserve is not for them."""
    HALF = 0.5
    """Committed offsets: readers go on, and each offset replaces one. But a client can commit as
    often as it likes, so the other half stays."""
    ALL = 1.0
    """Ends of transactions, registrations and all other work of a cluster. On a disk without any
    free byte they are refused, too: a write that fails would end the instance."""


class DiskShortage(Struct, frozen=True, kw_only=True):
    """How little is free on the disk of a journal, if that is below the reserve."""

    folder: str
    """Of the journal."""
    free_bytes: int
    queued_bytes: int
    """Accepted, and not written yet; they are still counted as free."""
    reserve_bytes: int
    """The setting ``disk_reserve_bytes``."""

    def sentence(self, owner: str) -> str:
        """Return what operators and clients of ``owner``, an instance, are told."""
        state = "below its reserve" if self.free_bytes > 0 else "full"
        queued = f" ({self.queued_bytes:,} of them for queued records)" if self.queued_bytes else ""
        return (
            f"the disk of {owner} is {state}, so it stores nothing new: {self.free_bytes:,} bytes"
            f" are free{queued} in {self.folder}, and disk_reserve_bytes is"
            f" {self.reserve_bytes:,}; enlarge the volume, delete records or shorten retention"
        )


def shortage_of(
    folder: str, *, free_bytes: int, queued_bytes: int, reserve_bytes: int, may_use: Reserve
) -> DiskShortage | None:
    """Return the shortage of a disk; None if a write that may use so much of the reserve fits."""
    if free_bytes - queued_bytes > reserve_bytes * (1 - may_use.value):
        return None
    return DiskShortage(
        folder=folder,
        free_bytes=free_bytes,
        queued_bytes=queued_bytes,
        reserve_bytes=reserve_bytes,
    )


class StoredBatch(Struct, frozen=True, kw_only=True):
    """A record batch as it rides in an append and lies in the store, unopened.

    Header and payload are covered by a CRC of the service's own, so the journal adds none.
    """

    partition: int
    """Number that the service gave to the partition; never used again for another one."""
    base_offset: int
    record_count: int
    """Offsets taken: `base_offset` up to `base_offset + record_count - 1`; at least 1."""
    max_timestamp_ms: int
    header: bytes
    payload: bytes

    @property
    def size_bytes(self) -> int:
        """Bytes that count for limits of appends: header and payload."""
        return len(self.header) + len(self.payload)

    @property
    def memory_bytes(self) -> int:
        """Bytes that count for limits of reads: what it takes in memory, about."""
        return len(self.header) + len(self.payload) + BATCH_MEMORY_BYTES


class BatchPosition(Struct, frozen=True, kw_only=True):
    """Where a search by time has ended."""

    base_offset: int
    max_timestamp_ms: int


class Claim(Struct, frozen=True, kw_only=True):
    """What a new owner must know before it reads."""

    epoch: int
    """The owner's claim epoch: higher than that of every owner before it."""
    first_offset: int
    """Where to read on after the snapshot, which stands for everything below. 0 without one."""
    next_offset: int
    """Where the next append must be made."""

    @property
    def has_snapshot(self) -> bool:
        """Whether there is a snapshot to read before the records."""
        return self.first_offset > 0


class LaterBatches(NamedTuple):
    """What was found in a bounded number of batches."""

    found: Sequence[BatchPosition]
    """Those with a record as late as was asked for, or later: the latest first, and of several that
    are equally late, the one with the lowest offset."""
    upto: int | None
    """Where to look on; None: there is nothing before."""


class BatchStore(Protocol):
    """Record batches that rode in appends, by partition and offset."""

    @property
    def location(self) -> str:
        """Name the file, or the schema, for people: without a password."""
        ...

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """Read batches in order, from the one that holds `offset` or the next one after it.

        Only batches whose base offset is below `upto`. Stops before the batch whose `memory_bytes`
        would go over `max_bytes`, but answers at least one batch if there is one. A batch tells
        the partition that its row names, so that a caller notices a row of another one.

        Raises:
            JournalCorruptError: the engine found its own data damaged.
            JournalError: reading failed; nothing is known about the data.
        """
        ...

    async def read_headers(
        self, partition: int, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """Read batches as `read` does, so many at most, without their payloads: they are empty."""
        ...

    async def first_at(
        self, partition: int, timestamp_ms: int, *, upto: int, start: int = 0
    ) -> BatchPosition | None:
        """Find the first batch with a record as late as `timestamp_ms`, or later.

        Only batches whose base offset is below `upto`, and not below `start`.
        """
        ...

    async def rewrite(
        self, partition: int, *, removed: Sequence[int], replaced: Sequence[StoredBatch]
    ) -> None:
        """Remove the batches at some base offsets, and replace others: all of it, or nothing.

        A replaced batch takes as many offsets as before. One that is gone stays gone: neither is
        an error. One bounded step, which counts as a write (claimed, fenced), of at most
        `REWRITTEN_MAX` batches. Durable when it returns.
        """
        ...

    async def later(self, partition: int, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """Look at some batches below `upto`, from there back, for late enough ones."""
        ...

    async def delete(self, partition: int, *, before: int, rows_max: int, bytes_max: int) -> int:
        """Delete batches that end at or before the offset `before`, the oldest first.

        One bounded step, which counts as a write (claimed, fenced): it ends with the batch that
        reaches `bytes_max`. Answers how many batches went: 0 means that none is left. Durable with
        the next append at the latest: until then, a loss of power may bring them back. The space is
        used again; `give_back` gives it to the file system.
        """
        ...

    async def give_back(self) -> bool:
        """Give a bounded part of the space that is free to the file system, if it is worth it.

        Pauses after it, so that few appends ever meet such a step. Answers whether there is more to
        give back now: in the midst of a deletion, while `delete` has not answered 0, nothing is.
        Counts as a write.
        """
        ...


class Journal(Protocol):
    """One service's records. `async with` closes the handle."""

    @property
    def batches(self) -> BatchStore:
        """The record batches that rode in this journal's appends."""
        ...

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the journal belongs to; None before it is known."""
        ...

    async def set_cluster_id(self, cluster_id: str) -> None:
        """Let the journal belong to a cluster, for ever. After `claim`; a repeat does nothing.

        Raises JournalOpenError if it belongs to another one already.
        """
        ...

    def note(self, name: str) -> str:
        """Return what was noted of the whole volume under a name; empty: nothing."""
        ...

    async def set_note(self, name: str, text: str) -> None:
        """Note something of the whole volume, durably, in place of the earlier note. After `claim`.

        It is no record: it can be read before the journal is claimed.
        """
        ...

    async def claim(self, token: str, *, epoch: int | None = None) -> Claim:
        """Become the owner, durably, before anything is read.

        Without `epoch`, takes the next one. Idempotent: a repeat with the token that holds the
        journal (and, if given, its epoch) gets the same epoch again.

        Raises:
            JournalFencedError: `epoch` is not higher than the stored one and not this token's.
            JournalUnknownError: whether the claim took effect is unknown; the handle is dead.
        """
        ...

    async def append(
        self, at: int, records: Sequence[bytes], batches: Sequence[StoredBatch] = ()
    ) -> float:
        """Write records at offsets from `at` on, and batches with them: all, durably, or nothing.

        Returns the seconds that the engine took, without the way to it and back.

        Happens only if the epoch is still this handle's and the journal ends at `at`. One append at
        a time. Without records and batches it only verifies both. Batches never ride without
        a record. Cancelling the caller does not cancel the append.

        Raises:
            JournalFencedError: another owner has claimed the journal; nothing was written.
            JournalTooLargeError: over the engine's limit; nothing was written.
            JournalUnknownError: anything else; the handle is dead.
        """
        ...

    def read(self, start: int, *, max_bytes: int) -> AsyncIterator[Piece]:
        """Read records from offset `start` to the end, in pieces of about `max_bytes`.

        `start` is the claim's `first_offset` or any offset after it. What is appended meanwhile may
        or may not be seen.

        Raises:
            JournalCorruptError: damaged or missing records; names the offset.
        """
        ...

    def read_snapshot(self) -> AsyncIterator[Piece]:
        """Read the current snapshot in the pieces in which it was given; none without one."""
        ...

    async def replace(self, upto: int, snapshot: AsyncIterable[Piece]) -> None:
        """Let a snapshot take the place of everything before `upto`.

        The snapshot is written piece by piece beside the current one and then takes its place by
        one conditional write; records below `upto` are deleted afterwards, in bounded steps.
        Appends go on meanwhile. `upto` must not be above what was appended. Cancelling it, or an
        exception from `snapshot`, leaves the journal as it was.

        Raises:
            JournalFencedError: another owner has claimed the journal.
            JournalTooLargeError: a piece is over the engine's limit; the snapshot is dropped.
            JournalUnknownError: anything else; the handle is dead.
        """
        ...

    def on_death(self, listener: Callable[[JournalUnknownError], None]) -> None:
        """Call `listener` with the reason when the handle dies, even without a write; once.

        At once if it is dead already. To be closed is not to die. An engine that finds out by
        nothing but a write need not call it: the write raises. `listener` must be quick and must
        not fail.
        """
        ...

    def free_bytes(self) -> int | None:
        """Answer how much space is left on the medium; None if the engine cannot know."""
        ...

    def shortage(
        self, queued_bytes: int = 0, may_use: Reserve = Reserve.NONE
    ) -> DiskShortage | None:
        """Return how little space is free beside what is queued; None if a write may go on.

        The reserve is kept for all that stores no new data of users: claims, ends of transactions,
        markers, deletions.
        """
        ...

    async def close(self) -> None:
        """Release everything; an append that is under way is finished first. Idempotent."""
        ...

    async def __aenter__(self) -> Self:
        """Answer the handle itself."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        ...
