"""The group coordinator's records as bytes, ``semel/group/journal/v1``."""

from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_group.journal.membership_serde import membership_from_journal, membership_to_journal
from semel_group.journal.moves_serde import moves_from_journal, moves_to_journal
from semel_group.journal.offsets_serde import offsets_from_journal, offsets_to_journal
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
    Record,
)
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.metadata_serde import ImageReader, image_to_journal


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
        record = JournalRecord.FromString(data)
        if record.HasField("cluster_image"):
            return self._images.from_journal(record.cluster_image)
        return (
            membership_from_journal(record)
            or moves_from_journal(record)
            or offsets_from_journal(record)
        )


def _to_journal(record: Record) -> JournalRecord:
    match record:
        case ClusterImage():
            return JournalRecord(cluster_image=image_to_journal(record))
        case ConsumerGroup() | Member() | MemberRemoved() | GroupDeleted() | MemberEpochsGiven():
            return membership_to_journal(record)
        case GroupsHandedOver() | GroupsTakenOver() | GroupsServed() | GroupsForgotten():
            return moves_to_journal(record)
        case _:
            return offsets_to_journal(record)
