"""The journal's records as protobuf, ``semel/group/journal/v1``."""

from collections.abc import Iterable

from semel.group.journal.v1 import membership_pb2 as membership
from semel.group.journal.v1 import offsets_pb2 as offsets
from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_common.ids import TopicPartition
from semel_group.machine.records import (
    ConsumerGroup,
    CoordinatorEpochSeen,
    Member,
    MemberRemoved,
    OffsetCommitted,
    OffsetRemoved,
    ProducerState,
    Record,
    TransactionEnded,
    TransactionNeverGiven,
    TxnOffsetsCommitted,
)
from semel_runtime.cluster.image import ClusterImage
from semel_runtime.cluster.serde import image_from_journal, image_to_journal


class GroupSerde:
    """Maps records to bytes and back. Implements ``Serde[Record]``."""

    def encode(self, record: Record) -> bytes:
        """Serialize one record."""
        return _to_proto(record).SerializeToString()

    def decode(self, data: bytes) -> Record:
        """Read what this or any earlier release wrote."""
        return _from_proto(JournalRecord.FromString(data))


def _to_proto(record: Record) -> JournalRecord:
    match record:
        case ConsumerGroup():
            return JournalRecord(consumer_group=_group_to_proto(record))
        case Member():
            return JournalRecord(member=_member_to_proto(record))
        case MemberRemoved():
            return JournalRecord(
                member_removed=membership.MemberRemovedRecord(
                    group_id=record.group_id, member_id=record.member_id
                )
            )
        case ClusterImage():
            return JournalRecord(cluster_image=image_to_journal(record))
        case OffsetCommitted():
            return JournalRecord(offset_committed=_offset_to_proto(record, record.group_id))
        case OffsetRemoved():
            return JournalRecord(
                offset_removed=offsets.OffsetRemovedRecord(
                    group_id=record.group_id,
                    topic_id=record.partition.topic_id,
                    partition=record.partition.partition,
                )
            )
        case TxnOffsetsCommitted():
            return JournalRecord(txn_offsets_committed=_txn_offsets_to_proto(record))
        case TransactionEnded():
            return JournalRecord(
                transaction_ended=offsets.TransactionEndedRecord(
                    group_id=record.group_id,
                    producer_id=record.producer_id,
                    producer_epoch=record.producer_epoch,
                    committed=record.committed,
                )
            )
        case TransactionNeverGiven():
            return JournalRecord(
                transaction_never_given=offsets.TransactionNeverGivenRecord(
                    group_id=record.group_id,
                    producer_id=record.producer_id,
                    producer_epoch=record.producer_epoch,
                    current_epoch=record.current_epoch,
                )
            )
        case ProducerState():
            return JournalRecord(producer_state=_producer_to_proto(record))
        case CoordinatorEpochSeen():
            return JournalRecord(
                coordinator_epoch_seen=offsets.CoordinatorEpochSeenRecord(
                    transaction_log_partition=record.transaction_log_partition,
                    coordinator_epoch=record.coordinator_epoch,
                )
            )
