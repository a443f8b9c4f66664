"""The range assignor: to each member a stretch of each topic."""

from collections.abc import Iterable, Mapping

from semel_common.ids import TopicPartition
from semel_group.machine.membership.assignment import Subscriptions, Target


def assign_range(
    subscriptions: Subscriptions, topics: Mapping[str, int], last: Target, *, speaker: str = ""
) -> Target:
    """Give each subscriber of a topic a range of its partitions, in the order of members.

    Ranges differ by one partition at most, the longer ones first. Topics with as many partitions
    and the same subscribers are cut alike, so that partition p of both goes to the same member.
    Who held what before does not matter. Source: Kafka's RangeAssignor.
    """
    del last, speaker
    target: dict[str, set[TopicPartition]] = {member_id: set() for member_id in subscriptions}
    for topic_id, partition_count in topics.items():
        subscribers = [each for each, topic_ids in subscriptions.items() if topic_id in topic_ids]
        for member_id, partitions in _ranges(subscribers, partition_count):
            target[member_id].update(
                TopicPartition(topic_id, partition) for partition in partitions
            )
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


def _ranges(members: list[str], partition_count: int) -> Iterable[tuple[str, range]]:
    """Cut partitions 0 to ``partition_count`` - 1 into one range for each member."""
    start = 0
    for index, member_id in enumerate(members):
        each, longer = divmod(partition_count, len(members))
        end = start + each + (index < longer)
        yield member_id, range(start, end)
        start = end
