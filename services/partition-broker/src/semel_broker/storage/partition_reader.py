"""Reading one partition from the store, as far as a plan allows, with the isolation filter.

Invariant: what is skipped is skipped for good. Below the last stable offset nothing changes, so a
cursor moves past markers and aborted batches and never comes back.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from msgspec import Struct

from semel.broker.v1.broker_pb2 import FetchPartitionResult
from semel.common.v1.records_pb2 import Header, Record, RecordBatch
from semel_broker.machine.values import IsolationLevel, ReadPlan
from semel_broker.storage.log_reader import LogReader
from semel_broker.storage.opened_payloads import PayloadOpener, named
from semel_broker.storage.stored_batches import read_batch, read_header
from semel_common.errors import CorruptMessageError, MessageTooLargeError
from semel_common.record_batches.batches import Columns, decode_records
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_runtime.journal.contract import BATCH_MEMORY_BYTES, StoredBatch
from semel_runtime.server.form_checks import INT32_MAX

_EMPTY_READS_MAX = 8
"""How often one call reads on past nothing but aborted batches; then it answers how far it came."""

_RECORD_OVERHEAD_BYTES = 16
"""What a plain record takes in an answer beside its content, about."""

_HEADER_OVERHEAD_BYTES = 8
"""What a header of a plain record takes in an answer beside its content, about."""

_BATCHES_PER_TURN = 256
"""A call lets others run after so many batches. Batches in memory are read without a wait."""


class Added(Struct, frozen=True):
    """What became part of an answer."""

    size_bytes: int
    memory_bytes: int
    """What counts for limits."""
    next_offset: int
    """The offset behind it."""
    record_count: int
    """How many records a reader finds in it; of a marker none."""


class Room(NamedTuple):
    """What an answer still has room for."""

    size_bytes: int
    records: int


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

    async def unpack(self, stored: StoredBatch, fetch_offset: int, room: Room) -> None:
        """Open the payload of the last batch, unless the form leaves payloads closed.

        Raises CorruptMessageError, MessageTooLargeError if it cannot be read.
        """
        ...

    def add(self, opened: RecordBatch, stored: StoredBatch) -> Added:
        """Add what was opened last, and unpacked."""
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

    async def unpack(self, stored: StoredBatch, fetch_offset: int, room: Room) -> None:
        """Leave the payload closed."""

    def add(self, opened: RecordBatch, stored: StoredBatch) -> Added:
        """Add the batch, also if it begins before the offset that was asked for."""
        opened.base_offset = stored.base_offset
        opened.payload = stored.payload
        opened.ClearField("stored_crc32c")
        size_bytes = stored.size_bytes
        return Added(
            size_bytes,
            size_bytes + BATCH_MEMORY_BYTES,
            stored.base_offset + stored.record_count,
            0 if opened.control else opened.record_count,
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


class _Unpacked(Struct, frozen=True):
    """The records of one batch from an offset on, as many as there was room for."""

    records: list[Record]
    size_bytes: int
    next_offset: int


class AsRecords:
    """Plain records; markers have none."""

    def __init__(self, result: FetchPartitionResult, opener: PayloadOpener) -> None:
        self._result = result
        self._opener = opener
        self._unpacked: _Unpacked | None = None

    def open(self, stored: StoredBatch) -> RecordBatch:
        """Parse a header."""
        return read_header(stored)

    async def unpack(self, stored: StoredBatch, fetch_offset: int, room: Room) -> None:
        """Make records of a batch: those from an offset on that there is room for."""
        work = partial(_unpack, stored, fetch_offset, room)
        self._unpacked = await self._opener.run(stored, work)

    def add(self, opened: RecordBatch, stored: StoredBatch) -> Added:
        """Add the records that were unpacked."""
        unpacked, self._unpacked = self._unpacked, None
        assert unpacked is not None, "a batch is unpacked before it is added"
        if opened.control:
            return Added(stored.size_bytes, stored.memory_bytes, unpacked.next_offset, 0)
        self._result.records.extend(unpacked.records)
        size_bytes = unpacked.size_bytes
        return Added(size_bytes, size_bytes, unpacked.next_offset, len(unpacked.records))

    def leave_out(self, opened: RecordBatch) -> None:
        """Nothing of it was added."""

    def close(self) -> None:
        """No opened record is left."""


def _unpack(stored: StoredBatch, fetch_offset: int, room: Room) -> _Unpacked:
    batch, end = read_batch(stored), stored.base_offset + stored.record_count
    records: list[Record] = []
    if batch.control:
        return _Unpacked(records, 0, end)
    columns = decode_records(batch, stored.payload, payload_max_bytes=OPENED_MAX_BYTES)
    offsets = columns.offsets(stored.base_offset)
    size_bytes = 0
    for position in range(bisect_left(offsets, fetch_offset), len(offsets)):
        if size_bytes >= room.size_bytes or len(records) >= room.records:
            return _Unpacked(records, size_bytes, offsets[position])
        record = _record(columns, offsets, position)
        records.append(record)
        size_bytes += len(record.key) + len(record.value) + _RECORD_OVERHEAD_BYTES
        size_bytes += sum(
            len(header.key) + len(header.value) + _HEADER_OVERHEAD_BYTES
            for header in record.headers
        )
    return _Unpacked(records, size_bytes, end)


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
    """The progress of the reading of one partition, with the batches found."""

    result: FetchPartitionResult
    isolation: IsolationLevel
    form: Form
    turns: Turns
    unpacks: bool
    """Whether the form opens payloads; to ask a form that does not would cost a coroutine."""
    next_offset: int
    bytes_left: int
    records_left: int = INT32_MAX
    """How many records the answer has room for."""
    topic: str = ""
    """The name of the topic, once it is known: errors name it."""
    found_bytes: int = 0
    held_bytes: int = 0
    """What was found takes in memory, about: limits count this."""
    more: bool = False
    """Whether there is more to read that this answer has no room for."""

    async def read(self, logs: LogReader, plan: ReadPlan, max_bytes: int) -> None:
        """Read on, up to the plan's end and about ``max_bytes``.

        Raises KafkaStorageError, and CorruptMessageError or MessageTooLargeError if the first batch
        is damaged or cannot be opened.
        """
        try:
            await self._read(logs, plan, max_bytes)
        except (CorruptMessageError, MessageTooLargeError):
            if not self.found_bytes:
                raise
        finally:
            self.form.close()
        self.more = self.next_offset < plan.upto

    async def _read(self, logs: LogReader, plan: ReadPlan, max_bytes: int) -> None:
        found_before = self.found_bytes
        for _ in range(_EMPTY_READS_MAX):
            room = min(max_bytes, self.bytes_left)
            if self.next_offset >= plan.upto or room <= 0 or self.found_bytes > found_before:
                break
            stored = await logs.read(plan.place, self.next_offset, max_bytes=room, upto=plan.upto)
            if plan.log_start.offset > self.next_offset:
                break  # The rest was cut off meanwhile: the next call gets the error.
            if not stored:
                self.next_offset = plan.upto  # Compaction has left nothing.
                break
            for batch in stored:
                opened = self._open(batch, plan)
                if opened is not None:
                    if self.unpacks:
                        await self._unpack(batch, plan, room)
                    room -= self._add(opened, batch)
                if room <= 0 or self.records_left <= 0:
                    break
                if self.turns.is_over():
                    await asyncio.sleep(0)

    def _open(self, stored: StoredBatch, plan: ReadPlan) -> RecordBatch | None:
        """Open a batch; pass over it, if the reader may not see it."""
        opened = self.form.open(stored)
        if self._visible(opened, stored.base_offset, plan):
            return opened
        self.form.leave_out(opened)
        self.next_offset = stored.base_offset + stored.record_count
        return None

    async def _unpack(self, stored: StoredBatch, plan: ReadPlan, room_bytes: int) -> None:
        room = Room(room_bytes, self.records_left)
        try:
            await self.form.unpack(stored, self.next_offset, room)
        except (CorruptMessageError, MessageTooLargeError) as error:
            raise named(error, stored, plan.partition, self.topic) from error

    def _add(self, opened: RecordBatch, stored: StoredBatch) -> int:
        """Put a batch into the answer; returns the bytes it takes."""
        added = self.form.add(opened, stored)
        self.found_bytes += added.size_bytes
        self.held_bytes += added.memory_bytes
        self.bytes_left -= added.memory_bytes
        self.next_offset = added.next_offset
        self.records_left -= added.record_count
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
