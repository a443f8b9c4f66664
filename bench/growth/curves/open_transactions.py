"""Transactions that are open in one partition, beside others that go on."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.growth.curve import Curve, Point
from bench.growth.operations import Operations
from bench.growth.stage import stage
from bench.topics import fresh_topic

LOOKS = 5


async def open_transactions(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Open transactions in the partition itself that is written to."""
    async with stage(folder) as here:
        topic = await fresh_topic(here.client, 1)
        operations = await Operations.on(here, topic)
        admin = here.client.admin()
        there = 0
        for size in sizes:
            await here.wire.open(topic, await here.wire.producer_ids(int(size) - there))
            there = int(size)
            readings = [
                *await operations.readings(),
                *await here.probe.cost("list the ids", admin.list_transactions, LOOKS),
                *await here.probe.restart("broker-0"),
            ]
            yield Point(size=size, readings=tuple(readings))


OPEN_TRANSACTIONS = Curve(
    name="open-transactions",
    axis="transactions open in the partition",
    sizes=(1, 10, 100, 1_000, 10_000),
    measure=open_transactions,
    why="Flat for active producers. While transactions are open, the broker looks at all of them "
    "from time to time to find old ones, and inquires about them; its pause grows with their "
    "number, so this takes a twentieth of a core at most. A list of transactional ids is "
    "proportional to its length.",
)
