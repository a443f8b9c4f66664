"""The process that is killed: one call with a database, in the way users write it.

Its parent tells it by a pipe at which point to die, and for ``relay`` and ``producer`` which orders
to take. A request for an order may be repeated, as any caller does that got no answer: the row of
the request says whether it was taken.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

import asyncpg
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

from aiosemel import (
    ClientOptions,
    ConsumerOptions,
    ConsumerRecord,
    OffsetReset,
    Outputs,
    Relay,
    RelayOptions,
    SemelClient,
    Transform,
    TransformOptions,
)
from aiosemel.database import Database, Dialect, Outbox
from aiosemel.database.asyncpg import AsyncpgDatabase
from aiosemel.database.sqlalchemy import SqlAlchemyDatabase
from aiosemel.database.sqlite import SqliteDatabase
from database_chaos.killing import Killer, WatchedConnector, WatchedDatabase
from database_chaos.steps import WRITTEN, Call, after
from semel_common.wire.grpc_connection import GrpcConnector

TABLES = (
    "CREATE TABLE payment (run VARCHAR(60) NOT NULL, number BIGINT NOT NULL)",
    "CREATE TABLE request (run VARCHAR(60), number BIGINT, PRIMARY KEY (run, number))",
)
"""Payments have no key: one that is there twice must not be refused, it must be seen. Requests have
one: a repeat must wait for the commit of a killed process that the server still carries out."""
_PAY = "INSERT INTO payment (run, number) VALUES (?, ?)"
_ASK = "INSERT INTO request (run, number) VALUES (?, ?)"
_NEW = {
    Dialect.SQLITE: f"{_ASK} ON CONFLICT DO NOTHING",
    Dialect.POSTGRESQL: f"{_ASK} ON CONFLICT DO NOTHING",
    Dialect.MYSQL: _ASK.replace("INSERT", "INSERT IGNORE"),
}
_BATCH = 4
_OPTIONS = TransformOptions(
    max_records=_BATCH, poll_timeout_ms=50, retry_backoff_ms=5, retry_backoff_max_ms=50
)
_RELAY_OPTIONS = RelayOptions(
    max_records=_BATCH,
    poll_interval_ms=20,
    lease_ms=500,
    retry_backoff_ms=5,
    retry_backoff_max_ms=50,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a process is started with."""

    call: Call
    database: str
    """A URL of PostgreSQL or MariaDB, or a file of SQLite."""
    bootstrap: str
    run: str
    """The name of the application: of its group and its topics."""
    instance: str = ""
    """Which of its processes this is."""
    point: str = ""
    """Where it dies, from its start on."""
    occurrence: int = 1
    number: signal.Signals = signal.SIGKILL

    @property
    def name(self) -> str:
        """The name of the process over its restarts: its transactional id."""
        return f"{self.run}{self.instance}"

    @property
    def orders(self) -> str:
        """The topic that it reads."""
        return f"{self.run}-orders"

    @property
    def receipts(self) -> str:
        """The topic that it writes."""
        return f"{self.run}-receipts"


@dataclass(frozen=True, slots=True)
class Arm:
    """Die at a point, from now on."""

    point: str
    occurrence: int


@dataclass(frozen=True, slots=True)
class Take:
    """Take these orders."""

    numbers: Sequence[int]


Message: TypeAlias = Arm | Take | None
"""What the parent sends; None: stop."""


def main(start: Start, pipe: "Connection[object, Message]") -> None:
    """Work until the parent says stop; the target of a process."""
    asyncio.run(_work(start, pipe))


async def _work(start: Start, pipe: "Connection[object, Message]") -> None:
    killer = Killer(start.point, start.occurrence, start.number)
    connector = GrpcConnector()
    options = ClientOptions(retry_backoff_ms=10)
    async with (
        open_database(start.database) as database,
        SemelClient(
            start.bootstrap, options=options, connector=WatchedConnector(connector, killer)
        ) as client,
    ):
        application = _Application(start, killer, client, database)
        await application.run(pipe)
    await connector.close()


