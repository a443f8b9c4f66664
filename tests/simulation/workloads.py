"""The clients of a simulation: the work of each in every life, until it has done its share.

A client is a process. It may be killed at any step, and is started again by its supervisor; what
it has done so far is in the ledger, and nowhere else.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol, TypeVar

from semel_checker.names import Partition, Writer
from semel_checker.operations import PolledRecord, Send

from aiosemel import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    ClientOptions,
    ConsumerOptions,
    ConsumerRecord,
    IsolationLevel,
    KnownOutcome,
    NextStep,
    OffsetReset,
    ProducerOptions,
    RetriableError,
    SemelClient,
    SemelError,
    TopicPartition,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel_runtime.testing.virtual_time import LoopClock, after
from simulation.compaction import TABLE, TABLE_CONFIGS, TABLE_PARTITIONS
from simulation.deletion import CUT_CONFIGS, CUT_PARTITIONS, CUT_TOPIC
from simulation.named_records import NamedRecord, read_records
from simulation.network import Network, Trace
from simulation.processes import BOOTSTRAP, START_MS
from simulation.recorded import (
    RecordedClient,
    RecordedProducer,
    Records,
    settle_send,
)
from simulation.world import Life, SimulatedLoop

T = TypeVar("T")

TOPICS = {"a": 3, "b": 2, "in": 3, "out": 2, CUT_TOPIC: CUT_PARTITIONS, TABLE: TABLE_PARTITIONS}
CONFIGS: Mapping[str, Mapping[str, str | int]] = {CUT_TOPIC: CUT_CONFIGS, TABLE: TABLE_CONFIGS}
GROUP = "transformers"
CLIENT = ClientOptions(
    request_timeout_ms=1_500,
    default_api_timeout_ms=6_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=300,
    metadata_max_age_ms=20_000,
)
POLLS_MAX = 2_000
"""As many polls read all of a partition, if it can be read."""
_ABORT_SHARE = 0.12
_DAWDLE_SHARE = 0.06
_AWAIT_SHARE = 0.3
_WAIT_SHARE = 0.5
_ASK_SHARE = 0.1
_KEYS = 4
_TOMBSTONE_SHARE = 0.2
TRANSACTION_TIMEOUT_MS = 8_000


class Around(Protocol):
    """The surroundings of the works: a simulation, or real processes."""

    records: Records
    transactions: int
    calm: bool
    pause_ms: float

    @property
    def trace(self) -> Trace:
        """Called with each event."""
        ...


@dataclass(slots=True)
class Surroundings:
    """The state that all clients of a simulation share."""

    loop: SimulatedLoop
    network: Network
    random: Random
    records: Records
    trace: Trace
    failures: list[str]
    transactions: int = 0
    """How many were begun."""
    calm: bool = False
    """Whether the faults are over: no client dawdles."""
    pause_ms: float = 600
    """How long a producer rests between two transactions, on the average."""


def make_record(topic: str, value: str, random: Random) -> NamedRecord:
    """Make a record with a unique value; in the table, with one of a few keys."""
    if topic != TABLE:
        return NamedRecord(value)
    key = b"%d" % random.randrange(_KEYS)
    return NamedRecord(value, key, tombstone=random.random() < _TOMBSTONE_SHARE)


class Work(Protocol):
    """The work of a client."""

    @property
    def done(self) -> bool:
        """Whether it has done its share; then it is not started again."""
        ...

    async def run(self, client: RecordedClient, random: Random) -> None:
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
                await self.work.run(RecordedClient(client, around.records, process), random)
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


async def insist(attempt: Callable[[], Awaitable[T]]) -> T:
    """Make an attempt again and again, as long as its error says so."""
    while True:
        try:
            return await attempt()
        except RetriableError:
            await after(50)


class Transactions:
    """A transactional producer: so many transactions over several partitions."""

    def __init__(
        self, transactional_id: str, quota: int, topics: Sequence[str], around: Around
    ) -> None:
        self._transactional_id = transactional_id
        self._left = quota
        self._around = around
        self._places = [(topic, at) for topic in topics for at in range(TOPICS[topic])]

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    def finish(self) -> None:
        """Begin no further transaction."""
        self._left = 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Make producers, one after the other has come to its end."""
        while not self.done:
            options = ProducerOptions(
                request_timeout_ms=1_000,
                delivery_timeout_ms=random.choice((1_500, 6_000)),
                max_block_ms=4_000,
                transaction_timeout_ms=random.choice((2_000, TRANSACTION_TIMEOUT_MS)),
                registration_delay_ms=random.choice((0, 50)),
            )
            producer = client.transactional_producer(self._transactional_id, options)
            try:
                wait = random.random() < _WAIT_SHARE
                await insist(partial(producer.init_transactions, wait_until_visible=wait))
                await self._use(producer, random, client.process)
            except (ApplicationRecoverableError, TransactionOutcomeUnknownError) as error:
                self._around.trace("producer ended", client.process, type(error).__name__)
                await producer.close()
                await after(random.uniform(0, 1_500))
            else:
                await producer.close()

    async def _use(self, producer: RecordedProducer, random: Random, name: str) -> None:
        around = self._around
        while not self.done:
            self._left -= 1
            around.transactions += 1
            outcome = "aborted"
            writer = producer.writer
            try:
                await self._fill(producer, random, name)
                if random.random() < _ABORT_SHARE:
                    await insist(producer.abort)
                else:
                    await _commit(producer)
                    outcome = "committed"
            except TransactionAbortedError as error:
                if isinstance(error.__cause__, ApplicationRecoverableError):
                    raise error.__cause__ from None
                await insist(producer.abort)
            except (AbortableTransactionError, RetriableError):
                await insist(producer.abort)
            around.trace("transaction", name, outcome)
            if random.random() < _ASK_SHARE:
                await insist(partial(producer.ask, writer))
            if not around.calm:
                await after(random.expovariate(1 / around.pause_ms))

    async def _fill(self, producer: RecordedProducer, random: Random, name: str) -> None:
        await producer.begin_transaction()
        around = self._around
        for _ in range(random.randint(1, 4)):
            topic, partition = random.choice(self._places)
            record = make_record(topic, f"{name}-{next(around.records.numbers)}", random)
            delivery = await producer.send(
                topic, record.stored, key=record.key, partition=partition, headers=record.headers
            )
            if random.random() < _AWAIT_SHARE:
                await delivery
            if random.random() < _DAWDLE_SHARE and not around.calm:
                await after(random.uniform(0, 4_000))


