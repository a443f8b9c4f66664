"""Databases that several transactions can write at a time: what other connections do meanwhile."""

import asyncio

import pytest
import pytest_asyncio

from aiosemel import (
    DatabaseProducer,
    Outputs,
    PreparedTransactionId,
    SemelClient,
    TransactionAborted,
    TransactionAbortedError,
)
from aiosemel._database.decisions import Decisions
from aiosemel._database.joint_commit import JointCommit
from aiosemel._database.open_session import OpenSession
from aiosemel._outbox.outbox_table import OutboxTable
from aiosemel.client import SystemClock
from aiosemel.database import Dialect, Outbox, create_tables
from aiosemel.errors import DatabaseUnavailableError, InvalidConfigError
from database.layers import Layer
from database.ledger import OPTIONS, Ledger, Records, ledger_of
from database.running import running, until
from semel_cli.transactions.resolve import opened
from semel_runtime.testing.mariadb import MariadbServer

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

PROMPT_S = 10
"""A lock that is not free is an error of these databases after 50 s, or never."""


@pytest_asyncio.fixture(loop_scope="session")
async def ledger(server_layer: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    return await ledger_of(server_layer, client, topic, name)


async def test_tables_are_created_once(server_layer: Layer) -> None:
    await create_tables(server_layer.database)


async def test_a_name_that_mariadb_compares_without_its_end_is_refused(
    mariadb_layer: Layer, client: SemelClient
) -> None:
    database = mariadb_layer.database
    joined = client.with_database(database)
    with pytest.raises(InvalidConfigError, match="group 'ledger ' ends with a space"):
        joined.store(source=["t"], group="ledger ", handler=ignore)
    with pytest.raises(InvalidConfigError, match="transactional_id 'ledger ' ends"):
        await joined.producer("ledger ").open()
    with pytest.raises(InvalidConfigError, match="the name of the outbox 'ledger ' ends"):
        Outbox(database, "ledger ")
    for name in ("ledger", "Ledger", "lédger", " ledger", "ledger\t", "ledger\u00a0"):
        await register(mariadb_layer, name)
    with pytest.raises(Exception, match="Duplicate entry"):
        await register(mariadb_layer, "ledger ")


async def register(layer: Layer, name: str) -> None:
    async with layer.database.transaction() as transaction:
        await transaction.execute("INSERT INTO semel_producer VALUES (?, 0)", (name,))


async def ignore(*_: object) -> None:
    """Take records."""


async def test_of_two_decisions_the_first_one_stays(server_layer: Layer) -> None:
    """Whatever the transaction of the second one has read before."""
    database = server_layer.database
    decisions = Decisions(database, SystemClock())
    prepared = PreparedTransactionId(transactional_id="t", producer_id=1, producer_epoch=2)
    async with database.transaction() as transaction:
        assert await transaction.fetch("SELECT * FROM semel_transaction") == []
        assert not await decisions.is_committed(prepared)
        with pytest.raises(Exception) as raised:  # noqa: PT011 - some drivers have their own
            await decisions.note_committed(transaction, prepared, [])
    assert "another process has decided to abort" in str(raised.value)
    assert not await decisions.is_committed(prepared)
    other = PreparedTransactionId(transactional_id="t", producer_id=1, producer_epoch=3)
    async with database.transaction() as transaction:
        await decisions.note_committed(transaction, other, [])
    assert await decisions.is_committed(other)


async def transact(ledger: Ledger, producer: DatabaseProducer[object]) -> None:
    async with producer.transaction() as (session, txn):
        await ledger.layer.pay(session, "order-0", 0)
        await txn.send(ledger.receipts, b"0")


async def test_a_block_whose_connection_was_slow_aborts(ledger: Ledger) -> None:
    decide = JointCommit._decide

    async def resolved_first(
        joint: JointCommit, prepared: PreparedTransactionId, opened: OpenSession[object]
    ) -> None:
        decisions = Decisions(ledger.layer.database, SystemClock())
        assert not await decisions.is_committed(prepared)
        await decide(joint, prepared, opened)

    async with ledger.database.producer(ledger.group) as producer:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(JointCommit, "_decide", resolved_first)
            with pytest.raises(TransactionAbortedError, match="another process has decided"):
                await transact(ledger, producer)
    assert await ledger.has_both()


async def test_a_position_that_moves_during_the_handler_rolls_it_back(ledger: Ledger) -> None:
    """A zombie: another instance has processed its records while it was in the handler."""
    await ledger.send(*range(4))
    rounds = 0

    async def book(records: Records, session: object) -> None:
        nonlocal rounds
        rounds += 1
        await ledger.book(records, session)
        if rounds == 1:
            await ledger.layer.run("UPDATE semel_position SET next_offset = next_offset + 1")
            await ledger.layer.run("UPDATE semel_position SET updated_at_ms = 0")

    loop = ledger.database.store(
        source=[ledger.topic],
        group=ledger.group,
        handler=book,
        on_event=ledger.note,
        options=OPTIONS,
        handle_signals=False,
    )
    async with running(loop) as task:

        async def is_read() -> bool:
            rows = await ledger.layer.query("SELECT next_offset FROM semel_position")
            return sum(int(offset) for (offset,) in rows) == 4

        await until(is_read, task)
    aborted = [event for event in ledger.events if isinstance(event, TransactionAborted)]
    assert "has moved the position" in str(aborted[0].error)
    assert len(await ledger.layer.payments()) == 2, "one record of each partition was passed over"


async def end_connection(layer: Layer, session: object) -> None:
    """End a connection that stands in a transaction, as a time-out of the server does."""
    is_mysql = layer.database.dialect is Dialect.MYSQL
    query = "SELECT CONNECTION_ID()" if is_mysql else "SELECT pg_backend_pid()"
    ((number,),) = await layer.database.joined(session).fetch(query)
    await layer.run(f"KILL {number}" if is_mysql else f"SELECT pg_terminate_backend({number})")
    await asyncio.sleep(0.1)


@pytest.mark.parametrize("is_before", [True, False])
async def test_a_connection_that_ends_in_the_handler_costs_no_record(
    ledger: Ledger, *, is_before: bool
) -> None:
    ended: list[object] = []

    async def pay(records: Records, session: object, outputs: Outputs) -> None:
        if is_before and not ended:
            await end_connection(ledger.layer, session)
            ended.append(session)
        await ledger.pay(records, session, outputs)
        if not ended:
            await end_connection(ledger.layer, session)
            ended.append(session)

    await ledger.send(*range(4))
    loop = ledger.database.transform(
        source=[ledger.topic],
        group=ledger.group,
        transactional_id=ledger.group,
        handler=pay,
        options=OPTIONS,
        handle_signals=False,
        on_event=ledger.note,
    )
    async with running(loop) as task:
        await until(lambda: ledger.has_both(*range(4)), task)
    assert ended
    (aborted,) = [each for each in ledger.events if isinstance(each, TransactionAborted)]
    assert isinstance(aborted.error, DatabaseUnavailableError)


async def test_a_relay_waits_for_no_open_transaction_and_passes_over_none(
    server_layer: Layer,
) -> None:
    outbox = Outbox(server_layer.database)
    table = OutboxTable(outbox, "relay")
    assert await table.take_charge("owner", 1, 1_000_000) is not None
    database = server_layer.database

    async def write(value: bytes) -> None:
        async with database.transaction() as transaction:
            await outbox.send(transaction.session, "t", value)

    async def relay(version: int) -> list[bytes | None]:
        async with asyncio.timeout(PROMPT_S):
            if not await table.claim(version, 1_000, 1_000_000):
                return []
            rows = await table.rows(version)
            await table.delete(version)
            return [row.record.value for row in rows]

    await write(b"1")
    async with database.transaction() as late:
        await outbox.send(late.session, "t", b"late")
        await write(b"2")
        assert await relay(1) == [b"1", b"2"]
        await outbox.send(late.session, "t", b"later")
        await write(b"3")
        assert await relay(2) == [b"3"]
    assert await relay(3) == [b"late", b"later"]


async def test_the_command_line_reads_the_decisions_of_mariadb(
    mariadb_layer: Layer, mariadb: MariadbServer, client: SemelClient
) -> None:
    ((name,),) = await mariadb_layer.query("SELECT DATABASE()")
    for scheme in ("mysql", "mariadb"):
        url = mariadb.url(str(name)).replace("mysql", scheme, 1)
        async with opened(url) as database:
            assert await client.with_database(database).resolve_prepared() == {}


async def test_a_database_that_is_killed_again_and_again_loses_nothing(
    mariadb_layer: Layer, mariadb: MariadbServer, client: SemelClient, topic: str, name: str
) -> None:
    """As `make demo-database` kills PostgreSQL."""
    ledger = await ledger_of(mariadb_layer, client, topic, name)
    await ledger.send(*range(120))
    loop = ledger.database.transform(
        source=[ledger.topic],
        group=ledger.group,
        transactional_id=ledger.group,
        handler=ledger.pay,
        options=OPTIONS,
        handle_signals=False,
    )
    async with running(loop) as task:
        for pause_s in (0.05, 0.1, 0.15, 0.2, 0.25):
            await asyncio.sleep(pause_s)
            await asyncio.to_thread(mariadb.kill)
            await asyncio.to_thread(mariadb.start)
            assert not task.done()
        await until(lambda: ledger.has_both(*range(120)), task)
