"""Trouble around a database: topics, servers, rights, connections, cancelled calls."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from aiosemel import (
    ConsumerOptions,
    ConsumerRecord,
    DatabaseProducer,
    DatabaseSessionEndedError,
    DatabaseTablesError,
    OffsetReset,
    Outputs,
    SemelClient,
    Transform,
    TransformOptions,
)
from aiosemel._database import completions
from aiosemel._database.completions import PREPARED_MAX
from aiosemel.database.asyncpg import AsyncpgDatabase
from database.layers import Layer, layer_named
from database.ledger import OPTIONS, Ledger, Records, ledger_of
from database.running import running, until
from semel_runtime.testing.postgres import PostgresCluster

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def on_sqlite(sqlite: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    return await ledger_of(sqlite, client, topic, name)


def store(ledger: Ledger) -> Transform:
    return ledger.database.store(
        source=[ledger.topic],
        group=ledger.group,
        handler=ledger.book,
        options=OPTIONS,
        handle_signals=False,
    )


def transform(ledger: Ledger) -> Transform:
    return ledger.database.transform(
        source=[ledger.topic],
        group=ledger.group,
        transactional_id=ledger.group,
        handler=ledger.pay,
        options=OPTIONS,
        handle_signals=False,
        consumer_options=ConsumerOptions(
            auto_offset_reset=OffsetReset.EARLIEST, group_instance_id=ledger.group
        ),
    )


# -- topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize("loop_of", [store, transform])
async def test_a_topic_that_was_deleted_and_created_again_is_another_log(
    on_sqlite: Ledger, loop_of: Callable[[Ledger], Transform], *, is_running: bool
) -> None:
    ledger = on_sqlite
    await ledger.send(*range(8))
    loop = loop_of(ledger)
    async with running(loop) as task:
        await until(lambda: ledger.has(*range(8)), task)
        if is_running:
            await create_again(ledger)
            await until(lambda: ledger.has(*range(8), *range(10, 13)), task)
    if not is_running:
        await create_again(ledger)
        async with running(loop_of(ledger)) as task:
            await until(lambda: ledger.has(*range(8), *range(10, 13)), task)


async def create_again(ledger: Ledger) -> None:
    admin = ledger.client.admin()
    await admin.delete_topic(ledger.topic)
    await admin.create_topic(ledger.topic, partitions=2)
    await ledger.send(*range(10, 13))


# -- servers -------------------------------------------------------------------------------------


async def database_of(layer: Layer) -> str:
    ((name,),) = await layer.query("SELECT current_database()")
    return str(name)


@pytest.mark.postgres
@pytest.mark.timeout(180)
async def test_a_standby_is_waited_for_until_it_is_the_primary(
    postgres: PostgresCluster, client: SemelClient, topic: str, name: str, tmp_path: Path
) -> None:
    async with layer_named("asyncpg", tmp_path, postgres.primary.url) as layer:
        url = postgres.primary.url().rpartition("/")[0] + f"/{await database_of(layer)}"
        is_standby = {"default_transaction_read_only": "on"}
        async with asyncpg.create_pool(url, min_size=1, server_settings=is_standby) as pool:
            ledger = await ledger_of(Layer("asyncpg", AsyncpgDatabase(pool)), client, topic, name)
            ledger.reader = layer
            await ledger.send(*range(4))
            async with running(transform(ledger)) as task:
                await asyncio.sleep(0.3)
                assert not task.done()
                assert await ledger.has_both()
                pool.set_connect_args(url)
                await pool.expire_connections()
                await until(lambda: ledger.has_both(*range(4)), task)


@pytest.mark.postgres
@pytest.mark.timeout(180)
async def test_a_right_that_is_missing_is_named(
    postgres: PostgresCluster, client: SemelClient, topic: str, name: str, tmp_path: Path
) -> None:
    async with layer_named("asyncpg", tmp_path, postgres.primary.url) as layer:
        await layer.run("CREATE ROLE reader LOGIN PASSWORD 'reader'")
        await layer.run("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO reader")
        address = postgres.primary.url().partition("@")[2].rpartition("/")[0]
        url = f"postgresql://reader:reader@{address}/{await database_of(layer)}"
        async with asyncpg.create_pool(url, min_size=1) as pool:
            ledger = Ledger(Layer("asyncpg", AsyncpgDatabase(pool)), client, topic, name)
            expected = r"semel_position cannot be used \(UPDATE\): permission denied.* needs SELECT"
            with pytest.raises(DatabaseTablesError, match=expected):
                await store(ledger).run()


async def test_a_change_of_the_schema_in_a_handler_stops_the_loop(
    mariadb_layer: Layer, client: SemelClient, topic: str, name: str
) -> None:
    """It commits the transaction."""
    ledger = await ledger_of(mariadb_layer, client, topic, name)

    async def pay(records: Records, session: object, outputs: Outputs) -> None:
        await ledger.pay(records, session, outputs)
        await ledger.layer.run_in(session, "CREATE TABLE another (id BIGINT)")

    await ledger.send(1)
    loop = ledger.database.transform(
        source=[topic], group=name, transactional_id=name, handler=pay, handle_signals=False
    )
    with pytest.raises(DatabaseSessionEndedError, match=r"in MySQL\) change a schema"):
        await loop.run()
    assert await ledger.visible_receipts() == []


# -- connections ---------------------------------------------------------------------------------


async def test_tasks_of_a_handler_may_share_its_session(
    layer: Layer, client: SemelClient, topic: str, name: str
) -> None:
    """A driver that takes one statement at a time refuses the others, and nothing is half."""
    ledger = Ledger(layer, client, topic, name)
    attempts = 0

    async def book(records: Sequence[ConsumerRecord], session: object) -> None:
        nonlocal attempts
        attempts += 1
        numbers = [int(record.value or b"") for record in records]
        if attempts > 1:
            for number in numbers:
                await layer.pay(session, f"order-{number}", number)
            return
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(layer.pay(session, f"order-{number}", number))

    await ledger.send(*range(6))
    loop = ledger.database.store(
        source=[topic],
        group=name,
        handler=book,
        options=TransformOptions(poll_timeout_ms=50, retry_backoff_ms=5),
        handle_signals=False,
    )
    async with running(loop) as task:
        await until(lambda: ledger.has(*range(6)), task)


async def test_many_loops_share_one_database(
    layer: Layer, client: SemelClient, topic: str, name: str
) -> None:
    """On one connection, where the layer has one."""
    ledger = await ledger_of(layer, client, topic, name)
    loops = []
    for number in range(4):
        part = await ledger_of(layer, client, f"{topic}-{number}", f"{name}-{number}")
        await client.admin().create_topic(part.topic, partitions=1)
        await part.send(*range(number * 10, number * 10 + 6))
        loops.append(store(part) if number % 2 else transform(part))
    expected = [number * 10 + each for number in range(4) for each in range(6)]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for loop in loops:
            group.create_task(loop.run())
        await until(lambda: ledger.has(*expected))
        for loop in loops:
            loop.stop()


# -- completions --------------------------------------------------------------------------------


async def test_a_producer_waits_while_many_completions_are_under_way(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster keeps 64 prepared transactions of an id."""
    ledger, may_complete = on_sqlite, asyncio.Event()
    complete = completions.complete

    async def complete_later(*given: Any, **more: Any) -> None:  # noqa: ANN401 - as the function
        await may_complete.wait()
        await complete(*given, **more)

    async def work(producer: DatabaseProducer[object]) -> None:
        for number in range(PREPARED_MAX + 5):
            async with producer.transaction() as (session, txn):
                await ledger.layer.pay(session, f"order-{number}", number)
                await txn.send(ledger.receipts, b"%d" % number)

    async def is_full() -> bool:
        return len(await ledger.layer.payments()) == PREPARED_MAX + 1

    monkeypatch.setattr(completions, "complete", complete_later)
    async with ledger.database.producer(ledger.group) as producer, asyncio.TaskGroup() as group:
        working = group.create_task(work(producer))
        await until(is_full, working)
        await asyncio.sleep(0.2)
        assert await is_full()
        may_complete.set()
    await until(lambda: ledger.has_both(*range(PREPARED_MAX + 5)))


