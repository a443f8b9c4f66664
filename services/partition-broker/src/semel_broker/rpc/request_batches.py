"""What arrives in a Produce request: checked batches, ready for the machine.

This is step 1 of protocol.md, section 4, and all else that needs no state. The CRC is computed
here, once in a batch's life.
"""

from msgspec import Struct

from semel.broker.v1.broker_pb2 import PlainRecords
from semel.broker.v1.broker_pb2 import ProducePartition as WirePartition
from semel.common.v1.records_pb2 import Codec, Record, RecordBatch
from semel_broker.machine.values import ProducePartition
from semel_broker.rpc.partition_names import partition_name
from semel_broker.storage.stored_batches import SealedBatch, seal_batch
from semel_common.errors import InvalidRecordError, InvalidRequestError, MessageTooLargeError
from semel_common.ids import NO_PRODUCER_ID
from semel_common.record_batches.batches import (
    Columns,
    check_crc,
    open_payload,
    position_without_key,
    seal,
)
from semel_common.record_batches.compression import check_declared_size
from semel_common.record_batches.crc import crc32c
from semel_common.record_batches.payload_limits import (
    HEADERS_MAX,
    HEADERS_PER_RECORD_MAX,
    OPENED_MAX_BYTES,
)
from semel_runtime.server.form_checks import INT64_MAX, require_int

_CODECS = frozenset(Codec.values())


class ProduceLimits(Struct, frozen=True, kw_only=True):
    """What one request may hold."""

    batch_records_max: int = 1 << 20
    """The most records of a batch."""


class Arrival(Struct, frozen=True):
    """What a request has for one partition."""

    request: ProducePartition
    batches: tuple[SealedBatch, ...]


def receive(partition: WirePartition, *, now_ms: int, limits: ProduceLimits) -> Arrival:
    """Check the batches for one partition, or make one of plain records.

    Raises InvalidRequestError, CorruptMessageError or InvalidRecordError. How large a batch may be,
    is its topic's to say.
    """
    name = partition_name(partition)
    batches = tuple([_receive_batch(batch, limits) for batch in partition.batches])
    if partition.HasField("records"):
        if batches:
            raise InvalidRequestError("batches and records are both given: send one of them")
        batches = (_receive_plain(partition.records, now_ms, limits),)
    if not batches:
        raise InvalidRecordError("there is no batch for the partition")
    headers = tuple([batch.header for batch in batches])
    if not partition.HasField("expected_base_offset"):
        return Arrival(ProducePartition(name=name, batches=headers), batches)
    expected = require_int("expected_base_offset", partition.expected_base_offset)
    request = ProducePartition(name=name, batches=headers, expected_base_offset=expected)
    return Arrival(request, batches)


class KeyChecks:
    """The checks of keys in one request: together, its payloads may open to OPENED_MAX_BYTES.

    This is the one check that opens payloads on their way in, for compacted topics only. It runs on
    the event loop: a request that arrived later would overtake one that waits for a thread.
    """

    def __init__(self) -> None:
        self._left_bytes = OPENED_MAX_BYTES

    def check(self, arrival: Arrival, *, batch_max_bytes: int) -> None:
        """Refuse a batch that has a record without a key: compaction could not keep it apart.

        A batch that is too large for its topic is not opened: the machine refuses it, unless it
        repeats one from before the limit. Raises InvalidRecordError, CorruptMessageError or
        MessageTooLargeError.
        """
        for sealed in arrival.batches:
            if sealed.header.size_bytes > batch_max_bytes:
                continue
            batch = sealed.batch()
            position = position_without_key(batch, self._opened(batch, sealed.payload))
            if position is not None:
                raise InvalidRecordError(
                    f"record {position} of a batch has no key, and the topic is compacted: give"
                    " each record a key (`semel produce` takes it with --key-separator)"
                )

    def _opened(self, batch: RecordBatch, payload: bytes) -> bytes:
        """Open a payload within the rest; after one that cannot be opened, the rest is 0."""
        left_bytes, self._left_bytes = self._left_bytes, 0
        if not left_bytes:
            raise MessageTooLargeError(
                "the payloads for compacted topics in one request are together larger than"
                f" {OPENED_MAX_BYTES} bytes after decompression, or one of them cannot be opened:"
                " send smaller requests",
                size_max_bytes=OPENED_MAX_BYTES,
            )
        opened = open_payload(batch, payload, payload_max_bytes=left_bytes)
        self._left_bytes = left_bytes - len(opened)
        return opened


