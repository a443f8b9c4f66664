"""Topics for workloads."""

from random import Random

from aiosemel import SemelClient


async def fresh_topic(client: SemelClient, partitions: int) -> str:
    """Create a topic that no other run has written to."""
    name = f"bench-{Random().getrandbits(64):x}"
    await client.admin().create_topic(name, partitions=partitions)
    return name