# -- cancelled calls -----------------------------------------------------------------------------


async def cancel_after(task: "asyncio.Task[None]", steps: int) -> None:
    """Cancel a task after so many rounds of the event loop, and wait for its end."""
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=30)
    assert task.done()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_loop_that_is_cancelled_anywhere_leaves_nothing_half(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    cancelled = 0
    for number, steps in enumerate(range(20, 500, 15)):
        await ledger.send(number)
        task = asyncio.create_task(transform(ledger).run())
        await cancel_after(task, steps)
        cancelled += task.cancelled()
    assert cancelled > 20
    async with running(transform(ledger)) as task:
        await until(lambda: ledger.has_both(*range(number + 1)), task)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_block_that_is_cancelled_anywhere_leaves_nothing_half(on_sqlite: Ledger) -> None:
    ledger = on_sqlite

    async def pay(number: int) -> None:
        async with producer.transaction() as (session, txn):
            await ledger.layer.pay(session, f"order-{number}", number)
            await txn.send(ledger.receipts, b"%d" % number)

    cancelled = 0
    async with ledger.database.producer(ledger.group) as producer:
        for number in range(100):
            task = asyncio.create_task(pay(number))
            await cancel_after(task, number)
            cancelled += task.cancelled()
    assert cancelled > 20
    async with ledger.database.producer(ledger.group) as producer:
        await pay(100)

    async def are_equal() -> bool:
        payments = sorted((await ledger.layer.payments()).values())
        return 100 in payments and payments == sorted(await ledger.visible_receipts())

    await until(are_equal)
    assert len(await ledger.layer.payments()) < 101