def _receive_batch(batch: RecordBatch, limits: ProduceLimits) -> SealedBatch:
    if batch.codec not in _CODECS:
        raise InvalidRecordError(f"codec {batch.codec} of a batch is unknown")
    payload = batch.payload
    check_crc(batch, payload)
    check_declared_size(payload, batch.codec)
    sealed = seal_batch(batch, payload)
    _check(sealed, limits)
    if batch.control:
        raise InvalidRecordError("a client sent a marker")
    return sealed


def _receive_plain(plain: PlainRecords, now_ms: int, limits: ProduceLimits) -> SealedBatch:
    records = plain.records
    _check_count(len(records), limits)
    for position, record in enumerate(records):
        if record.timestamp_ms < 0:
            raise InvalidRecordError(
                f"timestamp {record.timestamp_ms} of record {position} is negative"
            )
    _check_headers([len(record.headers) for record in records])
    batch = seal(
        _columns(list(records), now_ms),
        producer_id=plain.producer_id,
        producer_epoch=plain.producer_epoch,
        base_sequence=plain.base_sequence,
        transactional=plain.transactional,
    )
    # Without timestamps, a repeat makes another batch: the sent records are the same.
    sent = crc32c(plain.SerializeToString(deterministic=True))
    sealed = seal_batch(batch, batch.payload, crc32c=sent)
    _check(sealed, limits)
    return sealed


def _columns(records: list[Record], now_ms: int) -> Columns:
    keys = [record.key if record.HasField("key") else None for record in records]
    return Columns(
        values=[record.value if record.HasField("value") else None for record in records],
        keys=None if keys.count(None) == len(keys) else keys,
        timestamps_ms=[record.timestamp_ms or now_ms for record in records],
        headers={
            position: tuple(
                (header.key, header.value if header.HasField("value") else None)
                for header in record.headers
            )
            for position, record in enumerate(records)
            if record.headers
        },
    )


def _check_headers(counts: list[int]) -> None:
    """Refuse plain records with more headers than a reader opens."""
    most, total = max(counts), sum(counts)
    if most > HEADERS_PER_RECORD_MAX or total > HEADERS_MAX:
        raise InvalidRecordError(
            f"a record has {most} headers and the batch has {total}: at most"
            f" {HEADERS_PER_RECORD_MAX} of a record and {HEADERS_MAX} of a batch"
        )


def _check(batch: SealedBatch, limits: ProduceLimits) -> None:
    header = batch.header
    _check_count(header.record_count, limits)
    if batch.max_timestamp_ms < 0:
        raise InvalidRecordError(f"timestamp {batch.max_timestamp_ms} of a batch is negative")
    if header.producer_id < 0 or header.base_sequence < 0:
        raise InvalidRecordError(
            f"producer id {header.producer_id} or base sequence {header.base_sequence} is negative"
        )
    if not 0 <= header.producer_epoch < INT64_MAX:
        raise InvalidRecordError(f"producer epoch {header.producer_epoch} is out of range")
    if header.transactional and header.producer_id == NO_PRODUCER_ID:
        raise InvalidRecordError("a transactional batch has no producer id")


def _check_count(count: int, limits: ProduceLimits) -> None:
    if not 1 <= count <= limits.batch_records_max:
        raise InvalidRecordError(
            f"a batch says {count} records: must be 1 to {limits.batch_records_max}"
        )
