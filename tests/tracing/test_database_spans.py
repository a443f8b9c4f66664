"""The commit of an application's own database: a span between prepare and completion."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from aiosemel import ConsumerRecord, Outputs, SemelClient, Transform
from aiosemel.database import create_tables
from aiosemel.database.sqlite import SqliteDatabase
from semel_local import LocalCluster


@pytest.fixture
async def client(provider: TracerProvider) -> AsyncIterator[SemelClient]:
    async with LocalCluster(tracer_provider=provider) as cluster, cluster.client() as client:
        await client.admin().create_topic("orders", partitions=1)
        await client.admin().create_topic("receipts", partitions=1)
        yield client


@pytest.fixture
async def database(tmp_path: Path) -> SqliteDatabase:
    database = SqliteDatabase(tmp_path / "application.db")
    await create_tables(database)
    async with database.transaction() as transaction:
        await transaction.execute("CREATE TABLE payer (name TEXT PRIMARY KEY)")
    return database


def client_span(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    """Return the only span of a client whose name ends so."""
    (found,) = (
        span
        for span in exporter.get_finished_spans()
        if span.name.endswith(name)
        and span.instrumentation_scope is not None
        and span.instrumentation_scope.name == "aiosemel"
    )
    return found


def check_order(exporter: InMemorySpanExporter, parent: str) -> None:
    """The commit comes after the prepare and before the completion, in one trace."""
    names = ("/PrepareTxn", "commit database", "/CompletePreparedTxn")
    prepare, commit, complete = (client_span(exporter, name) for name in names)
    assert prepare.end_time is not None
    assert commit.start_time is not None
    assert commit.end_time is not None
    assert complete.start_time is not None
    assert prepare.end_time <= commit.start_time <= commit.end_time
    assert complete.start_time >= commit.start_time
    traces = {span.get_span_context().trace_id for span in (prepare, commit, complete)}  # type: ignore[union-attr]  # it was recorded
    assert len(traces) == 1
    assert commit.parent is not None
    assert commit.parent == client_span(exporter, parent).get_span_context()
    assert commit.attributes is not None
    assert commit.attributes["db.system.name"] == "sqlite"


async def test_a_transformation_shows_the_commit_of_its_database(
    client: SemelClient, database: SqliteDatabase, exporter: InMemorySpanExporter
) -> None:
    running: list[Transform] = []

    async def handle(
        records: Sequence[ConsumerRecord], session: sqlite3.Connection, outputs: Outputs
    ) -> None:
        session.execute("INSERT INTO payer VALUES ('a')")
        await outputs.send("receipts", records[0].value)
        running[0].stop()

    async with client.producer() as producer:
        await producer.send_and_wait("orders", b"pizza")
    running.append(
        client.with_database(database).transform(
            source=["orders"], group="g", transactional_id="t", handler=handle
        )
    )
    await running[0]
    check_order(exporter, "process orders")


async def test_a_block_shows_the_commit_of_its_database(
    client: SemelClient, database: SqliteDatabase, exporter: InMemorySpanExporter
) -> None:
    async with (
        client.with_database(database).producer("t") as producer,
        producer.transaction() as (session, txn),
    ):
        session.execute("INSERT INTO payer VALUES ('a')")
        await txn.send("receipts", b"pizza")
    check_order(exporter, "transaction")


async def test_a_commit_that_fails_says_why(
    client: SemelClient, database: SqliteDatabase, exporter: InMemorySpanExporter
) -> None:
    async def lose_the_decisions() -> None:
        async with producer.transaction() as (session, txn):
            session.execute("DROP TABLE semel_transaction")
            await txn.send("receipts", b"pizza")

    async with client.with_database(database).producer("t") as producer:
        with pytest.raises(sqlite3.OperationalError, match="semel_transaction"):
            await lose_the_decisions()
    commit = client_span(exporter, "commit database")
    assert commit.status.status_code is StatusCode.ERROR
    assert "semel_transaction" in (commit.status.description or "")
