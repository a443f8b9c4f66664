"""The machine's records as protobuf on disk, ``semel.broker.journal.v1``, and back.

A table has the plain records; the others follow below it. ``BatchAppended`` and ``MarkerAppended``
could be plain, too: they are written for each partition of each transaction, and to set the fields
of a message one by one is the quickest way.
"""

from semel.broker.journal.v1 import log_pb2 as journal
from semel_broker.machine import records
from semel_broker.machine.records import Record
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.metadata_serde import ImageReader, image_to_journal
from semel_runtime.journal.plain_records import PlainRecords
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen

_PLAIN = PlainRecords[Record](
    journal.Record.DESCRIPTOR,
    {
        "producer_fenced": records.ProducerFenced,
        "producer_forgotten": records.ProducerForgotten,
        "coordinator_epoch_seen": CoordinatorEpochSeen,
        "log_start_moved": records.LogStartMoved,
        "log_end_moved": records.LogEndMoved,
        "log_state": records.LogState,
        "log_taken_over": records.LogTakenOver,
        "log_copied": records.LogCopied,
        "log_compacted": records.LogCompacted,
        "log_dropped": records.LogDropped,
        "log_purged": records.LogPurged,
        "log_ids_given": records.LogIdsGiven,
        "log_segment": records.LogSegment,
        "producer_state": records.ProducerState,
        "open_transaction": records.OpenTransaction,
        "aborted_transaction": records.AbortedTransaction,
    },
)


class BrokerSerde:
    """Maps records to bytes and back."""

    def __init__(self) -> None:
        """Know no topic yet."""
        self._images = ImageReader()

    def encode(self, record: Record) -> bytes:
        """Serialize one record."""
        message = journal.Record()
        match record:
            case records.BatchAppended():
                _write_batch(record, message.batch_appended)
            case records.MarkerAppended():
                _write_marker(record, message.marker_appended)
            case ClusterImage():
                message.cluster_image.CopyFrom(image_to_journal(record))
            case _:
                _PLAIN.write(record, message)
        return message.SerializeToString()

    def decode(self, data: bytes) -> Record:
        """Read what `encode` of this or any earlier release wrote."""
        message = journal.Record.FromString(data)
        match message.WhichOneof("record"):
            case "batch_appended":
                return _read_batch(message.batch_appended)
            case "marker_appended":
                return _read_marker(message.marker_appended)
            case "cluster_image":
                return self._images.from_journal(message.cluster_image)
            case kind:
                record = _PLAIN.read(kind, message)
        if record is None:
            raise UnknownRecordError("a record of a kind that this release does not know")
        return record


def _write_batch(record: records.BatchAppended, message: journal.BatchAppended) -> None:
    message.log_id = record.log_id
    message.base_offset = record.base_offset
    message.record_count = record.record_count
    message.producer_id = record.producer_id
    message.producer_epoch = record.producer_epoch
    message.base_sequence = record.base_sequence
    message.transactional = record.transactional
    message.appended_ms = record.appended_ms
    message.size_bytes = record.size_bytes
    if record.begins_segment:
        message.begins_segment = True
    if record.crc32c is not None:
        message.crc32c = record.crc32c


def _read_batch(message: journal.BatchAppended) -> records.BatchAppended:
    return records.BatchAppended(
        log_id=message.log_id,
        base_offset=message.base_offset,
        record_count=message.record_count,
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        base_sequence=message.base_sequence,
        transactional=message.transactional,
        appended_ms=message.appended_ms,
        size_bytes=message.size_bytes,
        begins_segment=message.begins_segment,
        crc32c=message.crc32c if message.HasField("crc32c") else None,
    )


def _write_marker(record: records.MarkerAppended, message: journal.MarkerAppended) -> None:
    message.log_id = record.log_id
    message.offset = record.offset
    message.producer_id = record.producer_id
    message.producer_epoch = record.producer_epoch
    message.committed = record.committed
    message.coordinator_epoch = record.coordinator_epoch
    message.appended_ms = record.appended_ms
    if record.current_epoch is not None:
        message.current_epoch = record.current_epoch


def _read_marker(message: journal.MarkerAppended) -> records.MarkerAppended:
    return records.MarkerAppended(
        log_id=message.log_id,
        offset=message.offset,
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        committed=message.committed,
        coordinator_epoch=message.coordinator_epoch,
        current_epoch=message.current_epoch if message.HasField("current_epoch") else None,
        appended_ms=message.appended_ms,
    )
