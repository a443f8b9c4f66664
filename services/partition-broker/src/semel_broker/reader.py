"""Reading one partition from the store, as far as a plan allows, with the isolation filter.

Invariant: what is skipped is skipped for good. Below the last stable offset nothing changes, so a
cursor moves past markers and aborted batches and never comes back.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from semel.broker.v1.broker_pb2 import FetchPartitionResult
from semel.common.v1.records_pb2 import Header, Record, RecordBatch
from semel_broker.machine.values import IsolationLevel, ReadPlan
from semel_broker.stored import OPENED_MAX_BYTES, read_header
from semel_common.batches import Columns, decode_records
from semel_common.errors import CorruptMessageError, KafkaStorageError, MessageTooLargeError
from semel_runtime.journal.base import BATCH_MEMORY_BYTES, BatchStore, StoredBatch
from semel_runtime.journal.errors import JournalError

_EMPTY_READS_MAX = 8
"""How often one call reads on past nothing but aborted batches; then it answers how far it came."""

_RECORD_OVERHEAD_BYTES = 16
"""What a plain record takes in an answer beside its content, about."""

_BATCHES_PER_TURN = 256
"""A call lets others run after so many batches. What is in memory is read without any waiting."""


class Added(Struct, frozen=True):
    """What became part of an answer."""

    size_bytes: int
    memory_bytes: int
    """What counts for limits."""
    next_offset: int
    """The offset behind it."""


class Turns:
    """When one call has held up the others for long enough."""

    def __init__(self) -> None:
        self._left = _BATCHES_PER_TURN

    def is_over(self) -> bool:
        """Count a batch; answers whether to let others run now."""
        self._left = (self._left or _BATCHES_PER_TURN) - 1
        return not self._left


class Form(Protocol):
    """How batches are put into an answer: each is opened, then added or left out."""

    def open(self, stored: StoredBatch) -> RecordBatch:
        """Return a batch without offset and payload."""
        ...

    def add(
        self, opened: RecordBatch, stored: StoredBatch, fetch_offset: int, room_bytes: int
    ) -> Added:
        """Add what was opened last.

        Raises CorruptMessageError, MessageTooLargeError if it cannot be read.
        """
        ...

    def leave_out(self, opened: RecordBatch) -> None:
        """Do not answer what was opened last."""
        ...

    def close(self) -> None:
        """Open no more for now."""
        ...


class AsBatches:
    """Batches as they are stored; the payload is not opened.

    A header is parsed once, in the answer. One that is left out makes room for the next: what is
    deleted of a message is not free before the whole of it is.
    """

    def __init__(self, result: FetchPartitionResult) -> None:
        self._result = result
        self._spare: RecordBatch | None = None

    def open(self, stored: StoredBatch) -> RecordBatch:
        """Parse a header where it stays."""
        opened = self._result.batches.add() if self._spare is None else self._spare
        self._spare = None
        opened.MergeFromString(stored.header)
        return opened

    def add(
        self, opened: RecordBatch, stored: StoredBatch, fetch_offset: int, room_bytes: int
    ) -> Added:
        """Add the batch, also if it begins before the offset that was asked for."""
        del fetch_offset, room_bytes
        opened.base_offset = stored.base_offset
        opened.payload = stored.payload
        size_bytes = stored.size_bytes
        return Added(
            size_bytes, size_bytes + BATCH_MEMORY_BYTES, stored.base_offset + stored.record_count
        )

    def leave_out(self, opened: RecordBatch) -> None:
        """Keep the place for the next one."""
        opened.Clear()
        self._spare = opened

    def close(self) -> None:
        """Leave no place that is empty."""
        if self._spare is not None:
            self._spare = None
            del self._result.batches[-1]


class AsRecords:
    """Plain records; markers have none."""

    def __init__(self, result: FetchPartitionResult) -> None:
        self._result = result

    def open(self, stored: StoredBatch) -> RecordBatch:
        """Parse a header."""
        return read_header(stored)

    def add(
        self, opened: RecordBatch, stored: StoredBatch, fetch_offset: int, room_bytes: int
    ) -> Added:
        """Add the records from the offset on that was asked for, as many as there is room for."""
        end = stored.base_offset + stored.record_count
        if opened.control:
            return Added(stored.size_bytes, stored.memory_bytes, end)
        opened.base_offset = stored.base_offset
        opened.payload = stored.payload
        columns = decode_records(opened, payload_max_bytes=OPENED_MAX_BYTES)
        offsets = columns.offsets(stored.base_offset)
        size_bytes = 0
        for position in range(bisect_left(offsets, fetch_offset), len(offsets)):
            if size_bytes >= room_bytes:
                return Added(size_bytes, size_bytes, offsets[position])
            record = _record(columns, offsets, position)
            self._result.records.append(record)
            size_bytes += len(record.key) + len(record.value) + _RECORD_OVERHEAD_BYTES
            size_bytes += sum(len(each.key) + len(each.value) for each in record.headers)
        return Added(size_bytes, size_bytes, end)

    def leave_out(self, opened: RecordBatch) -> None:
        """Nothing of it was added."""

    def close(self) -> None:
        """Nothing is left of what was opened."""


def _record(columns: Columns, offsets: Sequence[int], position: int) -> Record:
    headers = columns.headers.get(position, ())
    return Record(
        offset=offsets[position],
        timestamp_ms=columns.timestamps_ms[position],
        key=None if columns.keys is None else columns.keys[position],
        value=columns.values[position],
        headers=[Header(key=key, value=value) for key, value in headers],
    )


@dataclass(slots=True, kw_only=True)
class Cursor:
    """How far the reading of one partition has come, with what was found."""

    result: FetchPartitionResult
    isolation: IsolationLevel
    form: Form
    turns: Turns
    next_offset: int
    bytes_left: int
    found_bytes: int = 0
    held_bytes: int = 0
    """What was found takes in memory, about: limits count this."""
    more: bool = False
    """Whether there is more to read that this answer has no room for."""

    async def read(self, store: BatchStore, plan: ReadPlan, max_bytes: int) -> None:
        """Read on, up to the plan's end and about ``max_bytes``.

        Raises KafkaStorageError, and CorruptMessageError or MessageTooLargeError if the first batch
        cannot be opened.
        """
        try:
            await self._read(store, plan, max_bytes)
        except (CorruptMessageError, MessageTooLargeError):
            if not self.found_bytes:
                raise
        finally:
            self.form.close()
        self.more = self.next_offset < plan.upto

    async def _read(self, store: BatchStore, plan: ReadPlan, max_bytes: int) -> None:
        found_before = self.found_bytes
        for _ in range(_EMPTY_READS_MAX):
            room = min(max_bytes, self.bytes_left)
            if self.next_offset >= plan.upto or room <= 0 or self.found_bytes > found_before:
                break
            stored = await _read(store, plan, self.next_offset, room)
            if plan.log_start.offset > self.next_offset:
                break  # What was to be read has been cut off meanwhile: the next call is told.
            if not stored:
                self.next_offset = plan.upto  # Compaction has left nothing.
                break
            for batch in stored:
                room -= self._take(batch, plan, room)
                if room <= 0:
                    break
                if self.turns.is_over():
                    await asyncio.sleep(0)

    def _take(self, stored: StoredBatch, plan: ReadPlan, room_bytes: int) -> int:
        """Put a batch into the answer, if the reader may see it; returns the bytes it takes."""
        opened = self.form.open(stored)
        if not self._visible(opened, stored.base_offset, plan):
            self.form.leave_out(opened)
            self.next_offset = stored.base_offset + stored.record_count
            return 0
        added = self.form.add(opened, stored, self.next_offset, room_bytes)
        self.found_bytes += added.size_bytes
        self.held_bytes += added.memory_bytes
        self.bytes_left -= added.memory_bytes
        self.next_offset = added.next_offset
        return added.memory_bytes

    def _visible(self, opened: RecordBatch, base_offset: int, plan: ReadPlan) -> bool:
        if self.isolation is IsolationLevel.READ_UNCOMMITTED:
            return True
        return is_committed(opened, base_offset, plan)


def is_committed(header: RecordBatch, base_offset: int, plan: ReadPlan) -> bool:
    """Whether a batch below the last stable offset is one that committed readers see."""
    if not header.transactional:
        return True
    return not header.control and not plan.aborted.covers(
        header.producer_id, header.producer_epoch, base_offset
    )


async def _read(
    store: BatchStore, plan: ReadPlan, offset: int, max_bytes: int
) -> tuple[StoredBatch, ...]:
    try:
        return tuple(await store.read(plan.log_id, offset, max_bytes=max_bytes, upto=plan.upto))
    except JournalError as error:
        raise KafkaStorageError(f"log cannot be read at offset {offset}: {error}") from error
