"""Contenders that take turns at the same work on one machine, and what each computes for it.

Processor time does not depend on who else uses the machine as times of day do; but it does depend
on how busy its caches are, and on its clock. So the turns are short, their order is drawn anew in
each round, and what is compared is what two contenders took in the same round.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import median

from aiosemel import SemelClient, TransactionalProducer
from bench.clients.semel.transactions import initialised, transaction
from bench.processes import processor_s
from bench.topics import fresh_name, fresh_topic
from bench.workloads import PARTITIONS, transactions

PRODUCERS = 64
EACH = 30
"""Transactions of each producer in one turn."""
WARM_UP = 20
"""Transactions of each producer before the first turn."""
ROUNDS = 6
REST_S = 6.0
"""How long all rest after the last turn: by then, spans are exported."""
UNIT = "ms/transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do the work."""

    name: str
    pids: Sequence[int]
    """Its services."""
    turn: Callable[[], Awaitable[None]]
    """Run ``PRODUCERS`` * ``EACH`` transactions from this process."""


def nothing() -> None:
    """Leave nothing behind."""


@asynccontextmanager
async def producing(
    name: str,
    client: SemelClient,
    pids: Sequence[int],
    settle: Callable[[], object] = nothing,
) -> AsyncIterator[Contender]:
    """Warm up producers of a client that is open; ``settle`` finishes what a turn leaves behind."""
    topic = await fresh_topic(client, PARTITIONS)
    made = await initialised(client, fresh_name(), PRODUCERS)
    workload = transactions(PRODUCERS)

    async def work(producer: TransactionalProducer, each: int) -> None:
        for _ in range(each):
            await transaction(producer, topic, workload)

    async def run(each: int) -> None:
        async with asyncio.TaskGroup() as group:
            for producer in made:
                group.create_task(work(producer, each))

    async def turn() -> None:
        await run(EACH)
        settle()

    await run(WARM_UP)
    settle()
    yield Contender(name=name, pids=pids, turn=turn)


async def processor_times(
    contenders: Sequence[Contender], rounds: int = ROUNDS
) -> Mapping[str, Sequence[float]]:
    """Return what each computed for a transaction in each round, in ms, its services included.

    Those are counted from one turn to the next: what they do later counts too.
    """
    here: dict[str, list[float]] = {each.name: [] for each in contenders}
    services: dict[str, list[float]] = {each.name: [] for each in contenders}
    order, random = list(contenders), Random()
    for _ in range(rounds):
        random.shuffle(order)
        for contender in order:
            gc.collect()
            services[contender.name].append(_services_s(contender))
            started = time.process_time()
            await contender.turn()
            here[contender.name].append(time.process_time() - started)
    await asyncio.sleep(REST_S)
    return {
        each.name: [
            (client + after - before) * 1000 / (PRODUCERS * EACH)
            for client, (before, after) in zip(
                here[each.name], pairwise([*services[each.name], _services_s(each)]), strict=True
            )
        ]
        for each in contenders
    }


def percent_more(used: Sequence[float], than: Sequence[float]) -> float:
    """Return by how much one exceeds the other, in the middle of their rounds."""
    return 100 * (median(each / other for each, other in zip(used, than, strict=True)) - 1)


def _services_s(contender: Contender) -> float:
    """Return what its services have computed so far, all their threads."""
    return sum(map(processor_s, contender.pids))
