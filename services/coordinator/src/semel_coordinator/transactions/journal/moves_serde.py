"""Records of transaction-log partitions that move, as protobuf."""

from typing import Literal, assert_never

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel_coordinator.transactions.machine import (
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionLogTakenOver,
)
from semel_coordinator.transactions.machine.state.records import MoveRecord

MoveKind = Literal["handed_over", "taken_over", "served", "forgotten"]


def write(record: MoveRecord, out: journal.TransactionsRecord) -> None:
    """Fill an empty message with a record."""
    match record:
        case TransactionLogHandedOver():
            out.handed_over.partition = record.partition
            out.handed_over.leader_epoch = record.leader_epoch
        case TransactionLogTakenOver():
            out.taken_over.partition = record.partition
            out.taken_over.leader_epoch = record.leader_epoch
            out.taken_over.whole = record.whole
        case TransactionLogServed():
            out.served.partition = record.partition
            out.served.coordinator_epoch = record.coordinator_epoch
        case TransactionLogForgotten():
            out.forgotten.partition = record.partition
            out.forgotten.partition_count = record.partition_count
        case _:
            assert_never(record)


def read(kind: MoveKind, message: journal.TransactionsRecord) -> MoveRecord:
    """Read one record."""
    match kind:
        case "handed_over":
            over = message.handed_over
            return TransactionLogHandedOver(
                partition=over.partition, leader_epoch=over.leader_epoch
            )
        case "taken_over":
            taken = message.taken_over
            return TransactionLogTakenOver(
                partition=taken.partition, leader_epoch=taken.leader_epoch, whole=taken.whole
            )
        case "served":
            served = message.served
            return TransactionLogServed(
                partition=served.partition, coordinator_epoch=served.coordinator_epoch
            )
        case "forgotten":
            forgotten = message.forgotten
            return TransactionLogForgotten(
                partition=forgotten.partition, partition_count=forgotten.partition_count
            )
        case _:
            assert_never(kind)
