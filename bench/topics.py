"""Topics for workloads."""

from random import Random

from aiosemel import SemelClient


async def fresh_topic(client: SemelClient, partitions: int) -> str:
    """Create a topic that no other run has written to."""
    name = fresh_name()
    await client.admin().create_topic(name, partitions=partitions)
    return name


def fresh_name() -> str:
    """Return a name that no other run has."""
    return f"bench-{Random().getrandbits(64):x}"
