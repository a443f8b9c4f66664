"""The machine's records as protobuf on disk, ``semel.broker.journal.v1``, and back.

A table has the plain records; the others follow below it. ``BatchAppended`` and ``MarkerAppended``
could be plain, too: they are written for each partition of each transaction, and to set the fields
of a message one by one is the quickest way.
"""

from collections.abc import Iterable, Iterator

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
        "log_copied": records.LogCopied,
        "log_compacted": records.LogCompacted,
        "log_dropped": records.LogDropped,
        "log_purged": records.LogPurged,
        "log_ids_given": records.LogIdsGiven,
        "log_segment": records.LogSegment,
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
            case records.LogTakenOver():
                _write_taken_over(record, message.log_taken_over)
            case records.LogState():
                _write_log(record, message.log_state)
            case records.ProducerState():
                _write_producer(record, message.producer_state)
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
            case "log_taken_over":
                return _read_taken_over(message.log_taken_over)
            case "log_state":
                return _read_log(message.log_state)
            case "producer_state":
                return _read_producer(message.producer_state)
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


def _write_log(record: records.LogState, message: journal.LogState) -> None:
    message.log_id = record.log_id
    message.topic_id = record.topic_id
    message.topic = record.topic
    message.partition = record.partition
    message.leader_epoch = record.leader_epoch
    message.leader_id = record.leader_id
    message.log_start_offset = record.log_start_offset
    message.log_end_offset = record.log_end_offset
    message.handed_over = record.handed_over
    message.taken_over = record.taken_over
    message.gaps_known = record.gaps_known
    message.gaps.extend(_gaps(record.gaps))


def _read_log(message: journal.LogState) -> records.LogState:
    return records.LogState(
        log_id=message.log_id,
        topic_id=message.topic_id,
        topic=message.topic,
        partition=message.partition,
        leader_epoch=message.leader_epoch,
        leader_id=message.leader_id,
        log_start_offset=message.log_start_offset,
        log_end_offset=message.log_end_offset,
        handed_over=message.handed_over,
        taken_over=message.taken_over,
        gaps=_read_gaps(message.gaps),
        gaps_known=message.gaps_known,
    )


def _write_taken_over(record: records.LogTakenOver, message: journal.LogTakenOver) -> None:
    message.log_id = record.log_id
    message.log_start_offset = record.log_start_offset
    message.log_end_offset = record.log_end_offset
    message.gaps.extend(_gaps(record.gaps))


def _read_taken_over(message: journal.LogTakenOver) -> records.LogTakenOver:
    return records.LogTakenOver(
        log_id=message.log_id,
        log_start_offset=message.log_start_offset,
        log_end_offset=message.log_end_offset,
        gaps=_read_gaps(message.gaps),
    )


def _gaps(gaps: Iterable[records.OffsetRange]) -> Iterator[journal.OffsetRange]:
    for gap in gaps:
        yield journal.OffsetRange(start_offset=gap.start_offset, end_offset=gap.end_offset)


def _read_gaps(messages: Iterable[journal.OffsetRange]) -> tuple[records.OffsetRange, ...]:
    return tuple(
        records.OffsetRange(message.start_offset, message.end_offset) for message in messages
    )


def _write_producer(record: records.ProducerState, message: journal.ProducerState) -> None:
    message.log_id = record.log_id
    message.producer_id = record.producer_id
    message.fence = record.fence
    message.producer_epoch = record.producer_epoch
    message.expected_sequence = record.expected_sequence
    message.open_epochs.extend(record.open_epochs)
    message.last_timestamp_ms = record.last_timestamp_ms
    for batch in record.batches:
        message.batches.add(
            base_sequence=batch.base_sequence,
            record_count=batch.record_count,
            base_offset=batch.base_offset,
            crc32c=batch.crc32c,
        )


def _read_producer(message: journal.ProducerState) -> records.ProducerState:
    return records.ProducerState(
        log_id=message.log_id,
        producer_id=message.producer_id,
        fence=message.fence,
        producer_epoch=message.producer_epoch,
        expected_sequence=message.expected_sequence,
        batches=tuple(
            records.AppendedBatch(
                batch.base_sequence,
                batch.record_count,
                batch.base_offset,
                batch.crc32c if batch.HasField("crc32c") else None,
            )
            for batch in message.batches
        ),
        open_epochs=tuple(message.open_epochs),
        last_timestamp_ms=message.last_timestamp_ms,
    )
