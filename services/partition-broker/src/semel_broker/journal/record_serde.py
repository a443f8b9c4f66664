"""The machine's records as protobuf on disk, ``semel.broker.journal.v1``, and back.

Fields are set one by one on the message within ``Record``: of all ways to fill a message this is
the quickest, and two records are written for each partition of each transaction.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from semel.broker.journal.v1 import log_pb2 as journal
from semel_broker.machine import records
from semel_broker.machine.records import Record
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.metadata_serde import ImageReader, image_to_journal
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen


class BrokerSerde:
    """Maps records to bytes and back."""

    def __init__(self) -> None:
        """Know no topic yet."""
        self._images = ImageReader()

    def encode(self, record: Record) -> bytes:  # noqa: C901, PLR0912 - one case for each record
        """Serialize one record."""
        message = journal.Record()
        match record:
            case records.BatchAppended():
                _write_batch(record, message.batch_appended)
            case records.MarkerAppended():
                _write_marker(record, message.marker_appended)
            case records.ProducerFenced():
                _write_fenced(record, message.producer_fenced)
            case records.ProducerForgotten():
                message.producer_forgotten.log_id = record.log_id
                message.producer_forgotten.producer_id = record.producer_id
            case CoordinatorEpochSeen():
                _write_coordinator_epoch(record, message.coordinator_epoch_seen)
            case records.LogStartMoved():
                message.log_start_moved.log_id = record.log_id
                message.log_start_moved.log_start_offset = record.log_start_offset
            case records.LogEndMoved():
                message.log_end_moved.log_id = record.log_id
                message.log_end_moved.log_end_offset = record.log_end_offset
            case records.LogCopied():
                message.log_copied.log_id = record.log_id
                message.log_copied.log_end_offset = record.log_end_offset
            case records.LogTakenOver():
                _write_taken_over(record, message.log_taken_over)
            case records.LogCompacted():
                _write_compacted(record, message.log_compacted)
            case records.LogState():
                _write_log(record, message.log_state)
            case records.LogDropped():
                message.log_dropped.log_id = record.log_id
            case records.LogPurged():
                message.log_purged.log_id = record.log_id
            case records.ProducerState():
                _write_producer(record, message.producer_state)
            case records.OpenTransaction():
                _write_open(record, message.open_transaction)
            case records.AbortedTransaction():
                _write_aborted(record, message.aborted_transaction)
            case records.LogSegment():
                _write_segment(record, message.log_segment)
            case records.LogIdsGiven():
                message.log_ids_given.next_log_id = record.next_log_id
            case ClusterImage():
                message.cluster_image.CopyFrom(image_to_journal(record))
            case _:
                assert_never(record)
        return message.SerializeToString()

    def decode(self, data: bytes) -> Record:  # noqa: C901, PLR0912 - one case for each record
        """Read what `encode` of this or any earlier release wrote."""
        message = journal.Record.FromString(data)
        kind = message.WhichOneof("record")
        match kind:
            case "batch_appended":
                return _read_batch(message.batch_appended)
            case "marker_appended":
                return _read_marker(message.marker_appended)
            case "producer_fenced":
                return _read_fenced(message.producer_fenced)
            case "producer_forgotten":
                return records.ProducerForgotten(
                    log_id=message.producer_forgotten.log_id,
                    producer_id=message.producer_forgotten.producer_id,
                )
            case "coordinator_epoch_seen":
                return _read_coordinator_epoch(message.coordinator_epoch_seen)
            case "log_start_moved":
                return _read_log_start(message.log_start_moved)
            case "log_end_moved":
                moved = message.log_end_moved
                return records.LogEndMoved(log_id=moved.log_id, log_end_offset=moved.log_end_offset)
            case "log_copied":
                copied = message.log_copied
                return records.LogCopied(log_id=copied.log_id, log_end_offset=copied.log_end_offset)
            case "log_taken_over":
                return _read_taken_over(message.log_taken_over)
            case "log_compacted":
                return _read_compacted(message.log_compacted)
            case "log_state":
                return _read_log(message.log_state)
            case "log_dropped":
                return records.LogDropped(log_id=message.log_dropped.log_id)
            case "log_purged":
                return records.LogPurged(log_id=message.log_purged.log_id)
            case "producer_state":
                return _read_producer(message.producer_state)
            case "open_transaction":
                return _read_open(message.open_transaction)
            case "aborted_transaction":
                return _read_aborted(message.aborted_transaction)
            case "log_segment":
                return _read_segment(message.log_segment)
            case "log_ids_given":
                return records.LogIdsGiven(next_log_id=message.log_ids_given.next_log_id)
            case "cluster_image":
                return self._images.from_journal(message.cluster_image)
            case None:
                raise UnknownRecordError("a record of a kind that this release does not know")
            case _:
                assert_never(kind)


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


def _write_segment(record: records.LogSegment, message: journal.LogSegment) -> None:
    message.log_id = record.log_id
    message.base_offset = record.base_offset
    message.size_bytes = record.size_bytes
    message.start_ms = record.start_ms
    message.last_ms = record.last_ms


def _read_segment(message: journal.LogSegment) -> records.LogSegment:
    return records.LogSegment(
        log_id=message.log_id,
        base_offset=message.base_offset,
        size_bytes=message.size_bytes,
        start_ms=message.start_ms,
        last_ms=message.last_ms,
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


def _write_fenced(record: records.ProducerFenced, message: journal.ProducerFenced) -> None:
    message.log_id = record.log_id
    message.producer_id = record.producer_id
    message.fence = record.fence
    message.fenced_ms = record.fenced_ms


def _read_fenced(message: journal.ProducerFenced) -> records.ProducerFenced:
    return records.ProducerFenced(
        log_id=message.log_id,
        producer_id=message.producer_id,
        fence=message.fence,
        fenced_ms=message.fenced_ms,
    )


def _write_coordinator_epoch(
    record: CoordinatorEpochSeen, message: journal.CoordinatorEpochSeen
) -> None:
    message.transaction_log_partition = record.transaction_log_partition
    message.coordinator_epoch = record.coordinator_epoch


def _read_coordinator_epoch(message: journal.CoordinatorEpochSeen) -> CoordinatorEpochSeen:
    return CoordinatorEpochSeen(
        transaction_log_partition=message.transaction_log_partition,
        coordinator_epoch=message.coordinator_epoch,
    )


def _read_log_start(message: journal.LogStartMoved) -> records.LogStartMoved:
    return records.LogStartMoved(log_id=message.log_id, log_start_offset=message.log_start_offset)


def _write_compacted(record: records.LogCompacted, message: journal.LogCompacted) -> None:
    message.log_id = record.log_id
    message.upto = record.upto
    message.records_left = record.records_left
    message.size_bytes_left = record.size_bytes_left


def _read_compacted(message: journal.LogCompacted) -> records.LogCompacted:
    return records.LogCompacted(
        log_id=message.log_id,
        upto=message.upto,
        records_left=message.records_left,
        size_bytes_left=message.size_bytes_left,
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


def _write_open(record: records.OpenTransaction, message: journal.OpenTransaction) -> None:
    message.log_id = record.log_id
    message.producer_id = record.producer_id
    message.producer_epoch = record.producer_epoch
    message.first_offset = record.first_offset
    message.start_ms = record.start_ms
    if record.superseded_ms is not None:
        message.superseded_ms = record.superseded_ms


def _read_open(message: journal.OpenTransaction) -> records.OpenTransaction:
    return records.OpenTransaction(
        log_id=message.log_id,
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        first_offset=message.first_offset,
        start_ms=message.start_ms,
        superseded_ms=message.superseded_ms if message.HasField("superseded_ms") else None,
    )


def _write_aborted(record: records.AbortedTransaction, message: journal.AbortedTransaction) -> None:
    message.log_id = record.log_id
    message.producer_id = record.producer_id
    message.producer_epoch = record.producer_epoch
    message.first_offset = record.first_offset
    message.last_offset = record.last_offset


def _read_aborted(message: journal.AbortedTransaction) -> records.AbortedTransaction:
    return records.AbortedTransaction(
        log_id=message.log_id,
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        first_offset=message.first_offset,
        last_offset=message.last_offset,
    )
