"""Each call after a real restore of the cluster, of the database, and of both."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from committed_records import decided_records

from aiosemel import (
    AfterRestore,
    ClientOptions,
    DatabaseAheadError,
    DatabaseBehindError,
    RelayOptions,
    SemelClient,
    Transform,
)
from aiosemel._admin.admin import Admin
from aiosemel._database.completions import complete
from aiosemel.database import Outbox
from aiosemel.errors import SemelError
from database.layers import Layer, layer_named
from database.ledger import OPTIONS, Ledger
from database.running import running, until
from semel_local import LocalCluster

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

RELAY = RelayOptions(max_records=2, poll_interval_ms=20, retry_backoff_ms=5)
TOPICS = ("stored", "stored-receipts", "paid", "paid-receipts", "events")


@dataclass(frozen=True, slots=True)
class Application:
    """One application with all calls, and a cluster that runs in this moment."""

    layer: Layer
    client: SemelClient

    @property
    def stored(self) -> Ledger:
        """The ledger of ``store``."""
        return Ledger(self.layer, self.client, "stored", "stored")

    @property
    def paid(self) -> Ledger:
        """The ledger of ``transform``."""
        return Ledger(self.layer, self.client, "paid", "paid")

    async def store(self, number: int, after: AfterRestore = AfterRestore.STOP) -> None:
        """Process a record more."""
        ledger = self.stored
        loop = ledger.database.store(
            source=["stored"],
            group="stored",
            handler=ledger.book,
            options=OPTIONS,
            handle_signals=False,
            after_restore=after,
        )
        await self._process(ledger, loop, number)

    async def transform(self, number: int, after: AfterRestore = AfterRestore.STOP) -> None:
        """Process a record more, with a receipt."""
        ledger = self.paid
        loop = ledger.database.transform(
            source=["paid"],
            group="paid",
            transactional_id="paid",
            handler=ledger.pay,
            options=OPTIONS,
            handle_signals=False,
            after_restore=after,
        )
        await self._process(ledger, loop, number)

    async def _process(self, ledger: Ledger, loop: Transform, number: int) -> None:
        await ledger.send(number)
        async with running(loop) as task:
            await until(lambda: self._has(number), task)

    async def _has(self, number: int) -> bool:
        return f"order-{number}" in await self.layer.payments()

    async def produce(self, number: int) -> None:
        """Commit a payment and an event at once."""
        database = self.client.with_database(self.layer.database)
        async with (
            database.producer("produced") as producer,
            producer.transaction() as (session, txn),
        ):
            await self.layer.pay(session, f"order-{number}", number)
            await txn.send("events", b"%d" % number)

    async def relay(self, number: int, after: AfterRestore = AfterRestore.STOP) -> None:
        """Write an event into the outbox, and relay."""
        outbox = Outbox(self.layer.database)
        async with self.layer.database.transaction() as transaction:
            await outbox.send(transaction.session, "events", b"%d" % number)
        relay = self.client.relay(
            outbox,
            transactional_id="relayed",
            options=RELAY,
            handle_signals=False,
            after_restore=after,
        )
        async with running(relay) as task:
            await until(self._nothing_waits, task)

    async def _nothing_waits(self) -> bool:
        return not await self.layer.query("SELECT id FROM semel_outbox")

    async def events(self) -> list[int]:
        """Return the events that readers of committed records see."""
        records = await decided_records(self.client, [("events", 0)])
        return [int(record.value or b"") for record in records]

    async def all_calls(self, number: int) -> None:
        """Each call does one thing more."""
        for call in (self.store, self.transform, self.produce, self.relay):
            await call(number)
            number += 1


@pytest_asyncio.fixture(loop_scope="session")
async def layer(tmp_path: Path) -> AsyncIterator[Layer]:
    async with layer_named("sqlite", tmp_path, str) as layer:
        yield layer


@asynccontextmanager
async def application(layer: Layer, folder: Path) -> AsyncIterator[Application]:
    """Start the cluster of a folder."""
    async with (
        LocalCluster(folder=folder) as cluster,
        cluster.client(ClientOptions(retry_backoff_ms=10)) as client,
    ):
        yield Application(layer, client)


class Backups:
    """A cluster's folder and a database's file, and copies of one moment."""

    def __init__(self, folder: Path) -> None:
        self.cluster = folder / "cluster"
        self._database = folder / "application.db"
        self._copies = folder / "copies"

    def take(self) -> None:
        """Copy both."""
        shutil.copytree(self.cluster, self._copies / "cluster")
        shutil.copy(self._database, self._copies / "application.db")

    def restore_cluster(self) -> None:
        """Let the cluster go back."""
        shutil.rmtree(self.cluster)
        shutil.copytree(self._copies / "cluster", self.cluster)

    def restore_database(self) -> None:
        """Let the database go back."""
        shutil.copy(self._copies / "application.db", self._database)


async def raises(error: type[SemelError], call: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(error, match=r"AfterRestore\.REPROCESS .* AfterRestore\.SKIP|backup"):
        await call()


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path)


@pytest_asyncio.fixture(loop_scope="session")
async def aged(layer: Layer, backups: Backups) -> Layer:
    """An application that has worked before the backup, and after it."""
    async with application(layer, backups.cluster) as running_one:
        for topic in TOPICS:
            await running_one.client.admin().create_topic(topic, partitions=1)
        await running_one.all_calls(0)
    await asyncio.to_thread(backups.take)
    async with application(layer, backups.cluster) as running_one:
        await running_one.all_calls(10)
        assert sorted(await running_one.events()) == [2, 3, 12, 13]
    return layer


async def test_a_cluster_that_went_back_is_named(aged: Layer, backups: Backups) -> None:
    backups.restore_cluster()
    async with application(aged, backups.cluster) as restored:
        await raises(DatabaseAheadError, lambda: restored.store(20))
        await raises(DatabaseAheadError, lambda: restored.transform(21))
        await restored.produce(22)
        await restored.relay(23)
        assert await restored.events() == [2, 3, 22, 23]
        for number in (10, 20):  # Payments of the lost stretch, which are written again.
            await aged.run(f"DELETE FROM payment WHERE amount BETWEEN {number} AND {number + 1}")  # noqa: S608 - of this test
        await aged.run("DELETE FROM payment WHERE amount < 2")
        await restored.store(30, AfterRestore.REPROCESS)
        await restored.transform(31, AfterRestore.REPROCESS)
        assert (await aged.payments()).keys() >= {f"order-{n}" for n in (0, 1, 20, 21, 30, 31)}


async def test_a_database_that_went_back_is_named(aged: Layer, backups: Backups) -> None:
    backups.restore_database()
    async with application(aged, backups.cluster) as restored:
        await restored.store(20)
        assert (await aged.payments()).keys() >= {"order-10", "order-20"}
        await raises(DatabaseBehindError, lambda: restored.transform(21))
        await restored.produce(22)
        await raises(DatabaseBehindError, lambda: restored.relay(23))
        await restored.transform(31, AfterRestore.REPROCESS)
        assert sorted(await restored.paid.decided_receipts()) == [1, 11, 11, 21, 31]


async def test_a_database_that_went_back_may_leave_out_sent_rows(
    aged: Layer, backups: Backups
) -> None:
    backups.restore_database()
    async with application(aged, backups.cluster) as restored:
        loop = restored.paid.database.transform(
            source=["paid"],
            group="paid",
            transactional_id="paid",
            handler=restored.paid.pay,
            options=OPTIONS,
            handle_signals=False,
            after_restore=AfterRestore.SKIP,
        )
        async with running(loop) as task:
            await restored.paid.send(31)
            await until(lambda: restored._has(31), task)
        assert await restored.paid.decided_receipts() == [1, 11, 31]
        assert "order-11" not in await aged.payments()


async def test_both_sides_of_one_moment_go_on(aged: Layer, backups: Backups) -> None:
    backups.restore_cluster()
    backups.restore_database()
    async with application(aged, backups.cluster) as restored:
        await restored.all_calls(20)
        assert await restored.events() == [2, 3, 22, 23]
        assert await restored.paid.decided_receipts() == [1, 21]
    assert [*await aged.payments()] == [f"order-{n}" for n in (0, 1, 2, 20, 21, 22)]


async def test_a_decision_that_the_cluster_has_ended_otherwise_is_told(
    layer: Layer, backups: Backups, caplog: pytest.LogCaptureFixture
) -> None:
    """After `semel recover`, a transaction that was prepared behind the copy is aborted."""
    async with application(layer, backups.cluster) as running_one:
        await running_one.client.admin().create_topic("events", partitions=1)
        producer = running_one.client.transactional_producer("recovered")
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("events", b"1")
        prepared = await producer.prepare()
        admin: Admin = running_one.client.admin()
        await admin.complete_prepared(prepared, commit=False)
        await complete(admin, prepared, commit=True)
        assert f"the database has committed {prepared}, and the cluster has not" in caplog.text
        assert await running_one.events() == []
