"""The reasons for a new target of a group, and its computation.

The group epoch rises whenever a member comes or goes, asks for other topics or for another
assignor, and when a subscribed topic is created, deleted or gets partitions. With each epoch goes
one target.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from semel_group.machine.membership.assignment import Target
from semel_group.machine.membership.assignor import (
    ASSIGNORS,
    DEFAULT_ASSIGNOR,
    preferred_assignor,
)
from semel_group.machine.records import ConsumerGroup, Member
from semel_runtime.cluster.metadata_image import Topic


def new_group(group_id: str, group_epoch: int) -> ConsumerGroup:
    """Return a group that no member has joined yet."""
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
    speaker: str = "",
) -> ConsumerGroup:
    """Return the group at its next epoch, with the target for these members.

    ``topics`` are the existing ones of the subscribed topics, by name. ``retention_ms`` is how long
    the group remembers the time since when no member subscribes to a topic. ``speaker`` is the
    member that is answered, if one is: it can take free partitions at once.
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
        target=ASSIGNORS[assignor](
            subscriptions, partitions, _last_target(group, ordered), speaker=speaker
        ),
        unsubscribed={
            topic_id: since_ms
            for topic_id, since_ms in (
                dict(group.unsubscribed) | dict.fromkeys(group.topics, now_ms)
            ).items()
            if topic_id not in partitions and now_ms - since_ms < retention_ms
        },
    )


def _last_target(group: ConsumerGroup, members: Iterable[Member]) -> Target:
    """Return what members are to keep, if that is possible.

    Of a partition that is free no member has heard yet, so it need not stay with the member that it
    was meant for, which may never speak again. What waits for a member that is away stays.
    """
    held = {partition for member in members for partition in member.held}
    return {
        member.member_id: partitions if member.is_away else partitions & held
        for member in members
        if (partitions := group.target.get(member.member_id)) is not None
    }


def renamed(group: ConsumerGroup, old: str, new: str) -> ConsumerGroup:
    """Return the group with one member under another id. The targets stay as they are."""
    target = dict(group.target)
    target[new] = target.pop(old)
    return replace(group, target=target)


def _rank(member: Member) -> tuple[bool, str]:
    """Put static members first: by their instance ids they keep their places over restarts."""
    return not member.instance_id, member.instance_id or member.member_id


def partition_counts(topics: Mapping[str, Topic]) -> dict[str, int]:
    """Return the number of partitions of each topic, by its id."""
    return {topic.topic_id: len(topic.partitions) for topic in topics.values()}
