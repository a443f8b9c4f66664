"""What every layer does: transactions, numbers of rows, binary values, the caller's own session."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aiosemel._database.driver_errors import is_passing
from aiosemel._database.open_session import OpenSession
from aiosemel._database.table_check import check_tables
from aiosemel.database import Database
from aiosemel.database.tables import POSITION, TABLES
from aiosemel.errors import DatabaseSessionEndedError, DatabaseTablesError
from database.layers import Layer

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def fail_in(database: Database[object]) -> None:
    async with database.transaction() as transaction:
        await transaction.execute(INSERT, ("a", 1))
        raise ZeroDivisionError


INSERT = "INSERT INTO payment (order_id, amount) VALUES (?, ?)"


async def test_a_block_commits_at_its_end(layer: Layer) -> None:
    async with layer.database.transaction() as transaction:
        assert await transaction.execute(INSERT, ("100 % ünique", 2**62)) == 1
    assert await layer.payments() == {"100 % ünique": 2**62}


async def test_an_exception_rolls_back(layer: Layer) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail_in(layer.database)
    assert await layer.payments() == {}


async def test_a_transaction_that_is_cancelled_at_any_moment_holds_nothing(layer: Layer) -> None:
    for moment in range(60):
        order = f"order-{moment}"
        before = await layer.payments()
        writing = asyncio.create_task(layer.run(f"INSERT INTO payment VALUES ('{order}', 1)"))  # noqa: S608 - of this test
        await asyncio.sleep(moment * 0.0001)
        writing.cancel()
        await asyncio.wait([writing])
        # A commit that is cancelled may have taken effect; a commit that has returned has.
        after = await layer.payments()
        assert after == before | {order: 1} or (writing.cancelled() and after == before)
    assert len(await layer.payments()) < 60


async def test_a_transaction_that_is_cancelled_while_another_writer_is_busy_holds_nothing(
    sqlite_layer: Layer, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "application.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(sqlite_layer.run("INSERT INTO payment VALUES ('a', 1)"))
        await asyncio.sleep(0.05)
        writing.cancel()
        await asyncio.wait([writing], timeout=0.05)
        writer.execute("COMMIT")
        await asyncio.wait([writing])
    assert writing.cancelled()
    await sqlite_layer.run("INSERT INTO payment VALUES ('b', 1)")
    assert await sqlite_layer.payments() == {"b": 1}


SLOW = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000)"
    " SELECT max(i) FROM n"
)


async def test_a_statement_that_is_cancelled_while_it_runs_holds_no_lock(
    sqlite_layer: Layer, tmp_path: Path
) -> None:
    async def write() -> None:
        async with sqlite_layer.database.transaction() as transaction:
            await transaction.execute(INSERT, ("a", 1))
            await transaction.execute(SLOW)

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.1)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await writing
    with closing(sqlite3.connect(tmp_path / "application.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
    assert (
        cancelled.tb is not None
    )  # It has the cursor, whose statement keeps a closed connection open.


async def test_an_update_says_how_many_rows_it_matched(layer: Layer) -> None:
    async with layer.database.transaction() as transaction:
        await transaction.execute(INSERT, ("a", 1))
        await transaction.execute(INSERT, ("b", 2))
        update = "UPDATE payment SET amount = ? WHERE amount < ?"
        assert await transaction.execute(update, (5, 3)) == 2
        assert await transaction.execute(update, (9, 3)) == 0
        assert await transaction.execute("DELETE FROM payment WHERE order_id = ?", ("a",)) == 1


async def test_bytes_and_nulls_come_back_as_they_were(layer: Layer) -> None:
    value = bytes(range(256))
    async with layer.database.transaction() as transaction:
        await transaction.execute(
            "INSERT INTO semel_outbox (outbox, topic, record_key, record_value)"
            " VALUES (?, ?, ?, ?)",
            ("o", "t", None, value),
        )
        ((key, stored),) = await transaction.fetch(
            "SELECT record_key, record_value FROM semel_outbox"
        )
    assert key is None
    assert isinstance(stored, bytes | memoryview)
    assert bytes(stored) == value


async def test_the_session_of_a_caller_can_be_joined(layer: Layer) -> None:
    with pytest.raises(TypeError, match=r"no .*onnection"):
        layer.database.joined(object())
    if layer.name.startswith("django"):
        return  # its connection belongs to the thread of its transaction
    async with layer.database.transaction() as transaction:
        joined = layer.database.joined(transaction.session)
        await joined.execute(INSERT, ("a", 1))
        assert len(await transaction.fetch("SELECT * FROM payment")) == 1
    assert await layer.payments() == {"a": 1}


async def test_the_tables_are_checked_by_name_column_and_kind_of_statement(layer: Layer) -> None:
    await check_tables(layer.database, TABLES)
    await layer.run("ALTER TABLE semel_position RENAME COLUMN last_crc TO lost")
    with pytest.raises(DatabaseTablesError, match=r"semel_position .*SELECT.*last_crc"):
        await check_tables(layer.database, [POSITION])
    await layer.run("DROP TABLE semel_position")
    with pytest.raises(DatabaseTablesError, match=f"--dialect {layer.database.dialect}"):
        await check_tables(layer.database, [POSITION])


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_session_that_was_ended_inside_is_noticed(layer: Layer, end: str) -> None:
    opened = await OpenSession.begin(layer.database)
    await opened.statements.execute(INSERT, ("a", 1))
    await opened.statements.execute(end)
    with pytest.raises(DatabaseSessionEndedError, match="must not commit") as raised:
        await opened.check()
    await opened.roll_back(raised.value)
    assert await layer.payments() == ({"a": 1} if end == "COMMIT" else {})


async def test_a_broken_constraint_does_not_pass(layer: Layer) -> None:
    await layer.run("INSERT INTO payment VALUES ('a', 1)")
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each driver has its own
        await layer.run("INSERT INTO payment VALUES ('a', 1)")
    assert not is_passing(raised.value)
    with pytest.raises(Exception) as raised:  # noqa: PT011 - as above
        await layer.run("SELECT * FROM nowhere")
    assert not is_passing(raised.value)
