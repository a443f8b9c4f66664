"""Records of partitions of groups that move, as protobuf."""

from typing import assert_never

from semel.group.journal.v1 import moves_pb2 as journal
from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_group.machine.records import (
    GroupsForgotten,
    GroupsHandedOver,
    GroupsServed,
    GroupsTakenOver,
    MoveRecord,
)


def moves_to_journal(record: MoveRecord) -> JournalRecord:
    """Write one record."""
    match record:
        case GroupsHandedOver(partition=partition, leader_epoch=leader_epoch):
            handed_over = journal.GroupsHandedOverRecord(
                partition=partition, leader_epoch=leader_epoch
            )
            return JournalRecord(groups_handed_over=handed_over)
        case GroupsTakenOver(partition=partition, leader_epoch=leader_epoch, whole=whole):
            taken_over = journal.GroupsTakenOverRecord(
                partition=partition, leader_epoch=leader_epoch, whole=whole
            )
            return JournalRecord(groups_taken_over=taken_over)
        case GroupsServed(partition=partition):
            served = journal.GroupsServedRecord(partition=partition)
            return JournalRecord(groups_served=served)
        case GroupsForgotten(partition=partition):
            forgotten = journal.GroupsForgottenRecord(partition=partition)
            return JournalRecord(groups_forgotten=forgotten)
        case _:
            assert_never(record)


def moves_from_journal(record: JournalRecord) -> MoveRecord | None:
    """Read one record; None if it is not about moves."""
    match record.WhichOneof("record"):
        case "groups_handed_over":
            over = record.groups_handed_over
            return GroupsHandedOver(partition=over.partition, leader_epoch=over.leader_epoch)
        case "groups_taken_over":
            taken = record.groups_taken_over
            return GroupsTakenOver(
                partition=taken.partition, leader_epoch=taken.leader_epoch, whole=taken.whole
            )
        case "groups_served":
            return GroupsServed(partition=record.groups_served.partition)
        case "groups_forgotten":
            return GroupsForgotten(partition=record.groups_forgotten.partition)
        case _:
            return None
