"""One log without a broker around it: the writes, the rest after compaction, and the readers."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel_broker.compaction.keys import KeyMap
from semel_broker.compaction.payloads import ReadBatch, open_batch, rewrite
from semel_broker.compaction.rules import Cleaning
from semel_broker.storage.batch_integrity import NEVER
from semel_broker.storage.stored_batches import read_batch, seal_batch, strip
from semel_common.errors import CorruptMessageError
from semel_common.record_batches.batches import Columns, control_batch, decode_records, seal
from semel_runtime.journal.contract import StoredBatch

RETENTION_MS = 1_000
LOG_ID = 7
OPENED_MAX_BYTES = 4_096
"""A batch that is larger when decompressed is left alone, while clients read it."""
DAMAGE = b"\xff\xff damaged \xff"

State: TypeAlias = dict[bytes, bytes | None]
Transaction: TypeAlias = tuple[int, int]


class Write(NamedTuple):
    """A record to be written; without a value it deletes its key."""

    key: bytes | None
    value: bytes | None


class Seen(NamedTuple):
    """A record as a reader sees it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class Log:
    """A log, below and above its last stable offset, and a copy that is never compacted."""

    now_ms: int = 1_000_000
    store: dict[int, StoredBatch] = field(default_factory=dict)
    original: dict[int, StoredBatch] = field(default_factory=dict)
    end_offset: int = 0
    epochs: dict[int, int] = field(default_factory=dict)
    open: dict[Transaction, int] = field(default_factory=dict)
    """First offset of each open transaction, in order."""
    aborted: set[Transaction] = field(default_factory=set)
    compacted_upto: int = 0
    records_left: int = 0

    # -- writing -------------------------------------------------------------------------------

    def append(
        self,
        *writes: Write,
        producer_id: int = 0,
        codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED,
        damaged: bool = False,
    ) -> int:
        """Append a batch, in the producer's transaction if it has an id; return its offset."""
        epoch = self.epochs.setdefault(producer_id, 0)
        columns = Columns(
            values=[write.value for write in writes],
            keys=[write.key for write in writes],
            timestamps_ms=[self.now_ms + position for position in range(len(writes))],
            headers={0: (("position", b"first"),)},
        )
        batch = seal(
            columns,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=producer_id != 0,
            codec=codec,
        )
        if damaged:
            batch.payload = DAMAGE
        if producer_id:
            self.open.setdefault((producer_id, epoch), self.end_offset)
        return self._store(seal_batch(batch, batch.payload).at(LOG_ID, self.end_offset))

    def end(self, producer_id: int, *, commit: bool) -> int:
        """Write the marker of a producer's transaction, which is open; return its offset."""
        epoch = self.epochs[producer_id]
        del self.open[producer_id, epoch]
        if not commit:
            self.aborted.add((producer_id, epoch))
        self.epochs[producer_id] = epoch + 1
        marker = control_batch(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
            coordinator_epoch=1,
            timestamp_ms=self.now_ms,
        )
        payload = marker.payload
        return self._store(
            StoredBatch(
                partition=LOG_ID,
                base_offset=self.end_offset,
                record_count=1,
                max_timestamp_ms=NEVER,
                header=strip(marker),
                payload=payload,
            )
        )

    def _store(self, batch: StoredBatch) -> int:
        self.store[batch.base_offset] = self.original[batch.base_offset] = batch
        self.end_offset += batch.record_count
        return batch.base_offset

    # -- compacting ----------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        return min(self.open.values(), default=self.end_offset)

    def compact(self, *, keys_max: int = 1_000, steps_max: int = 1_000, step: int = 2) -> None:
        """Make a pass; or only so many steps of it, after which the process is killed."""
        keys = self._survey(keys_max)
        cleaning = Cleaning(keys, delete_retention_ms=RETENTION_MS)
        below = [each for each in self.batches() if each.base_offset < keys.upto]
        for number, start in enumerate(range(0, len(below), step)):
            if number == steps_max:
                return
            read = [self._read(each) for each in below[start : start + step]]
            result = rewrite(cleaning, read, now_ms=self.now_ms, payload_max_bytes=OPENED_MAX_BYTES)
            for base_offset in result.removed:
                del self.store[base_offset]
            for batch in result.replaced:
                assert batch.record_count == self.store[batch.base_offset].record_count
                self.store[batch.base_offset] = batch
        self.compacted_upto, self.records_left = keys.upto, cleaning.records_left

    def _survey(self, keys_max: int) -> KeyMap:
        keys = KeyMap(start=self.compacted_upto, keys_max=keys_max)
        for batch in self.batches():
            if self.compacted_upto <= batch.base_offset < self.last_stable_offset:
                opened = open_batch(self._read(batch), payload_max_bytes=OPENED_MAX_BYTES)
                keys.add(opened.content)
                if keys.full:
                    return keys
        keys.reach(self.last_stable_offset)
        return keys

    def _read(self, stored: StoredBatch) -> ReadBatch:
        batch = read_batch(stored)
        transaction = (batch.producer_id, batch.producer_epoch)
        return ReadBatch(stored=stored, aborted=not batch.control and transaction in self.aborted)

    # -- reading -------------------------------------------------------------------------------

    def batches(self, *, original: bool = False) -> list[StoredBatch]:
        """Return what lies in the store."""
        store = self.original if original else self.store
        return [store[base_offset] for base_offset in sorted(store)]

    def next_batch(self, offset: int, upto: int) -> StoredBatch | None:
        """Return the batch that holds an offset, or the next one."""
        for batch in self.batches():
            if batch.base_offset + batch.record_count > offset:
                return batch if batch.base_offset < upto else None
        return None

    def ends_what_is_left(self, stored: StoredBatch) -> bool:
        """Whether a batch is the marker of a transaction that still has records."""
        marker = read_batch(stored)
        return marker.control and any(
            not batch.control
            and (batch.producer_id, batch.producer_epoch)
            == (marker.producer_id, marker.producer_epoch)
            for batch in map(read_batch, self.batches())
        )

    def committed(self, *, original: bool = False, upto: int | None = None) -> list[Seen]:
        """Return the records whose commit is known, from the start up to the last stable offset."""
        end = self.last_stable_offset if upto is None else upto
        return [
            record
            for batch in self.batches(original=original)
            if batch.base_offset < end
            for record in self.visible(batch)
        ]

    def visible(self, stored: StoredBatch) -> list[Seen]:
        """Return the records of a batch, if they are committed."""
        batch = read_batch(stored)
        transaction = (batch.producer_id, batch.producer_epoch)
        hidden = batch.control or transaction in self.aborted or transaction in self.open
        return [] if hidden else records_of(batch)


