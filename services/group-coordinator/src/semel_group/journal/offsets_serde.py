"""Records of offsets as protobuf."""

from typing import assert_never

from semel.group.journal.v1 import offsets_pb2 as journal
from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_common.ids import TopicPartition
from semel_group.machine.records import (
    OffsetCommitted,
    OffsetRemoved,
    OffsetsRecord,
    ProducerForgotten,
    ProducerState,
    TransactionEnded,
    TransactionNeverGiven,
    TxnOffsetsCommitted,
)
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen


def offsets_to_journal(record: OffsetsRecord) -> JournalRecord:
    """Write one record."""
    match record:
        case OffsetCommitted():
            return JournalRecord(offset_committed=_committed_to_journal(record, record.group_id))
        case OffsetRemoved():
            return JournalRecord(offset_removed=_removed_to_journal(record))
        case TxnOffsetsCommitted():
            return JournalRecord(txn_offsets_committed=_txn_to_journal(record))
        case TransactionEnded():
            return JournalRecord(transaction_ended=_ended_to_journal(record))
        case TransactionNeverGiven():
            return JournalRecord(transaction_never_given=_never_given_to_journal(record))
        case ProducerForgotten():
            forgotten = journal.ProducerForgottenRecord(
                group_id=record.group_id, producer_id=record.producer_id
            )
            return JournalRecord(producer_forgotten=forgotten)
        case ProducerState():
            return JournalRecord(producer_state=_producer_to_journal(record))
        case CoordinatorEpochSeen():
            return JournalRecord(coordinator_epoch_seen=_epoch_to_journal(record))
        case _:
            assert_never(record)


def offsets_from_journal(record: JournalRecord) -> OffsetsRecord:
    """Read one record."""
    match record.WhichOneof("record"):
        case "offset_committed":
            committed = record.offset_committed
            return _committed_from_journal(committed, committed.group_id)
        case "offset_removed":
            return _removed_from_journal(record.offset_removed)
        case "txn_offsets_committed":
            return _txn_from_journal(record.txn_offsets_committed)
        case "transaction_ended":
            return _ended_from_journal(record.transaction_ended)
        case "transaction_never_given":
            return _never_given_from_journal(record.transaction_never_given)
        case "producer_state":
            return _producer_from_journal(record.producer_state)
        case "producer_forgotten":
            forgotten = record.producer_forgotten
            return ProducerForgotten(group_id=forgotten.group_id, producer_id=forgotten.producer_id)
        case "coordinator_epoch_seen":
            return _epoch_from_journal(record.coordinator_epoch_seen)
        case kind:
            raise UnknownRecordError(f"a record of an unknown kind: {kind}")


def _committed_to_journal(offset: OffsetCommitted, group_id: str) -> journal.OffsetCommittedRecord:
    return journal.OffsetCommittedRecord(
        group_id=group_id,
        topic_id=offset.partition.topic_id,
        partition=offset.partition.partition,
        committed_offset=offset.committed_offset,
        metadata=offset.metadata,
        commit_time_ms=offset.commit_time_ms,
    )


def _committed_from_journal(
    offset: journal.OffsetCommittedRecord, group_id: str
) -> OffsetCommitted:
    return OffsetCommitted(
        group_id=group_id,
        partition=TopicPartition(offset.topic_id, offset.partition),
        committed_offset=offset.committed_offset,
        metadata=offset.metadata,
        commit_time_ms=offset.commit_time_ms,
    )


def _removed_to_journal(removed: OffsetRemoved) -> journal.OffsetRemovedRecord:
    topic_id, partition = removed.partition
    return journal.OffsetRemovedRecord(
        group_id=removed.group_id, topic_id=topic_id, partition=partition
    )


def _removed_from_journal(removed: journal.OffsetRemovedRecord) -> OffsetRemoved:
    partition = TopicPartition(removed.topic_id, removed.partition)
    return OffsetRemoved(group_id=removed.group_id, partition=partition)


def _txn_to_journal(commit: TxnOffsetsCommitted) -> journal.TxnOffsetsCommittedRecord:
    return journal.TxnOffsetsCommittedRecord(
        group_id=commit.group_id,
        producer_id=commit.producer_id,
        producer_epoch=commit.producer_epoch,
        base_sequence=commit.base_sequence,
        start_time_ms=commit.start_time_ms,
        offsets=[_committed_to_journal(offset, "") for offset in commit.offsets],
        crc32c=commit.crc32c,
    )


def _txn_from_journal(commit: journal.TxnOffsetsCommittedRecord) -> TxnOffsetsCommitted:
    return TxnOffsetsCommitted(
        group_id=commit.group_id,
        producer_id=commit.producer_id,
        producer_epoch=commit.producer_epoch,
        base_sequence=commit.base_sequence,
        start_time_ms=commit.start_time_ms,
        offsets=tuple(
            _committed_from_journal(offset, commit.group_id) for offset in commit.offsets
        ),
        crc32c=commit.crc32c if commit.HasField("crc32c") else None,
    )


def _ended_to_journal(ended: TransactionEnded) -> journal.TransactionEndedRecord:
    return journal.TransactionEndedRecord(
        group_id=ended.group_id,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        committed=ended.committed,
        ended_ms=ended.ended_ms,
    )


def _ended_from_journal(ended: journal.TransactionEndedRecord) -> TransactionEnded:
    return TransactionEnded(
        group_id=ended.group_id,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        committed=ended.committed,
        ended_ms=ended.ended_ms,
    )


def _never_given_to_journal(
    ended: TransactionNeverGiven,
) -> journal.TransactionNeverGivenRecord:
    return journal.TransactionNeverGivenRecord(
        group_id=ended.group_id,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        current_epoch=ended.current_epoch,
        ended_ms=ended.ended_ms,
    )


def _never_given_from_journal(
    ended: journal.TransactionNeverGivenRecord,
) -> TransactionNeverGiven:
    return TransactionNeverGiven(
        group_id=ended.group_id,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        current_epoch=ended.current_epoch,
        ended_ms=ended.ended_ms,
    )


def _producer_to_journal(state: ProducerState) -> journal.ProducerStateRecord:
    return journal.ProducerStateRecord(
        group_id=state.group_id,
        producer_id=state.producer_id,
        fence=state.fence,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_ended_ms=state.last_ended_ms,
        crc32cs=state.crc32cs,
    )


def _producer_from_journal(state: journal.ProducerStateRecord) -> ProducerState:
    return ProducerState(
        group_id=state.group_id,
        producer_id=state.producer_id,
        fence=state.fence,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_ended_ms=state.last_ended_ms,
        crc32cs=tuple(state.crc32cs),
    )


def _epoch_to_journal(seen: CoordinatorEpochSeen) -> journal.CoordinatorEpochSeenRecord:
    return journal.CoordinatorEpochSeenRecord(
        transaction_log_partition=seen.transaction_log_partition,
        coordinator_epoch=seen.coordinator_epoch,
    )


def _epoch_from_journal(seen: journal.CoordinatorEpochSeenRecord) -> CoordinatorEpochSeen:
    return CoordinatorEpochSeen(
        transaction_log_partition=seen.transaction_log_partition,
        coordinator_epoch=seen.coordinator_epoch,
    )
