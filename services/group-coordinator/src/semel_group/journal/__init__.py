"""The group coordinator's records as bytes, ``semel/group/journal/v1``.

A table has the plain records; the others have files of their own.
"""

from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_group.journal.membership_serde import (
    group_from_journal,
    group_to_journal,
    member_from_journal,
    member_to_journal,
)
from semel_group.journal.offsets_serde import (
    committed_from_journal,
    committed_to_journal,
    removed_from_journal,
    removed_to_journal,
    txn_from_journal,
    txn_to_journal,
)
from semel_group.machine.records import (
    ConsumerGroup,
    GroupDeleted,
    GroupsForgotten,
    GroupsHandedOver,
    GroupsServed,
    GroupsTakenOver,
    Member,
    MemberEpochsGiven,
    MemberRemoved,
    OffsetCommitted,
    OffsetRemoved,
    ProducerForgotten,
    ProducerState,
    Record,
    TransactionEnded,
    TransactionNeverGiven,
    TxnOffsetsCommitted,
)
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.metadata_serde import ImageReader, image_to_journal
from semel_runtime.journal.plain_records import PlainRecords
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen

_PLAIN = PlainRecords[Record](
    JournalRecord.DESCRIPTOR,
    {
        "member_removed": MemberRemoved,
        "group_deleted": GroupDeleted,
        "member_epochs_given": MemberEpochsGiven,
        "transaction_ended": TransactionEnded,
        "transaction_never_given": TransactionNeverGiven,
        "producer_state": ProducerState,
        "producer_forgotten": ProducerForgotten,
        "coordinator_epoch_seen": CoordinatorEpochSeen,
        "groups_handed_over": GroupsHandedOver,
        "groups_taken_over": GroupsTakenOver,
        "groups_served": GroupsServed,
        "groups_forgotten": GroupsForgotten,
    },
)


class GroupSerde:
    """Maps records to bytes and back. Implements ``Serde``."""

    def __init__(self) -> None:
        """Know no topic yet."""
        self._images = ImageReader()

    def encode(self, record: Record) -> bytes:
        """Serialize one record."""
        return _to_journal(record).SerializeToString()

    def decode(self, data: bytes) -> Record:
        """Read what this or any earlier release wrote."""
        journal = JournalRecord.FromString(data)
        match journal.WhichOneof("record"):
            case "cluster_image":
                return self._images.from_journal(journal.cluster_image)
            case "consumer_group":
                return group_from_journal(journal.consumer_group)
            case "member":
                return member_from_journal(journal.member)
            case "offset_committed":
                committed = journal.offset_committed
                return committed_from_journal(committed, committed.group_id)
            case "offset_removed":
                return removed_from_journal(journal.offset_removed)
            case "txn_offsets_committed":
                return txn_from_journal(journal.txn_offsets_committed)
            case kind:
                record = _PLAIN.read(kind, journal)
        if record is None:
            raise UnknownRecordError(f"a record of an unknown kind: {kind}")
        return record


def _to_journal(record: Record) -> JournalRecord:
    match record:
        case ClusterImage():
            return JournalRecord(cluster_image=image_to_journal(record))
        case ConsumerGroup():
            return JournalRecord(consumer_group=group_to_journal(record))
        case Member():
            return JournalRecord(member=member_to_journal(record))
        case OffsetCommitted():
            return JournalRecord(offset_committed=committed_to_journal(record, record.group_id))
        case OffsetRemoved():
            return JournalRecord(offset_removed=removed_to_journal(record))
        case TxnOffsetsCommitted():
            return JournalRecord(txn_offsets_committed=txn_to_journal(record))
        case _:
            journal = JournalRecord()
            _PLAIN.write(record, journal)
            return journal
