"""Which partitions of a topic a command means.

Who asks a service for one that is not there asks again until its time is over, for it may be about
to be made: a command says at once that it is not there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semel_cli.session import CommandError

if TYPE_CHECKING:
    from aiosemel import SemelClient, TopicPartition


async def partitions_of(
    client: "SemelClient", topic: str, numbers: Sequence[int] | None
) -> "list[TopicPartition]":
    """Return those with these numbers, or all if it is None.

    Raises UnknownTopicOrPartitionError without the topic, and CommandError without a partition.
    """
    from aiosemel import TopicPartition

    there = [each.partition for each in (await client.admin().describe_topic(topic)).partitions]
    for number in numbers or ():
        if number not in there:
            raise CommandError(f"topic {topic} has {len(there)} partitions, no partition {number}")
    return [TopicPartition(topic, number) for number in (there if numbers is None else numbers)]
