"""When a group needs a new target, and what it is.

The group epoch rises whenever a member comes or goes, asks for other topics or for another
assignor, and when a subscribed topic is created, deleted or gets partitions. With each epoch goes
one target.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from semel_group.machine.membership.assignor import (
    ASSIGNORS,
    DEFAULT_ASSIGNOR,
    preferred_assignor,
)
from semel_group.machine.records import ConsumerGroup, Member
from semel_runtime.cluster.image import Topic


def new_group(group_id: str, group_epoch: int) -> ConsumerGroup:
    """Return a group that nobody has joined yet."""
    return ConsumerGroup(
        group_id=group_id, group_epoch=group_epoch, assignor=DEFAULT_ASSIGNOR, topics={}, target={}
    )


def rebalanced(
    group: ConsumerGroup,
    members: Iterable[Member],
    topics: Mapping[str, Topic],
    *,
    now_ms: int,
    retention_ms: int,
) -> ConsumerGroup:
    """Return the group at its next epoch, with the target for these members.

    ``topics`` are those subscribed topics that exist, by name. ``retention_ms`` is how long it is
    remembered since when nobody subscribes to a topic.
    """
    ordered = sorted(members, key=_rank)
    assignor = preferred_assignor(member.server_assignor for member in ordered)
    subscriptions = {
        member.member_id: frozenset(
            topics[name].topic_id for name in member.subscribed_topics if name in topics
        )
        for member in ordered
    }
    partitions = partition_counts(topics)
    return replace(
        group,
        group_epoch=group.group_epoch + 1,
        assignor=assignor,
        topics=partitions,
        target=ASSIGNORS[assignor](subscriptions, partitions, group.target),
        unsubscribed={
            topic_id: since_ms
            for topic_id, since_ms in (
                dict(group.unsubscribed) | dict.fromkeys(group.topics, now_ms)
            ).items()
            if topic_id not in partitions and now_ms - since_ms < retention_ms
        },
    )


def renamed(group: ConsumerGroup, old: str, new: str) -> ConsumerGroup:
    """Return the group with one member under another id. What is to be held stays as it is."""
    target = dict(group.target)
    target[new] = target.pop(old)
    return replace(group, target=target)


def _rank(member: Member) -> tuple[bool, str]:
    """Put static members first: by their instance ids they keep their places over restarts."""
    return not member.instance_id, member.instance_id or member.member_id


def partition_counts(topics: Mapping[str, Topic]) -> dict[str, int]:
    """Return the number of partitions of each topic, by its id."""
    return {topic.topic_id: len(topic.partitions) for topic in topics.values()}
