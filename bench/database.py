"""What a transaction with an application's own database takes, in each of the four ways.

Beside each stands the same application with commits that are at least once: the database first,
then the topic, then the offset. Each transaction has one record, or a hundred; each way is measured
on SQLite and on PostgreSQL, whose commits are durable, as Semel's are.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import asyncpg

from aiosemel import (
    ConsumerOptions,
    ConsumerRecord,
    DatabaseClient,
    OffsetReset,
    Outputs,
    SemelClient,
    Transform,
    TransformOptions,
)
from aiosemel.database import Database, Outbox, create_tables
from aiosemel.database.asyncpg import AsyncpgDatabase
from aiosemel.database.sqlite import SqliteDatabase
from bench.measure import Figure
from bench.topics import fresh_name, fresh_topic
from semel_runtime.testing.postgres import PostgresCluster

SIZES = (1, 100)
"""Records of one transaction."""
_WARM_UP = 20
_VALUE = b"x" * 100
_PAY = "INSERT INTO payment (number, text) VALUES (?, ?)"
_FROM_THE_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)

Records: TypeAlias = Sequence[ConsumerRecord]


@dataclass(slots=True)
class Laps:
    """Times how long a transaction takes, from lap to lap, after some that warm up."""

    transactions: int
    _count: int = 0
    _start: float = 0.0
    _elapsed_s: float = 0.0

    def lap(self) -> bool:
        """Note that a transaction begins; returns whether that was the last one to time."""
        if self._count == _WARM_UP:
            self._start = time.perf_counter()
        if self._count == _WARM_UP + self.transactions:
            self._elapsed_s = time.perf_counter() - self._start
        self._count += 1
        return self._elapsed_s > 0

    @property
    def is_last(self) -> bool:
        """Whether the transaction that has begun is the last one to time."""
        return self._count == _WARM_UP + self.transactions

    @property
    def each_ms(self) -> float:
        """Milliseconds of one transaction, on the average."""
        assert self._elapsed_s, "the transactions have come to their end"
        return self._elapsed_s / self.transactions * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application with its database, for transactions of one size."""

    client: SemelClient
    database: Database[object]
    size: int
    transactions: int

    @property
    def joint(self) -> DatabaseClient[object]:
        """The client with the database."""
        return self.client.with_database(self.database)

    @property
    def laps(self) -> Laps:
        """A stop-watch."""
        return Laps(self.transactions)

    async def pay(self, session: object) -> None:
        """Write one row for each record."""
        joined = self.database.joined(session)
        for number in range(self.size):
            await joined.execute(_PAY, (number, _VALUE.decode()))

    async def source(self) -> str:
        """Return a topic with enough records."""
        topic = await fresh_topic(self.client, 1)
        async with self.client.producer() as producer:
            for _ in range(self.size * (_WARM_UP + self.transactions + 2)):
                await producer.send(topic, _VALUE)
            await producer.flush()
        return topic

    def options(self) -> TransformOptions:
        """Return options by which a transaction has so many records."""
        return TransformOptions(max_records=self.size)