def records_of(batch: RecordBatch) -> list[Seen]:
    """Return the records of a batch that can be opened, else none."""
    try:
        columns = decode_records(batch)
    except CorruptMessageError:
        return []
    keys = columns.keys or [None] * len(columns.values)
    offsets = columns.offsets(batch.base_offset)
    return [
        Seen(
            offset=offsets[each],
            timestamp_ms=columns.timestamps_ms[each],
            key=keys[each],
            value=columns.values[each],
            headers=columns.headers.get(each, ()),
        )
        for each in range(len(offsets))
    ]


def state_of(records: Iterable[Seen], start: int = 0) -> State:
    """Return the value of each key that has one, for a reader of the records from an offset on."""
    newest: dict[bytes, Seen] = {}
    for record in records:
        if record.key is not None and record.offset >= start:
            newest[record.key] = max(record, newest.get(record.key, record), key=_offset)
    return {key: record.value for key, record in newest.items() if record.value is not None}


def _offset(record: Seen) -> int:
    return record.offset


@dataclass(slots=True)
class Reader:
    """A reader that reads a log bit by bit, while it is compacted."""

    start: int
    started_ms: int
    judges_for_itself: bool
    """Reads uncommitted, and holds records of transactions back until it finds their markers."""
    next_offset: int = 0
    records: list[Seen] = field(default_factory=list)
    """The records that it knows to be committed."""
    held: dict[Transaction, list[Seen]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_offset = self.next_offset or self.start

    def copy(self) -> "Reader":
        """Return another one that has read the same."""
        held = {key: list(records) for key, records in self.held.items()}
        return replace(self, records=list(self.records), held=held)

    def upto(self, log: Log) -> int:
        """Return how far it may read."""
        return log.end_offset if self.judges_for_itself else log.last_stable_offset

    def read(self, log: Log) -> bool:
        """Read one batch; answer whether there was one."""
        upto = self.upto(log)
        stored = log.next_batch(self.next_offset, upto)
        if stored is None:
            self.next_offset = max(self.next_offset, upto)
            return False
        self._take(log, stored, read_batch(stored))
        self.next_offset = stored.base_offset + stored.record_count
        return True

    def _take(self, log: Log, stored: StoredBatch, batch: RecordBatch) -> None:
        transaction = (batch.producer_id, batch.producer_epoch)
        if not self.judges_for_itself:
            self.records += log.visible(stored)
        elif batch.control:
            held = self.held.pop(transaction, [])
            self.records += [] if transaction in log.aborted else held
        elif batch.transactional:
            self.held.setdefault(transaction, []).extend(records_of(batch))
        else:
            self.records += records_of(batch)
