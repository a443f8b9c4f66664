"""The operations with a database of the application's own, as their users call them."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from aiosemel import ConsumerRecord, Outputs, RelayOptions
from aiosemel.database import Outbox, create_tables
from aiosemel.database.sqlite import SqliteDatabase
from untrusted.client_options import CONSUMERS, PRODUCERS, TRANSFORMS
from untrusted.world import TOPIC, Operation, World

_LOOPS_S = 0.8


@asynccontextmanager
async def _database() -> AsyncIterator[SqliteDatabase]:
    with TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder) / "application.db")
        await create_tables(database)
        yield database


async def _produce(world: World) -> None:
    async with _database() as database:
        producer = world.client.with_database(database).producer(
            f"database-{world.number % 7}", PRODUCERS
        )
        async with producer, producer.transaction() as (_, transaction):
            await transaction.send(TOPIC, b"v")


async def _resolve(world: World) -> None:
    async with _database() as database:
        await world.client.with_database(database).resolve_prepared()


async def _store(world: World) -> None:
    async def handle(records: Sequence[ConsumerRecord], session: sqlite3.Connection) -> None:
        """Write nothing: the position is what moves."""

    async with _database() as database:
        store = world.client.with_database(database).store(
            source=[TOPIC],
            group=world.name,
            handler=handle,
            options=TRANSFORMS,
            consumer_options=CONSUMERS,
            handle_signals=False,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOPS_S):
                await store


async def _transform(world: World) -> None:
    async def handle(
        records: Sequence[ConsumerRecord], session: sqlite3.Connection, outputs: Outputs
    ) -> None:
        session.execute("CREATE TABLE IF NOT EXISTS payment (value BLOB)")
        session.execute("INSERT INTO payment VALUES (?)", (records[0].value,))
        await outputs.send("results", records[0].value)

    async with _database() as database:
        transform = world.client.with_database(database).transform(
            source=[TOPIC],
            group=world.name,
            transactional_id=world.name,
            handler=handle,
            options=TRANSFORMS,
            consumer_options=CONSUMERS,
            producer_options=PRODUCERS,
            handle_signals=False,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOPS_S):
                await transform


async def _relay(world: World) -> None:
    async with _database() as database:
        outbox = Outbox(database, "orders")
        async with database.transaction() as transaction:
            await outbox.send(transaction.session, TOPIC, b"v")
        relay = world.client.relay(
            outbox,
            transactional_id=world.name,
            options=RelayOptions(poll_interval_ms=50, retry_backoff_ms=5, retry_backoff_max_ms=20),
            producer_options=PRODUCERS,
            handle_signals=False,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOPS_S):
                await relay


DATABASE_OPERATIONS: dict[str, Operation] = {
    "DatabaseProducer.open": _produce,
    "DatabaseClient.resolve_prepared": _resolve,
    "DatabaseClient.store": _store,
    "DatabaseClient.transform": _transform,
    "Relay.run": _relay,
}
