"""Transactional ids that the coordinator knows."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.growth.curve import Curve, Point
from bench.growth.operations import Operations
from bench.growth.stage import stage
from bench.topics import fresh_topic

INITS = 200


async def transactional_ids(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Give out producer ids, and use one."""
    async with stage(folder) as here:
        operations = await Operations.on(here, await fresh_topic(here.client, 1))
        known = 1
        for size in sizes:
            await here.wire.producer_ids(int(size) - known)
            readings = [
                *await operations.readings(),
                *await here.probe.cost("InitProducerId", here.wire.init_producer_id, INITS),
                *await here.probe.restart("coordinator-0"),
            ]
            known = int(size) + INITS + INITS // 10
            yield Point(size=size, readings=tuple(readings))


TRANSACTIONAL_IDS = Curve(
    name="transactional-ids",
    axis="transactional ids",
    sizes=(1, 1_000, 10_000, 30_000, 100_000),
    measure=transactional_ids,
    why="Flat: an id costs memory, and a start reads its state.",
)
