"""`semel transactions resolve`: the database decides what an application left prepared."""

import asyncio
from pathlib import Path

import pytest
from command_line import CommandLine

from aiosemel import SemelClient
from aiosemel.database import create_tables
from aiosemel.database.sqlite import SqliteDatabase


def leave_prepared(semel: CommandLine, topic: str, file: Path, *, decided: bool) -> None:
    """Leave a transaction prepared, as a process does that was killed at that point."""

    async def prepared() -> None:
        database = SqliteDatabase(file)
        await create_tables(database)
        async with SemelClient(semel.environment["SEMEL_BOOTSTRAP"]) as client:
            async with client.with_database(database).producer(topic):
                pass  # The database knows the id from now on.
            producer = client.transactional_producer(topic)
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send(topic, b"1", partition=0)
            name = str(await producer.prepare())
        if decided:
            async with database.transaction() as transaction:
                row = (name, "committed", 0)
                await transaction.execute("INSERT INTO semel_transaction VALUES (?, ?, ?)", row)

    asyncio.run(prepared())


@pytest.mark.parametrize(("decided", "outcome"), [(True, "COMMITTED"), (False, "ABORTED")])
def test_a_transaction_ends_as_the_database_says(
    semel: CommandLine, topic: str, tmp_path: Path, decided: bool, outcome: str
) -> None:
    file = tmp_path / "shop.db"
    leave_prepared(semel, topic, file, decided=decided)
    command = ("transactions", "resolve", "--database", f"sqlite://{file}", "--format", "json")
    assert semel(*command).json == [
        {"transactional_id": topic, "producer_epoch": 1, "outcome": outcome}
    ]
    read = semel("consume", topic, "--from-beginning", "--to-end").lines
    assert read == (["1"] if decided else [])
    again = semel(*command)
    assert again.json == []
    assert "No transaction of this database is prepared" in again.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///nowhere.db", "/nowhere.db is not there"),
        ("sqlite+aiosqlite:///nowhere.db", "/nowhere.db is not there"),
        ("postgresql://app@127.0.0.1:1/shop", "the database does not answer"),
        ("postgresql+psycopg://app@127.0.0.1:1/shop", "the database does not answer"),
        ("mysql://app@127.0.0.1:1/shop", "the database does not answer"),
        ("mariadb://app@127.0.0.1:1/shop", "the database does not answer"),
    ],
)
def test_a_database_that_is_not_there_is_an_error(semel: CommandLine, url: str, words: str) -> None:
    assert words in semel("transactions", "resolve", "--database", url, status=1).err


def test_another_kind_of_database_is_refused(semel: CommandLine) -> None:
    failed = semel("transactions", "resolve", "--database", "oracle://db", status=2)
    assert "postgresql://" in failed.err


def test_a_database_without_the_tables_says_how_to_make_them(
    semel: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "empty.db"
    file.touch()
    failed = semel("transactions", "resolve", "--database", f"sqlite://{file}", status=1)
    assert "python -m aiosemel.database sql --dialect sqlite" in failed.err
