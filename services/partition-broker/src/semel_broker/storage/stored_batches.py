"""Record batches between wire and store.

In the store a batch is its header, a serialized ``RecordBatch`` without offset and payload, and the
payload as it came. A read puts the two together without opening the payload.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from semel.common.v1.records_pb2 import RecordBatch
from semel_broker.machine.records import MarkerAppended, Record
from semel_broker.machine.values import BatchHeader
from semel_broker.storage.batch_integrity import NEVER, header_at
from semel_common.record_batches.batches import control_batch
from semel_runtime.journal.contract import StoredBatch


class SealedBatch(Struct, frozen=True, kw_only=True):
    """A batch that was checked and has no offset yet."""

    header: BatchHeader
    max_timestamp_ms: int
    stored_header: bytes
    payload: bytes

    def batch(self) -> RecordBatch:
        """Return it as a whole, without an offset."""
        batch = RecordBatch.FromString(self.stored_header)
        batch.payload = self.payload
        return batch

    def at(self, log_id: int, base_offset: int) -> StoredBatch:
        """Give the batch its place."""
        return StoredBatch(
            partition=log_id,
            base_offset=base_offset,
            record_count=self.header.record_count,
            max_timestamp_ms=self.max_timestamp_ms,
            header=header_at(base_offset, self.stored_header),
            payload=self.payload,
        )


def seal_batch(batch: RecordBatch, payload: bytes, *, crc32c: int | None = None) -> SealedBatch:
    """Take a checked batch apart: the message itself becomes the header that is stored.

    ``crc32c`` is what a repeat of it has in common with it; None: that of the batch.
    """
    batch.ClearField("delete_horizon_ms")  # compaction's, not a client's
    return SealedBatch(
        header=BatchHeader(
            record_count=batch.record_count,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.transactional,
            size_bytes=len(payload),
            crc32c=batch.crc32c if crc32c is None else crc32c,
        ),
        max_timestamp_ms=batch.max_timestamp_ms,
        stored_header=strip(batch),
        payload=payload,
    )


def markers(records: Iterable[Record]) -> Iterator[StoredBatch]:
    """Make the control batches of the markers among the records.

    The marker of one transaction is the same in all partitions, so it is made once.
    """
    made: dict[tuple[int, int, bool, int, int], tuple[bytes, bytes]] = {}
    for record in records:
        if isinstance(record, MarkerAppended):
            key = (
                record.producer_id,
                record.producer_epoch,
                record.committed,
                record.coordinator_epoch,
                record.appended_ms,
            )
            header, payload = made.get(key) or made.setdefault(key, _marker(record))
            yield StoredBatch(
                partition=record.log_id,
                base_offset=record.offset,
                record_count=1,
                max_timestamp_ms=NEVER,
                header=header_at(record.offset, header),
                payload=payload,
            )


def read_header(stored: StoredBatch) -> RecordBatch:
    """Return a stored batch without offset and payload."""
    return RecordBatch.FromString(stored.header)


def read_batch(stored: StoredBatch) -> RecordBatch:
    """Return a stored batch as a whole."""
    batch = read_header(stored)
    batch.base_offset = stored.base_offset
    batch.payload = stored.payload
    return batch


def strip(batch: RecordBatch) -> bytes:
    """Serialize a batch as it is stored: without offset and payload, which are taken from it.

    Fields that this release does not know go, too. ``header_at`` gives it its place.
    """
    batch.ClearField("base_offset")
    batch.ClearField("payload")
    batch.ClearField("stored_crc32c")
    batch.DiscardUnknownFields()
    return batch.SerializeToString()


def _marker(record: MarkerAppended) -> tuple[bytes, bytes]:
    """Return header and payload of a marker."""
    batch = control_batch(
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        committed=record.committed,
        coordinator_epoch=record.coordinator_epoch,
        timestamp_ms=record.appended_ms,
    )
    payload = batch.payload
    return strip(batch), payload
