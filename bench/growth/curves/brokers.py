"""Brokers that one transaction writes to; the number of its partitions stays."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.growth.curve import Curve, Point
from bench.growth.stage import VALUE, stage
from bench.topics import fresh_topic

PARTITIONS = 4
TRANSACTIONS = 300


async def brokers(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Commit transactions of one record to each of four partitions, which all brokers share."""
    for size in sizes:
        async with stage(folder / f"{size:g}", brokers=int(size)) as here:
            topic = await fresh_topic(here.client, PARTITIONS)
            producer = here.client.transactional_producer("growth")
            await producer.init_transactions()

            async def transaction() -> None:
                async with producer.transaction() as txn:  # noqa: B023 - called in this turn only
                    for partition in range(PARTITIONS):
                        await txn.send(topic, VALUE, partition=partition)  # noqa: B023 - the same

            readings = await here.probe.cost("transaction", transaction, TRANSACTIONS)
            yield Point(size=size, readings=(*readings, *here.probe.memory()))


BROKERS = Curve(
    name="brokers",
    axis="brokers in one transaction",
    sizes=(1, 2, 3, 4),
    measure=brokers,
    why="Proportional for the brokers: each of them has its own request, its own fsync and its own "
    "marker, for any number of partitions. The coordinator and the client only have more "
    "messages.",
)
