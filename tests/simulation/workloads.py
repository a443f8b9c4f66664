"""The clients of a simulation: what each does in every life, until it has done its share.

A client is a process. It may be killed at any step, and is started again by its supervisor; what
it has done so far is in the ledger, and nowhere else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from aiosemel import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    ClientOptions,
    ConsumerOptions,
    ConsumerRecord,
    IsolationLevel,
    OffsetReset,
    ProducerOptions,
    RetriableError,
    SemelClient,
    SemelError,
    TransactionAbortedError,
    TransactionalProducer,
    TransactionOutcomeUnknownError,
    TransformOptions,
)
from aiosemel.transform_types import Outputs
from simulation.ledger import Ledger, Outcome, Read, TopicPartition, Txn
from simulation.network import Network, Trace
from simulation.processes import BOOTSTRAP, START_MS
from simulation.world import Life, SimulatedLoop

from semel_runtime.testing.virtual_time import LoopClock, after

TOPICS = {"a": 3, "b": 2, "in": 3, "out": 2}
GROUP = "transformers"
CLIENT = ClientOptions(
    request_timeout_ms=1_500,
    default_api_timeout_ms=6_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=300,
    metadata_max_age_ms=20_000,
)
_ABORT_SHARE = 0.12
_DAWDLE_SHARE = 0.06
_QUICK_ABORT_MS = 50


@dataclass(slots=True)
class Surroundings:
    """What all clients share."""

    loop: SimulatedLoop
    network: Network
    random: Random
    ledger: Ledger
    trace: Trace
    failures: list[str]
    calm: bool = False
    """Whether the faults are over: nobody dawdles any more."""


class Work(Protocol):
    """What a client does."""

    @property
    def done(self) -> bool:
        """Whether it has done its share; then it is not started again."""
        ...

    async def run(self, client: SemelClient, random: Random, name: str) -> None:
        """Do it, in one life."""
        ...


class Client:
    """One client over all its lives."""

    def __init__(self, name: str, work: Work, around: Surroundings) -> None:
        self.name = name
        self.work = work
        self.life: Life | None = None
        self.lives = 0
        self._around = around

    def start(self) -> None:
        """Begin a life."""
        around = self._around
        self.lives += 1
        life = self.life = Life(self.name, self.lives)
        random = Random(around.random.getrandbits(64))
        task = around.loop.start(life, self._live(random))
        task.add_done_callback(lambda _: self._ended(life))

    def kill(self) -> None:
        """End its life at once, and start it again later."""
        if self.life is not None and self.life.alive:
            self._around.loop.end_life(self.life)
            self._restart_later(self.life)

    async def _live(self, random: Random) -> None:
        around = self._around
        process = f"{self.name}.{self.lives}"
        client = SemelClient(
            BOOTSTRAP,
            options=CLIENT,
            connector=around.network.connector(self.name),
            clock=LoopClock(START_MS),
            random=random,
        )
        try:
            async with client:
                await self.work.run(client, random, process)
        except SemelError as error:
            around.trace("client ended", process, repr(error))
        except Exception as error:
            around.failures.append(f"client {process} broke down: {error!r}")
            raise

    def _ended(self, life: Life) -> None:
        self._around.loop.end_life(life)
        if self.life is life and not self.work.done:
            self._restart_later(life)

    def _restart_later(self, life: Life) -> None:
        delay_s = self._around.random.uniform(0.05, 1.5)
        self._around.loop.call_later(delay_s, self._restart, life)

    def _restart(self, before: Life) -> None:
        if self.life is before and not self.work.done:
            self.start()


async def insist(attempt: Callable[[], Awaitable[None]]) -> None:
    """Make an attempt again and again, as long as its error says so."""
    while True:
        try:
            return await attempt()
        except RetriableError:
            await after(50)


class Transactions:
    """A transactional producer: so many transactions over several partitions."""

    def __init__(
        self, transactional_id: str, quota: int, topics: Sequence[str], around: Surroundings
    ) -> None:
        self._transactional_id = transactional_id
        self._left = quota
        self._around = around
        self._places = [(topic, at) for topic in topics for at in range(TOPICS[topic])]

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    async def run(self, client: SemelClient, random: Random, name: str) -> None:
        """Make producers, one after the other has come to its end."""
        while not self.done:
            options = ProducerOptions(
                request_timeout_ms=1_000,
                delivery_timeout_ms=random.choice((1_500, 6_000)),
                max_block_ms=4_000,
                transaction_timeout_ms=random.choice((2_000, 8_000)),
                registration_delay_ms=random.choice((0, 50)),
            )
            producer = client.transactional_producer(self._transactional_id, options)
            try:
                wait = random.random() < 0.5
                await insist(lambda: producer.init_transactions(wait_until_visible=wait))
                await self._use(producer, random, name)
            except (ApplicationRecoverableError, TransactionOutcomeUnknownError) as error:
                self._around.trace("producer ended", name, type(error).__name__)
                await producer.close()
                await after(random.uniform(0, 1_500))
            else:
                await producer.close()

    async def _use(self, producer: TransactionalProducer, random: Random, name: str) -> None:
        while not self.done:
            self._left -= 1
            txn = self._around.ledger.begin(name)
            try:
                await self._fill(producer, txn, random)
                if random.random() < _ABORT_SHARE:
                    await self._abort(producer, txn)
                else:
                    await self._commit(producer, txn)
            except TransactionAbortedError as error:
                txn.outcome = Outcome.ABORTED
                if isinstance(error.__cause__, ApplicationRecoverableError):
                    raise error.__cause__ from None
                await self._abort(producer, txn)
            except (AbortableTransactionError, RetriableError):
                await self._abort(producer, txn)
            self._around.trace("txn", name, txn.number, txn.outcome.value)
            if not self._around.calm:
                await after(random.expovariate(1 / 600))

    async def _fill(self, producer: TransactionalProducer, txn: Txn, random: Random) -> None:
        await producer.begin_transaction()
        around = self._around
        for _ in range(random.randint(1, 4)):
            topic, partition = to = random.choice(self._places)
            value = around.ledger.value_of(txn, to)
            delivery = await producer.send(topic, value.encode(), partition=partition)
            if random.random() < 0.3:
                stored = await delivery
                around.ledger.stored[value] = (topic, partition, stored.offset)
            if random.random() < _DAWDLE_SHARE and not around.calm:
                await after(random.uniform(0, 4_000))

    async def _commit(self, producer: TransactionalProducer, txn: Txn) -> None:
        while True:
            txn.outcome = Outcome.UNKNOWN
            try:
                await producer.commit()
            except TransactionOutcomeUnknownError as error:
                if not error.can_ask_again:
                    raise
                await after(100)
            except TransactionAbortedError:
                raise
            except RetriableError:
                txn.outcome = Outcome.OPEN  # no commit was sent
                raise
            else:
                txn.outcome = Outcome.COMMITTED
                return

    async def _abort(self, producer: TransactionalProducer, txn: Txn) -> None:
        txn.outcome = Outcome.ABORTED
        await insist(producer.abort)


class Plain:
    """An idempotent producer: records outside of transactions, each stored once, in order."""

    def __init__(self, quota: int, topics: Sequence[str], around: Surroundings) -> None:
        self._left = quota
        self._around = around
        self._places = [(topic, at) for topic in topics for at in range(TOPICS[topic])]
        self._count = 0

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    async def run(self, client: SemelClient, random: Random, name: str) -> None:
        """Send, one by one or several at a time."""
        around = self._around
        producer = client.producer(
            ProducerOptions(
                request_timeout_ms=1_000, delivery_timeout_ms=20_000, batch_size_bytes=64
            )
        )
        while not self.done:
            self._left -= 1
            sent = []
            for _ in range(random.randint(1, 3)):
                to = random.choice(self._places)
                self._count += 1
                value = f"{name}.p{self._count}"
                around.ledger.plain[value] = False
                sent.append((to, value, await producer.send(to[0], value.encode(), partition=to[1])))
            for to, value, delivery in sent:
                try:
                    stored = await delivery
                except RetriableError:
                    continue  # Nobody knows; later ones may be stored before it.
                around.ledger.plain[value] = True
                around.ledger.stored[value] = (*to, stored.offset)
                around.ledger.order.setdefault((name, to), []).append(value)
            if not around.calm:
                await after(random.expovariate(1 / 500))
        await producer.close()


class Transformer:
    """One member of a group that makes one record of "out" from each record of "in"."""

    def __init__(self, transactional_id: str, around: Surroundings) -> None:
        self._transactional_id = transactional_id
        self._around = around
        self.done = False

    async def run(self, client: SemelClient, random: Random, name: str) -> None:
        """Transform until killed."""
        del name

        async def handle(records: Sequence[ConsumerRecord], outputs: Outputs) -> None:
            self._around.ledger.attempts += 1
            for record in records:
                assert record.value is not None
                source = f"{record.partition}@{record.offset}".encode()
                partition = random.randrange(TOPICS["out"])
                await outputs.send("out", source + b"|" + record.value, partition=partition)

        await client.transform(
            source=["in"],
            group=GROUP,
            transactional_id=self._transactional_id,
            handler=handle,
            options=TransformOptions(
                max_records=random.choice((1, 3, 20)),
                poll_timeout_ms=2_000,
                retry_backoff_ms=20,
                retry_backoff_max_ms=500,
                take_over_when_fenced=True,
            ),
            consumer_options=ConsumerOptions(
                auto_offset_reset=OffsetReset.EARLIEST,
                fetch_max_wait_ms=2_000,
                max_poll_interval_ms=15_000,
            ),
            producer_options=ProducerOptions(
                request_timeout_ms=1_000,
                delivery_timeout_ms=5_000,
                max_block_ms=4_000,
                transaction_timeout_ms=6_000,
            ),
        )


class Reader:
    """A reader of all partitions of some topics, at one level of isolation."""

    def __init__(
        self, topics: Sequence[str], isolation: IsolationLevel, around: Surroundings
    ) -> None:
        self._places = [(topic, at) for topic in topics for at in range(TOPICS[topic])]
        self._isolation = isolation
        self._around = around
        self.done = False

    async def run(self, client: SemelClient, random: Random, name: str) -> None:
        """Read from the beginning, until killed."""
        consumer = client.consumer(
            options=ConsumerOptions(
                isolation_level=self._isolation,
                auto_offset_reset=OffsetReset.EARLIEST,
                fetch_min_bytes=random.choice((1, 200, 600)),
                fetch_max_wait_ms=1_500,
            )
        )
        consumer.assign(self._places)
        while True:
            await self.poll(consumer.poll, name)

    async def poll(
        self,
        poll: Callable[[int, int], Awaitable[dict[object, list[ConsumerRecord]]]],
        name: str,
    ) -> None:
        """Take what there is."""
        for records in (await poll(500, 4_000)).values():
            for record in records:
                assert record.value is not None
                key = (f"{self._isolation}/{name}", (record.topic, record.partition))
                read = Read(record.offset, record.value.decode())
                self._around.ledger.reads.setdefault(key, []).append(read)


async def read_all(
    client: SemelClient, isolation: IsolationLevel
) -> dict[TopicPartition, list[Read]]:
    """Read every partition from its beginning to its end."""
    consumer = client.consumer(
        options=ConsumerOptions(
            isolation_level=isolation, auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50
        )
    )
    places = [(topic, at) for topic, count in TOPICS.items() for at in range(count)]
    consumer.assign(places)
    ends = await consumer.end_offsets(places)
    found: dict[TopicPartition, list[Read]] = {place: [] for place in places}
    while any(consumer.positions().get(place, -1) < end for place, end in ends.items()):
        for records in (await consumer.poll(1_000, 50)).values():
            for record in records:
                assert record.value is not None
                read = Read(record.offset, record.value.decode())
                found[record.topic, record.partition].append(read)
    await consumer.close()
    return found