async def database(bootstrap: str, *, transactions: int = 150) -> list[Figure]:
    """Measure every way on both databases."""
    figures = []
    async with SemelClient(bootstrap) as client:
        for engine, make in (("SQLite", _sqlite), ("PostgreSQL", _postgresql)):
            async with make() as own:
                for size in SIZES:
                    application = Application(
                        client=client,
                        database=own,
                        size=size,
                        transactions=max(1, transactions // (1 if size == 1 else 5)),
                    )
                    for name, way in WAYS.items():
                        unit = "1 record" if size == 1 else f"{size} records"
                        laps = await way(application)
                        what = f"{engine}, {unit}: {name}"
                        figures.append(Figure(name=what, value=laps.each_ms, unit="ms"))
    return figures


@asynccontextmanager
async def _sqlite() -> AsyncIterator[Database[object]]:
    with tempfile.TemporaryDirectory() as folder:
        own = SqliteDatabase(Path(folder, "application.db"))
        await _prepare(own)
        yield own


@asynccontextmanager
async def _postgresql() -> AsyncIterator[Database[object]]:
    with PostgresCluster(standbys=0) as server:
        async with asyncpg.create_pool(server.primary.url(), min_size=1, max_size=4) as pool:
            own = AsyncpgDatabase(pool)
            await _prepare(own)
            yield own


async def _prepare(own: Database[object]) -> None:
    await create_tables(own)
    async with own.transaction() as transaction:
        await transaction.execute("CREATE TABLE payment (number INTEGER, text TEXT)")


# -- from a topic --------------------------------------------------------------------------------


async def _consume_at_least_once(of: Application, *, target: str = "") -> Laps:
    """Write the database, send what there is to send, commit the offset."""
    laps = of.laps
    source = await of.source()
    async with (
        of.client.consumer(fresh_name(), options=_FROM_THE_START) as consumer,
        of.client.producer() as producer,
    ):
        consumer.subscribe([source])
        while not laps.lap():
            count = 0
            while count < of.size:
                polled = await consumer.poll(of.size - count, 5_000)
                count += sum(map(len, polled.values()))
            async with of.database.transaction() as transaction:
                await of.pay(transaction.session)
            if target:
                for _ in range(of.size):
                    await producer.send(target, _VALUE)
                await producer.flush()
            await consumer.commit()
    return laps


async def _store_at_least_once(of: Application) -> Laps:
    return await _consume_at_least_once(of)


async def _transform_at_least_once(of: Application) -> Laps:
    return await _consume_at_least_once(of, target=await fresh_topic(of.client, 1))


async def _store(of: Application) -> Laps:
    laps = of.laps
    running: list[Transform] = []

    async def handle(_: Records, session: object) -> None:
        if laps.lap():
            running[0].stop()
        await of.pay(session)

    loop = of.joint.store(
        source=[await of.source()],
        group=fresh_name(),
        handler=handle,
        options=of.options(),
        handle_signals=False,
    )
    running.append(loop)
    await loop
    return laps


async def _transform(of: Application) -> Laps:
    laps, target = of.laps, await fresh_topic(of.client, 1)
    running: list[Transform] = []

    async def handle(records: Records, session: object, outputs: Outputs) -> None:
        if laps.lap():
            running[0].stop()
        await of.pay(session)
        for record in records:
            await outputs.send(target, record.value)

    loop = of.joint.transform(
        source=[await of.source()],
        group=fresh_name(),
        transactional_id=fresh_name(),
        handler=handle,
        options=of.options(),
        handle_signals=False,
    )
    running.append(loop)
    await loop
    return laps


# -- from own writes -----------------------------------------------------------------------------


async def _write_at_least_once(of: Application) -> Laps:
    """Write the database, then send: a crash between the two loses the records."""
    laps, target = of.laps, await fresh_topic(of.client, 1)
    async with of.client.producer() as producer:
        while not laps.lap():
            async with of.database.transaction() as transaction:
                await of.pay(transaction.session)
            for _ in range(of.size):
                await producer.send(target, _VALUE)
            await producer.flush()
    return laps


async def _block(of: Application) -> Laps:
    laps, target = of.laps, await fresh_topic(of.client, 1)
    async with of.joint.producer(fresh_name()) as producer:
        while not laps.lap():
            async with producer.transaction() as (session, txn):
                await of.pay(session)
                for _ in range(of.size):
                    await txn.send(target, _VALUE)
    return laps


async def _outbox(of: Application) -> Laps:
    """Time the request alone: the relay is another process, as a rule."""
    laps, target = of.laps, await fresh_topic(of.client, 1)
    outbox = Outbox(of.database, fresh_name())
    while not laps.lap():
        async with of.database.transaction() as transaction:
            await of.pay(transaction.session)
            for _ in range(of.size):
                await outbox.send(transaction.session, target, _VALUE)
    return laps


async def _relayed(of: Application) -> Laps:
    """Time the request and the relay: the rows of so many transactions, until all are sent."""
    target = await fresh_topic(of.client, 1)
    outbox = Outbox(of.database, fresh_name())
    relay = of.client.relay(outbox, transactional_id=fresh_name(), handle_signals=False)
    async with asyncio.TaskGroup() as group:
        group.create_task(relay.run())
        laps = of.laps
        while not laps.lap():
            async with of.database.transaction() as transaction:
                await of.pay(transaction.session)
                for _ in range(of.size):
                    await outbox.send(transaction.session, target, _VALUE)
            if laps.is_last:  # The rows of all laps leave before the clock stops.
                await _until_sent(of.database, outbox)
        relay.stop()
    return laps


async def _until_sent(own: Database[object], outbox: Outbox) -> None:
    query = "SELECT id FROM semel_outbox WHERE outbox = ? LIMIT 1"
    while True:
        async with own.transaction() as transaction:
            if not await transaction.fetch(query, (outbox.name,)):
                return
        await asyncio.sleep(0.002)


WAYS: dict[str, Callable[[Application], Awaitable[Laps]]] = {
    "topic → database, at least once": _store_at_least_once,
    "topic → database, store": _store,
    "topic → database and topic, at least once": _transform_at_least_once,
    "topic → database and topic, transform": _transform,
    "write → database and topic, at least once": _write_at_least_once,
    "write → database and topic, producer": _block,
    "write → outbox, the request": _outbox,
    "write → outbox → topic, request and relay": _relayed,
}
