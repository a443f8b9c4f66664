"""Records keep everything on their way to the disk and back."""

import pytest
from group_harness import GROUP, image, orders, partitions

from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_common.ids import TopicPartition
from semel_group.journal import GroupSerde
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
from semel_runtime.machine import UnknownRecordError
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen

OFFSET = OffsetCommitted(
    group_id=GROUP,
    partition=TopicPartition("orders-id", 3),
    committed_offset=1 << 40,
    metadata="ä",
    commit_time_ms=5,
)
RECORDS: list[Record] = [
    image({"orders": 2}),
    ConsumerGroup(
        group_id=GROUP,
        group_epoch=3,
        assignor="range",
        topics={"orders-id": 4, "income-id": 1},
        target={"a": orders(0, 1) | partitions("income", 0), "b": frozenset()},
        unsubscribed={"gone-id": 1 << 40},
    ),
    Member(
        group_id=GROUP,
        member_id="a",
        instance_id="s",
        member_epoch=3,
        previous_member_epoch=1,
        rebalance_timeout_ms=60_000,
        subscribed_topics=frozenset({"orders", "income"}),
        server_assignor="range",
        held={TopicPartition("orders-id", 0): 1, TopicPartition("orders-id", 2): 3},
        revoking=orders(2),
    ),
    MemberRemoved(group_id=GROUP, member_id="a"),
    GroupDeleted(group_id=GROUP),
    MemberEpochsGiven(group_epoch=1 << 40),
    OFFSET,
    OffsetRemoved(group_id=GROUP, partition=TopicPartition("orders-id", 3)),
    TxnOffsetsCommitted(
        group_id=GROUP,
        producer_id=(7 << 48) | 1,
        producer_epoch=2,
        base_sequence=4,
        start_time_ms=9,
        offsets=(OFFSET,),
    ),
    TransactionEnded(group_id=GROUP, producer_id=1, producer_epoch=2, committed=True, ended_ms=8),
    TransactionNeverGiven(
        group_id=GROUP, producer_id=1, producer_epoch=9, current_epoch=3, ended_ms=8
    ),
    ProducerState(
        group_id=GROUP, producer_id=1, fence=2, producer_epoch=-1, last_sequence=-1, last_ended_ms=7
    ),
    ProducerForgotten(group_id=GROUP, producer_id=1),
    CoordinatorEpochSeen(transaction_log_partition=49, coordinator_epoch=6),
    GroupsHandedOver(partition=3, leader_epoch=4),
    GroupsTakenOver(partition=3, leader_epoch=4, whole=True),
    GroupsServed(partition=3),
    GroupsForgotten(partition=3),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_the_same_after_reading_it_again(record: Record) -> None:
    serde = GroupSerde()
    assert serde.decode(serde.encode(record)) == record


def test_every_kind_of_record_on_disk_is_tested() -> None:
    written = [JournalRecord.FromString(GroupSerde().encode(each)) for each in RECORDS]
    kinds = {each.WhichOneof("record") for each in written}
    assert kinds == set(JournalRecord.DESCRIPTOR.fields_by_name)


def test_a_record_of_an_unknown_kind_is_not_read() -> None:
    with pytest.raises(UnknownRecordError, match="a record of an unknown kind: None"):
        GroupSerde().decode(b"")
