"""Server-side assignors: from what members subscribe to, to what each is to hold.

An assignor is a pure function: the same members and topics give the same target, whoever computes
it. It gives every partition of every subscribed topic to exactly one subscriber.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from semel_common.ids import TopicPartition

Target: TypeAlias = dict[str, frozenset[TopicPartition]]
"""What each member is to hold, by member id."""

Assignor: TypeAlias = Callable[[Mapping[str, frozenset[str]], Mapping[str, int]], Target]
"""From the topic ids of each member, and the partitions of each topic id, to the target."""


def assign_range(subscriptions: Mapping[str, frozenset[str]], topics: Mapping[str, int]) -> Target:
    """Give each subscriber of a topic a range of its partitions, in the order of member ids.

    Ranges differ by one partition at most, the longer ones first. Topics with as many partitions
    and the same subscribers are cut alike, so that partition p of both goes to the same member.
    Source: Kafka's RangeAssignor.
    """
    target: dict[str, set[TopicPartition]] = {member_id: set() for member_id in subscriptions}
    for topic_id, partition_count in topics.items():
        subscribers = sorted(m for m, topic_ids in subscriptions.items() if topic_id in topic_ids)
        for member_id, partitions in _ranges(subscribers, partition_count):
            target[member_id].update(TopicPartition(topic_id, each) for each in partitions)
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


def _ranges(members: list[str], partition_count: int) -> Iterable[tuple[str, range]]:
    """Cut partitions 0 to ``partition_count`` - 1 into one range for each member."""
    start = 0
    for index, member_id in enumerate(members):
        each, longer = divmod(partition_count, len(members))
        end = start + each + (index < longer)
        yield member_id, range(start, end)
        start = end


RANGE = "range"

ASSIGNORS: Mapping[str, Assignor] = {RANGE: assign_range}
"""Every assignor, by the name by which members ask for it."""

DEFAULT_ASSIGNOR = RANGE


def preferred_assignor(asked_for: Iterable[str]) -> str:
    """Return the assignor that most members asked for; who asked for none (empty) takes any."""
    votes = Counter(name for name in asked_for if name)
    return min(votes, key=lambda name: (-votes[name], name), default=DEFAULT_ASSIGNOR)