@asynccontextmanager
async def open_database(where: str) -> AsyncIterator[Database[object]]:
    """Open the layer of a database."""
    match where.partition("://")[0]:
        case "postgresql":
            async with asyncpg.create_pool(where, min_size=0, max_size=4) as pool:
                yield AsyncpgDatabase(pool)
        case "mysql":
            engine = create_async_engine(where.replace("mysql://", "mysql+asyncmy://"))
            yield SqlAlchemyDatabase(async_sessionmaker(engine))
            await engine.dispose()
        case _:
            # Whole transactions of other calls may be in front, each of which waits for brokers.
            yield SqliteDatabase(where, timeout_s=60)


class _Application:
    def __init__(
        self, start: Start, killer: Killer, client: SemelClient, database: Database[object]
    ) -> None:
        self._start = start
        self._killer = killer
        self._client = client
        self._layer = database
        self._database = WatchedDatabase(database, killer)
        self._outbox = Outbox(self._database, start.run)
        self._orders: asyncio.Queue[int | None] = asyncio.Queue()

    async def run(self, pipe: "Connection[object, Message]") -> None:
        """Work until the parent says stop."""
        loop = self._loop()
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._hear, pipe, loop)
        match self._start.call:
            case Call.PRODUCER:
                await self._produce()
            case Call.RELAY:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._take_requests())
                    assert loop is not None
                    await loop
            case _:
                assert loop is not None
                await loop

    def _hear(self, pipe: "Connection[object, Message]", loop: Transform | Relay | None) -> None:
        try:
            message = pipe.recv()
        except EOFError:  # The parent has ended.
            asyncio.get_running_loop().remove_reader(pipe.fileno())
            message = None
        match message:
            case Arm(point, occurrence):
                self._killer.arm(point, occurrence)
            case Take(numbers):
                for number in numbers:
                    self._orders.put_nowait(number)
            case None:
                self._orders.put_nowait(None)
                if loop is not None:
                    loop.stop()

    def _loop(self) -> Transform | Relay | None:
        start, client = self._start, self._client
        reading = ConsumerOptions(
            auto_offset_reset=OffsetReset.EARLIEST, group_instance_id=start.name
        )
        match start.call:
            case Call.STORE:
                return client.with_database(self._database).store(
                    source=[start.orders],
                    group=start.run,
                    handler=self._book,
                    options=_OPTIONS,
                    consumer_options=reading,
                    handle_signals=False,
                )
            case Call.TRANSFORM:
                return client.with_database(self._database).transform(
                    source=[start.orders],
                    group=start.run,
                    transactional_id=start.name,
                    handler=self._pay,
                    options=_OPTIONS,
                    consumer_options=reading,
                    handle_signals=False,
                )
            case Call.RELAY:
                return client.relay(
                    self._outbox,
                    transactional_id=start.run,
                    options=_RELAY_OPTIONS,
                    handle_signals=False,
                )
            case Call.PRODUCER:
                return None

    # -- handlers --------------------------------------------------------------------------------

    async def _book(self, records: Sequence[ConsumerRecord], session: object) -> None:
        for record in records:
            await self._write(session, int(record.value or b""))

    async def _pay(
        self, records: Sequence[ConsumerRecord], session: object, outputs: Outputs
    ) -> None:
        for record in records:
            await outputs.send(self._start.receipts, record.value)
        await self._book(records, session)

    async def _write(self, session: object, number: int) -> None:
        await self._layer.joined(session).execute(_PAY, (self._start.run, number))
        self._killer.passed(WRITTEN)

    # -- requests --------------------------------------------------------------------------------

    async def _take_requests(self) -> None:
        """Take orders as a web service does: a row and an event, in one transaction."""
        while (number := await self._orders.get()) is not None:
            async with self._layer.transaction() as transaction:
                if not await self._is_new(transaction.session, number):
                    continue
                await self._write(transaction.session, number)
                await self._outbox.send(
                    transaction.session, self._start.receipts, b"%d" % number, key=b"a key"
                )
            self._killer.passed(after("INSERT semel_outbox, COMMIT"))

    async def _produce(self) -> None:
        """Take orders: a row and an event, at once."""
        database = self._client.with_database(self._database)
        async with database.producer(self._start.name) as producer:
            while (number := await self._orders.get()) is not None:
                async with producer.transaction() as (session, txn):
                    if not await self._is_new(session, number):
                        continue
                    await self._write(session, number)
                    await (await txn.send(self._start.receipts, b"%d" % number))

    async def _is_new(self, session: object, number: int) -> bool:
        new = _NEW[self._layer.dialect]
        return await self._layer.joined(session).execute(new, (self._start.run, number)) == 1
