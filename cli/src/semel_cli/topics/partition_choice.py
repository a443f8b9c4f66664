"""Which partitions of a topic a command means.

A service retries a request for a missing partition until the time is over, because the partition
may be about to be made: a command says at once that it does not exist.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semel_cli.shared.command_errors import CommandError
from semel_console.insight.texts import counted

if TYPE_CHECKING:
    from aiosemel import SemelClient, TopicPartition


async def partitions_of(
    client: "SemelClient", topic: str, numbers: Sequence[int] | None
) -> "list[TopicPartition]":
    """Return those with these numbers, or all if it is None.

    Raises UnknownTopicOrPartitionError without the topic, and CommandError without a partition.
    """
    from aiosemel import TopicPartition

    there = [
        partition.partition for partition in (await client.admin().describe_topic(topic)).partitions
    ]
    for number in numbers or ():
        if number not in there:
            raise CommandError(
                f"topic {topic} has {counted(len(there), 'partition')}, no partition {number}"
            )
    return [TopicPartition(topic, number) for number in (there if numbers is None else numbers)]
