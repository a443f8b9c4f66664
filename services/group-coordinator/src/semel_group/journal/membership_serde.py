"""Groups and members as protobuf. Entries are sorted, so that equal records are equal bytes."""

from collections.abc import Iterable

from semel.group.journal.v1 import membership_pb2 as journal
from semel_common.ids import TopicPartition
from semel_group.machine.records import (
    ConsumerGroup,
    Member,
)


def group_to_journal(group: ConsumerGroup) -> journal.ConsumerGroupRecord:
    """Write a group."""
    return journal.ConsumerGroupRecord(
        group_id=group.group_id,
        group_epoch=group.group_epoch,
        assignor=group.assignor,
        topics=[
            journal.SubscribedTopic(topic_id=topic_id, partition_count=count)
            for topic_id, count in sorted(group.topics.items())
        ],
        target=[
            journal.MemberTarget(member_id=member_id, topics=_by_topic(partitions))
            for member_id, partitions in sorted(group.target.items())
        ],
        unsubscribed=[
            journal.UnsubscribedTopic(topic_id=topic_id, since_ms=since_ms)
            for topic_id, since_ms in sorted(group.unsubscribed.items())
        ],
    )


def group_from_journal(group: journal.ConsumerGroupRecord) -> ConsumerGroup:
    """Read a group."""
    return ConsumerGroup(
        group_id=group.group_id,
        group_epoch=group.group_epoch,
        assignor=group.assignor,
        topics={each.topic_id: each.partition_count for each in group.topics},
        target={
            member.member_id: frozenset(
                TopicPartition(topic.topic_id, partition)
                for topic in member.topics
                for partition in topic.partitions
            )
            for member in group.target
        },
        unsubscribed={each.topic_id: each.since_ms for each in group.unsubscribed},
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[journal.TopicPartitionList]:
    topics: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return [
        journal.TopicPartitionList(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in topics.items()
    ]


def member_to_journal(member: Member) -> journal.MemberRecord:
    """Write a member."""
    return journal.MemberRecord(
        group_id=member.group_id,
        member_id=member.member_id,
        instance_id=member.instance_id,
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topics=sorted(member.subscribed_topics),
        server_assignor=member.server_assignor,
        held=[
            journal.HeldPartition(
                topic_id=partition.topic_id,
                partition=partition.partition,
                epoch=epoch,
                revoking=partition in member.revoking,
            )
            for partition, epoch in sorted(member.held.items())
        ],
    )


def member_from_journal(member: journal.MemberRecord) -> Member:
    """Read a member."""
    held = {TopicPartition(ticket.topic_id, ticket.partition): ticket for ticket in member.held}
    return Member(
        group_id=member.group_id,
        member_id=member.member_id,
        instance_id=member.instance_id,
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topics=frozenset(member.subscribed_topics),
        server_assignor=member.server_assignor,
        held={partition: each.epoch for partition, each in held.items()},
        revoking=frozenset(partition for partition, each in held.items() if each.revoking),
    )
