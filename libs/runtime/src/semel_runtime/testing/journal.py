"""The journal engine in memory: same conformance as any other, deterministic, for tests."""

from bisect import bisect_left
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from itertools import islice
from typing import Self

from msgspec import structs

from semel_runtime.journal.chunks import check_size
from semel_runtime.journal.contract import (
    REWRITTEN_MAX,
    BatchPosition,
    Claim,
    DiskShortage,
    Entry,
    LaterBatches,
    Piece,
    Reserve,
    StoredBatch,
    shortage_of,
)
from semel_runtime.journal.journal_errors import (
    JournalFencedError,
    JournalOpenError,
    JournalUnknownError,
)
from semel_runtime.testing.volume import Content, MemoryVolume

_LOOKED_AT = 3
"""Batches that one question looks at: few, so that tests have to ask on."""


class MemoryJournal:
    """A `Journal` on a `MemoryVolume`. Two handles on one volume are a twin and its elder."""

    def __init__(
        self,
        volume: MemoryVolume,
        *,
        service: str = "test",
        cluster_id: str | None = None,
        append_bytes_max: int = 64 * 1024 * 1024,
        disk_reserve_bytes: int = 0,
    ) -> None:
        self._volume = volume
        self._append_bytes_max = append_bytes_max
        self._disk_reserve_bytes = disk_reserve_bytes
        self._crashes = volume.crashes
        self._epoch: int | None = None
        self._failure: JournalUnknownError | None = None
        self._batches = MemoryBatchStore(self)
        self._check_identity(service, cluster_id)

    @property
    def content(self) -> Content:
        """The content of the volume."""
        return self._volume.content

    @property
    def epoch(self) -> int:
        """The claimed epoch."""
        assert self._epoch is not None, "claim comes before everything else"
        return self._epoch

    @property
    def batches(self) -> "MemoryBatchStore":
        """See `Journal.batches`."""
        return self._batches

    @property
    def cluster_id(self) -> str | None:
        """See `Journal.cluster_id`."""
        return self.content.cluster_id

    async def set_cluster_id(self, cluster_id: str) -> None:
        """See `Journal.set_cluster_id`."""

        def apply() -> None:
            self.check_epoch()
            self.content.cluster_id = self.content.cluster_id or cluster_id

        await self.write(apply)
        self._check_cluster(cluster_id)

    def note(self, name: str) -> str:
        """See `Journal.note`."""
        return self.content.notes.get(name, "")

    async def set_note(self, name: str, text: str) -> None:
        """See `Journal.set_note`."""

        def apply() -> None:
            self.check_epoch()
            self.content.notes[name] = text

        await self.write(apply)

    async def claim(self, token: str, *, epoch: int | None = None) -> Claim:
        """See `Journal.claim`."""
        await self.write(lambda: self._claim(token, epoch))
        content = self.content
        return Claim(
            epoch=self.epoch,
            first_offset=content.first_offset,
            next_offset=content.next_offset,
        )

    def _claim(self, token: str, epoch: int | None) -> None:
        content = self.content
        if epoch is not None and epoch > content.epoch:
            content.epoch, content.token = epoch, token
        elif epoch is None and token != content.token:
            content.epoch, content.token = content.epoch + 1, token
        elif token != content.token or epoch not in (None, content.epoch):
            raise JournalFencedError(claim_epoch=epoch or 0, stored_epoch=content.epoch)
        self._epoch = content.epoch

    async def append(
        self, at: int, records: Sequence[bytes], batches: Sequence[StoredBatch] = ()
    ) -> float:
        """See `Journal.append`."""
        assert records or not batches, "batches never ride without a record"
        size_bytes = sum(map(len, records))
        check_size(size_bytes, batches, size_bytes_max=self._append_bytes_max)
        await self.write(lambda: self._append(at, tuple(records), tuple(batches)))
        return 0.0

    def _append(
        self, at: int, records: tuple[bytes, ...], batches: tuple[StoredBatch, ...]
    ) -> None:
        self.check_epoch()
        if at != self.content.next_offset:
            end = self.content.next_offset
            raise JournalUnknownError(f"append at {at}, but the journal ends at {end}")
        self.content.records.extend(records)
        for batch in batches:
            self.content.batches.setdefault(batch.partition, []).append(batch)

    async def read(self, start: int, *, max_bytes: int) -> AsyncIterator[Piece]:
        """See `Journal.read`."""
        self._check_alive()
        skip = start - self.content.first_offset
        for piece in _pieces(start, self.content.records[skip:], max_bytes):
            yield piece

    async def read_snapshot(self) -> AsyncIterator[Piece]:
        """See `Journal.read_snapshot`."""
        self._check_alive()
        for piece in self.content.snapshot:
            yield piece

    async def replace(self, upto: int, snapshot: AsyncIterable[Piece]) -> None:
        """See `Journal.replace`."""
        assert upto <= self.content.next_offset, f"snapshot up to {upto} is past the end"
        pieces: list[Piece] = []
        async for piece in snapshot:
            size_bytes = sum(len(record) for _, record in piece)
            check_size(size_bytes, size_bytes_max=self._append_bytes_max)
            pieces.append(tuple(piece))
        await self.write(lambda: self._put_in_place(upto, tuple(pieces)))

    def _put_in_place(self, upto: int, pieces: tuple[Piece, ...]) -> None:
        self.check_epoch()
        content = self.content
        if upto < content.first_offset:
            raise JournalUnknownError(f"there is a snapshot of more than {upto} records already")
        del content.records[: upto - content.first_offset]
        content.first_offset = upto
        content.snapshot = pieces

    def on_death(self, listener: Callable[[JournalUnknownError], None]) -> None:
        """See `Journal.on_death`: memory is not lost between writes."""

    def free_bytes(self) -> int:
        """See `Journal.free_bytes`."""
        return self._volume.free_bytes

    def shortage(
        self, queued_bytes: int = 0, may_use: Reserve = Reserve.NONE
    ) -> DiskShortage | None:
        """See `Journal.shortage`."""
        return shortage_of(
            "/memory",
            free_bytes=self._volume.free_bytes,
            queued_bytes=queued_bytes,
            reserve_bytes=self._disk_reserve_bytes,
            may_use=may_use,
        )

    async def close(self) -> None:
        """See `Journal.close`."""
        self._failure = self._failure or JournalUnknownError("the handle is closed")

    async def __aenter__(self) -> Self:
        """Return the journal itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def write(
        self, apply: Callable[[], None], undo: Callable[[], None] | None = None
    ) -> None:
        """Make a change, see `MemoryVolume.write`; after an unknown outcome, never again."""
        self._check_alive()
        try:
            await self._volume.write(apply, undo)
        except JournalUnknownError as failure:
            self._failure = failure
            raise

    def check_epoch(self) -> None:
        """Raise JournalFencedError if another owner has claimed the volume."""
        if self.content.epoch != self.epoch:
            raise JournalFencedError(claim_epoch=self.epoch, stored_epoch=self.content.epoch)

    def _check_alive(self) -> None:
        if self._failure is None and self._crashes != self._volume.crashes:
            self._failure = JournalUnknownError("power was lost")
        if self._failure is not None:
            raise JournalUnknownError(f"the handle is dead: {self._failure}")

    def _check_identity(self, service: str, cluster_id: str | None) -> None:
        content = self.content
        content.service = content.service or service
        if content.service != service:
            raise JournalOpenError(
                f"The volume belongs to the service {content.service!r}, not {service!r}."
            )
        if cluster_id is not None:
            content.cluster_id = content.cluster_id or cluster_id
            self._check_cluster(cluster_id)

    def _check_cluster(self, cluster_id: str) -> None:
        if self.content.cluster_id != cluster_id:
            raise JournalOpenError(
                f"The volume belongs to the cluster {self.content.cluster_id!r}, "
                f"not {cluster_id!r}."
            )


class MemoryBatchStore:
    """The record batches on a volume."""

    location = "memory"
    """See `BatchStore.location`."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal

    async def read(
        self, partition: int, offset: int, *, max_bytes: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See `BatchStore.read`."""
        found: list[StoredBatch] = []
        total_bytes = 0
        for batch in self._below(partition, upto):
            if batch.base_offset + batch.record_count <= offset:
                continue
            total_bytes += batch.memory_bytes
            if found and total_bytes > max_bytes:
                break
            found.append(batch)
        return found

    async def read_headers(
        self, partition: int, offset: int, *, rows_max: int, upto: int
    ) -> Sequence[StoredBatch]:
        """See `BatchStore.read_headers`."""
        found = (
            structs.replace(batch, payload=b"")
            for batch in self._below(partition, upto)
            if batch.base_offset + batch.record_count > offset
        )
        return list(islice(found, rows_max))

    async def first_at(
        self, partition: int, timestamp_ms: int, *, upto: int, start: int = 0
    ) -> BatchPosition | None:
        """See `BatchStore.first_at`."""
        for batch in self._below(partition, upto):
            if batch.base_offset >= start and batch.max_timestamp_ms >= timestamp_ms:
                return BatchPosition(
                    base_offset=batch.base_offset, max_timestamp_ms=batch.max_timestamp_ms
                )
        return None

    async def later(self, partition: int, timestamp_ms: int, *, upto: int) -> LaterBatches:
        """See `BatchStore.later`."""
        below = self._below(partition, upto)[-_LOOKED_AT:]
        found = [
            BatchPosition(base_offset=each.base_offset, max_timestamp_ms=each.max_timestamp_ms)
            for each in below
            if each.max_timestamp_ms >= timestamp_ms
        ]
        found.sort(key=lambda each: (-each.max_timestamp_ms, each.base_offset))
        return LaterBatches(found, below[0].base_offset if below else None)

    async def rewrite(
        self, partition: int, *, removed: Sequence[int], replaced: Sequence[StoredBatch]
    ) -> None:
        """See `BatchStore.rewrite`."""
        count = len(removed) + len(replaced)
        assert 0 < count <= REWRITTEN_MAX, f"{count} batches in one step"
        gone, by_offset = set(removed), {batch.base_offset: batch for batch in replaced}

        def apply() -> None:
            self._journal.check_epoch()
            batches = self._journal.content.batches.get(partition, [])
            left = [
                by_offset.get(batch.base_offset, batch)
                for batch in batches
                if batch.base_offset not in gone
            ]
            self.put(partition, left)

        await self._journal.write(apply)

    def put(self, partition: int, batches: list[StoredBatch]) -> None:
        """Let these be a partition's batches, now that the step is durable."""
        self._journal.content.batches[partition] = batches

    async def delete(self, partition: int, *, before: int, rows_max: int, bytes_max: int) -> int:
        """See `BatchStore.delete`."""
        deleted: list[StoredBatch] = []

        def apply() -> None:
            self._journal.check_epoch()
            batches = self._journal.content.batches.get(partition, [])
            size_bytes = 0
            for batch in batches[:rows_max]:
                if batch.base_offset + batch.record_count > before or size_bytes >= bytes_max:
                    break
                size_bytes += len(batch.payload)
                deleted.append(batch)
            del batches[: len(deleted)]

        def undo() -> None:
            self._journal.content.batches.setdefault(partition, [])[:0] = deleted

        await self._journal.write(apply, undo)
        return len(deleted)

    async def give_back(self) -> bool:
        """See `BatchStore.give_back`."""
        await self._journal.write(self._journal.check_epoch, undo=_nothing)
        return False

    def _below(self, partition: int, upto: int) -> Sequence[StoredBatch]:
        batches = self._journal.content.batches.get(partition, [])
        return batches[: bisect_left(batches, upto, key=lambda batch: batch.base_offset)]


def _nothing() -> None:
    """Take back a write that changed nothing."""


def _pieces(start: int, records: Sequence[bytes], max_bytes: int) -> list[list[Entry]]:
    pieces: list[list[Entry]] = []
    size_bytes = 0
    for entry in enumerate(records, start):
        if not pieces or size_bytes + len(entry[1]) > max_bytes:
            pieces.append([])
            size_bytes = 0
        pieces[-1].append(entry)
        size_bytes += len(entry[1])
    return pieces