async def _commit(producer: RecordedProducer) -> None:
    """Commit until the outcome is definite: now by asking again, now by ``resolve``."""
    while True:
        try:
            return await producer.commit()
        except TransactionOutcomeUnknownError as error:
            if error.can_ask_again and error.producer_epoch % 2:
                await after(100)
                continue
            resolution = await producer.resolve(error)
            if resolution.next_step is NextStep.NEW_PRODUCER:
                raise
            if resolution.outcome is KnownOutcome.COMMITTED:
                return None
            raise TransactionAbortedError("its commit never took effect") from error


class Plain:
    """An idempotent producer: records outside of transactions, each stored once, in order."""

    def __init__(self, quota: int, places: Sequence[tuple[str, int]], around: Around) -> None:
        self._left = quota
        self._around = around
        self._places = places

    @property
    def done(self) -> bool:
        """See ``Work``."""
        return self._left <= 0

    def finish(self) -> None:
        """Send no further record."""
        self._left = 0

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Send, one by one or several at a time."""
        around, process = self._around, client.process
        options = ProducerOptions(
            request_timeout_ms=1_000, delivery_timeout_ms=6_000, batch_size_bytes=64
        )
        producer = client.client.producer(options)
        # The client is not told its producer id: any unique number stands for it.
        writer = Writer(-next(around.records.numbers), 0)
        while not self.done:
            self._left -= 1
            sent = []
            for _ in range(random.randint(1, 12)):
                topic, partition = random.choice(self._places)
                record = make_record(topic, f"{process}-{next(around.records.numbers)}", random)
                operation = Send(
                    writer=writer,
                    partition=Partition(topic, partition),
                    records=(record.as_sent(),),
                    transactional=False,
                )
                op = around.records.recorder.invoked(process, operation)
                delivery = await producer.send(
                    topic,
                    record.stored,
                    key=record.key,
                    partition=partition,
                    headers=record.headers,
                )
                sent.append((op, delivery))
            await producer.flush()
            for op, delivery in sent:
                settle_send(around.records.recorder, process, op, delivery)
            if not around.calm:
                await after(random.expovariate(1 / around.pause_ms))
        await producer.close()


class Reader:
    """A reader of all partitions of some topics, at one level of isolation."""

    def __init__(self, topics: Sequence[str], isolation: IsolationLevel) -> None:
        self._places = [(topic, at) for topic in topics for at in range(TOPICS[topic])]
        self._isolation = isolation
        self.done = False

    async def run(self, client: RecordedClient, random: Random) -> None:
        """Read from the beginning, until killed."""
        options = ConsumerOptions(
            isolation_level=self._isolation,
            auto_offset_reset=OffsetReset.EARLIEST,
            fetch_min_bytes=random.choice((1, 200, 600)),
            fetch_max_wait_ms=1_500,
        )
        consumer = client.consumer(options=options)
        consumer.assign(self._places)
        while True:
            await consumer.poll(500, 4_000)


async def read_all(
    client: SemelClient, isolation: IsolationLevel, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[PolledRecord, ...]]:
    """Read partitions from their beginnings to their ends, or as far as that is possible."""
    options = ConsumerOptions(
        isolation_level=isolation, auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50
    )
    consumer = client.consumer(options=options)
    consumer.assign(ends)
    found: dict[TopicPartition, list[ConsumerRecord]] = {place: [] for place in ends}
    polls = 0
    while any(consumer.positions().get(place, -1) < end for place, end in ends.items()):
        polls += 1
        if polls > POLLS_MAX:
            break  # The comparison at the end finds missing records.
        for place, records in (await consumer.poll(1_000, 50)).items():
            found[place] += records
    await consumer.close()
    return {place: read_records(records, isolation) for place, records in found.items()}
