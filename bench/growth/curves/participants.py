"""Partitions that one transaction writes to."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.growth.curve import Curve, Point
from bench.growth.stage import VALUE, stage
from bench.topics import fresh_topic

RECORDS = 4_000
"""In all transactions of one point together."""
TRANSACTIONS_MAX = 200


async def participants(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Commit transactions of one record in each of so many partitions, markers included."""
    async with stage(folder) as here:
        topic = await fresh_topic(here.client, int(max(sizes)))
        producer = here.client.transactional_producer("growth")
        await producer.init_transactions()
        for size in sizes:
            count = int(size)

            async def transaction() -> None:
                async with producer.transaction(wait_until_visible=True) as txn:
                    for partition in range(count):  # noqa: B023 - called in this turn only
                        await txn.send(topic, VALUE, partition=partition)

            times = min(TRANSACTIONS_MAX, RECORDS // count)
            readings = await here.probe.cost("transaction", transaction, times)
            yield Point(size=size, readings=(*readings, *here.probe.memory()))


PARTICIPANTS = Curve(
    name="participants",
    axis="partitions in one transaction",
    sizes=(1, 10, 100, 1_000),
    measure=participants,
    why="Proportional from about a hundred on: each partition gets a batch and a marker. Below, "
    "the fixed cost of a transaction hides it.",
)
