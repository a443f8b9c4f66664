"""Contenders that take turns at the same work on one machine, and what each computes for it.

Processor time does not depend on other users of the machine as times of day do; but it does depend
on how busy its caches are, and on its clock. So the turns are short, each round draws its order
again, and the comparison is between two contenders of the same round.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random, uniform
from statistics import median

from aiosemel import ProducerOptions, SemelClient, TransactionalProducer
from bench.clients.semel.transactions import initialised, transaction
from bench.clients.settings import SEMEL_PRODUCER
from bench.processes import processor_s
from bench.topics import fresh_name, fresh_topic
from bench.workloads import PARTITIONS, transactions

PRODUCERS = 64
WARM_UP = 20
"""Transactions of each producer before the first turn."""
ROUNDS = 12
REST_S = 1.0
"""How long all rest after a turn: what its services still do counts too, such as markers."""
UNIT = "ms/transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How transactions follow one another."""

    each: int = 50
    """Transactions of each producer in one turn."""
    pause_max_s: float = 0.02
    """How long a producer pauses before each transaction, by chance. Producers that never do go in
    step, and share frames and commits as no others would: then whatever puts one of them out of
    step would seem to cost all that the others share less."""
    options: ProducerOptions = SEMEL_PRODUCER


USUAL = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do the work."""

    name: str
    pids: Sequence[int]
    """Its services."""
    turn: Callable[[], Awaitable[None]]
    """Run them from this process."""
    transactions: int
    """How many a turn has."""


@asynccontextmanager
async def producing(
    name: str, client: SemelClient, pids: Sequence[int], pace: Pace = USUAL
) -> AsyncIterator[Contender]:
    """Warm up producers of a client that is open."""
    topic = await fresh_topic(client, PARTITIONS)
    made = await initialised(client, fresh_name(), PRODUCERS, pace.options)
    workload = transactions(PRODUCERS)

    async def work(producer: TransactionalProducer, each: int) -> None:
        for _ in range(each):
            await asyncio.sleep(uniform(0, pace.pause_max_s))
            await transaction(producer, topic, workload)

    async def run(each: int) -> None:
        async with asyncio.TaskGroup() as group:
            for producer in made:
                group.create_task(work(producer, each))

    await run(WARM_UP)
    yield Contender(
        name=name, pids=pids, turn=partial(run, pace.each), transactions=PRODUCERS * pace.each
    )


async def processor_times(
    contenders: Sequence[Contender], rounds: int = ROUNDS, rest_s: float = REST_S
) -> Mapping[str, Sequence[float]]:
    """Return what each computed for a transaction in each round, in ms, its services included.

    These are counted from the beginning of a turn to the end of the rest after it, and not while
    others have theirs.
    """
    used_ms: dict[str, list[float]] = {each.name: [] for each in contenders}
    order, random = list(contenders), Random()
    for _ in range(rounds):
        random.shuffle(order)
        for contender in order:
            gc.collect()
            services_s, client_s = _services_s(contender), time.process_time()
            await contender.turn()
            await asyncio.sleep(rest_s)
            used_s = time.process_time() - client_s + _services_s(contender) - services_s
            used_ms[contender.name].append(used_s * 1000 / contender.transactions)
    return used_ms


def percent_more(used: Sequence[float], than: Sequence[float]) -> float:
    """Return by how much one exceeds the other, in the middle of their rounds."""
    return 100 * (median(each / other for each, other in zip(used, than, strict=True)) - 1)


def _services_s(contender: Contender) -> float:
    """Return what its services have computed so far, all their threads."""
    return sum(map(processor_s, contender.pids))
