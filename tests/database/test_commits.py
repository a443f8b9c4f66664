"""Commits of PostgreSQL that fail, or whose answer is lost: never guessed, never half."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from aiosemel import (
    ConsumerRecord,
    DatabaseProducer,
    Outputs,
    SemelClient,
    TransactionAborted,
    TransactionAbortedError,
    Transform,
)
from aiosemel.database.asyncpg import AsyncpgDatabase
from aiosemel.errors import DatabaseOutcomeUnknownError, DatabaseUnavailableError
from database.hooked import HookedDatabase
from database.layers import DJANGO_ON_POSTGRES, ON_POSTGRES, Layer, layer_named
from database.ledger import OPTIONS, Ledger, Records, store_of
from database.running import running, until
from database.wire import Break, Wire
from semel_runtime.testing.postgres import PostgresCluster

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

SERIALIZABLE = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"


@pytest_asyncio.fixture(loop_scope="session")
async def wire(postgres: PostgresCluster) -> AsyncIterator[Wire]:
    wire = Wire(postgres.primary.port)
    async with wire.opened():
        yield wire


@pytest_asyncio.fixture(params=[*ON_POSTGRES, DJANGO_ON_POSTGRES], loop_scope="session")
async def ledger(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres: PostgresCluster,
    wire: Wire,
    client: SemelClient,
    topic: str,
    name: str,
) -> AsyncIterator[Ledger]:
    """The application, behind the wire, with hooks."""
    url = postgres.primary.url().replace(f":{postgres.primary.port}/", f":{wire.port}/")
    async with layer_named(request.param, tmp_path, lambda: url) as layer:
        hooked = Layer(layer.name, HookedDatabase(layer.database))
        ((database,),) = await layer.query("SELECT current_database()")
        async with asyncpg.create_pool(postgres.primary.url(database), min_size=1) as pool:
            reader = Layer("asyncpg", AsyncpgDatabase(pool))
            ledger = Ledger(hooked, client, topic, name, reader=reader)
            await client.admin().create_topic(ledger.receipts, partitions=1)
            yield ledger


def hooks_of(ledger: Ledger) -> HookedDatabase:
    hooked = ledger.layer.database
    assert isinstance(hooked, HookedDatabase)
    return hooked


def transform_of(ledger: Ledger, **more: Any) -> Transform:  # noqa: ANN401 - of the loop
    return ledger.database.transform(
        source=[ledger.topic],
        group=ledger.group,
        transactional_id=ledger.group,
        on_event=ledger.note,
        handle_signals=False,
        **{"handler": ledger.pay, "options": OPTIONS, **more},
    )


@asynccontextmanager
async def producer_of(ledger: Ledger) -> AsyncIterator["DatabaseProducer[object]"]:
    async with ledger.database.producer(ledger.group) as producer:
        yield producer


async def transact(ledger: Ledger, producer: "DatabaseProducer[object]", number: int) -> None:
    async with producer.transaction() as (session, txn):
        await ledger.layer.pay(session, f"order-{number}", number)
        await txn.send(ledger.receipts, b"%d" % number)


async def nothing_is_prepared(ledger: Ledger) -> bool:
    admin = ledger.client.admin()
    return not await admin.list_prepared_transactions(transactional_id_pattern=ledger.group)


def aborts(ledger: Ledger) -> list[Exception]:
    return [event.error for event in ledger.events if isinstance(event, TransactionAborted)]


def handled(ledger: Ledger) -> list[int]:
    return sorted(number for batch in ledger.batches for number in batch)


# -- the answer is lost --------------------------------------------------------------------------


@pytest.mark.parametrize("where", Break)
async def test_a_commit_of_store_without_an_answer_is_looked_up(
    ledger: Ledger, wire: Wire, where: Break
) -> None:
    async def book(records: Records, session: object) -> None:
        if not ledger.batches:
            wire.arm(where)
        await ledger.book(records, session)

    await ledger.send(*range(12))
    async with running(store_of(ledger, handler=book)) as task:
        await until(lambda: ledger.has(*range(12)), task)
    assert wire.breaks == 1
    check_events(ledger, where)


@pytest.mark.parametrize("where", Break)
async def test_a_commit_of_transform_without_an_answer_is_looked_up(
    ledger: Ledger, wire: Wire, where: Break
) -> None:
    async def pay(records: Records, session: object, outputs: Outputs) -> None:
        if not ledger.batches:
            wire.arm(where)
        await ledger.pay(records, session, outputs)

    await ledger.send(*range(12))
    async with running(transform_of(ledger, handler=pay)) as task:
        await until(lambda: ledger.has_both(*range(12)), task)
    assert wire.breaks == 1
    assert await nothing_is_prepared(ledger)
    check_events(ledger, where)


def check_events(ledger: Ledger, where: Break) -> None:
    """If the server has committed, the handler is not called again."""
    if where is Break.AFTER:
        assert aborts(ledger) == []
        assert handled(ledger) == [*range(12)]
    else:
        assert [type(error) for error in aborts(ledger)] == [DatabaseUnavailableError]
        assert len(handled(ledger)) > 12


async def test_a_block_ends_as_the_database_has_committed(ledger: Ledger, wire: Wire) -> None:
    async with producer_of(ledger) as producer:
        wire.arm(Break.AFTER)
        await transact(ledger, producer, 1)
        wire.arm(Break.BEFORE)
        with pytest.raises(TransactionAbortedError, match="the database did not commit"):
            await transact(ledger, producer, 2)
        await transact(ledger, producer, 3)
        await until(lambda: ledger.has_both(1, 3))
    assert wire.breaks == 2
    assert await nothing_is_prepared(ledger)


# -- the commit fails ----------------------------------------------------------------------------


class Skew:
    """Another transaction that commits before, so that SERIALIZABLE refuses the first one.

    Each of the two reads the account that the other one changes.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.commits = 0
        """How often the other transaction has committed."""

    async def prepare(self) -> None:
        await self._ledger.layer.run("CREATE TABLE account (name VARCHAR(9), amount BIGINT)")
        await self._ledger.layer.run("INSERT INTO account VALUES ('ours', 1), ('theirs', 1)")
        hooks_of(self._ledger).at_begin = SERIALIZABLE

    async def take_part(self, session: object) -> None:
        """Read and write as a handler; the other transaction comes before the commit."""
        layer = self._ledger.layer
        await layer.run_in(session, "SELECT sum(amount) FROM account")
        await layer.run_in(session, "UPDATE account SET amount = amount - 1 WHERE name = 'ours'")
        if not self.commits:
            hooks_of(self._ledger).before_commit = self._other

    async def _other(self) -> None:
        assert self._ledger.reader is not None
        other = HookedDatabase(self._ledger.reader.database, at_begin=SERIALIZABLE)
        async with other.transaction() as transaction:
            await transaction.fetch("SELECT sum(amount) FROM account")
            await transaction.execute(
                "UPDATE account SET amount = amount - 1 WHERE name = 'theirs'"
            )
        self.commits += 1


@pytest_asyncio.fixture(loop_scope="session")
async def skew(ledger: Ledger) -> Skew:
    skew = Skew(ledger)
    await skew.prepare()
    return skew


async def test_a_store_that_cannot_be_serialized_at_its_commit_is_repeated(
    ledger: Ledger, skew: Skew
) -> None:
    async def book(records: Records, session: object) -> None:
        await skew.take_part(session)
        await ledger.book(records, session)

    await ledger.send(*range(8))
    async with running(store_of(ledger, handler=book)) as task:
        await until(lambda: ledger.has(*range(8)), task)
    assert skew.commits == 1
    assert [type(error) for error in aborts(ledger)] == [DatabaseUnavailableError]


async def test_a_transform_that_cannot_be_serialized_at_its_commit_is_repeated(
    ledger: Ledger, skew: Skew
) -> None:
    async def pay(records: Records, session: object, outputs: Outputs) -> None:
        await skew.take_part(session)
        await ledger.pay(records, session, outputs)

    await ledger.send(*range(8))
    async with running(transform_of(ledger, handler=pay)) as task:
        await until(lambda: ledger.has_both(*range(8)), task)
    assert skew.commits == 1
    assert [type(error) for error in aborts(ledger)] == [DatabaseUnavailableError]
    assert await nothing_is_prepared(ledger)


async def test_a_block_that_cannot_be_serialized_at_its_commit_aborts(
    ledger: Ledger, skew: Skew
) -> None:
    async with producer_of(ledger) as producer:

        async def block() -> None:
            async with producer.transaction() as (session, txn):
                await skew.take_part(session)
                await ledger.layer.pay(session, "order-1", 1)
                await txn.send(ledger.receipts, b"1")

        with pytest.raises(TransactionAbortedError, match="the database did not commit"):
            await block()
        await block()
    assert skew.commits == 1
    assert await ledger.has_both(1)


@pytest_asyncio.fixture(loop_scope="session")
async def customers(ledger: Ledger) -> None:
    """A constraint that PostgreSQL checks at the COMMIT."""
    await ledger.layer.run("CREATE TABLE customer (id BIGINT PRIMARY KEY)")
    await ledger.layer.run(
        "CREATE TABLE purchase (customer BIGINT REFERENCES customer DEFERRABLE INITIALLY DEFERRED)"
    )


async def buy(ledger: Ledger, session: object, customer: int) -> None:
    await ledger.layer.run_in(session, f"INSERT INTO purchase VALUES ({customer})")  # noqa: S608 - of this test


@pytest.mark.usefixtures("customers")
@pytest.mark.parametrize("loop_of", [store_of, transform_of])
async def test_a_record_that_breaks_a_deferred_constraint_is_poison(
    ledger: Ledger,
    loop_of: Any,  # noqa: ANN401 - of two loops
) -> None:
    """The transaction is prepared by then; the loop finds the record, and keeps the others."""
    given_up = []

    async def handle(records: Records, session: object, *outputs: Outputs) -> None:
        if any(record.value == b"3" for record in records):
            await buy(ledger, session, 3)
        await (ledger.pay(records, session, *outputs) if outputs else ledger.book(records, session))

    async def give_up(record: ConsumerRecord, error: Exception, *_: object) -> None:
        given_up.append((record.value, getattr(error, "sqlstate", None) or repr(error)))

    await ledger.send(*range(8))
    expected = [number for number in range(8) if number != 3]
    async with running(loop_of(ledger, handler=handle, on_poison=give_up)) as task:
        await until(lambda: ledger.has(*expected), task)
        await until(lambda: nothing_is_prepared(ledger), task)
    ((value, state),) = given_up
    assert value == b"3"
    assert "23503" in state or "violates foreign key constraint" in state
    if loop_of is transform_of:
        assert await ledger.has_both(*expected)


@pytest.mark.usefixtures("customers")
async def test_a_block_that_breaks_a_deferred_constraint_raises_it(ledger: Ledger) -> None:
    async with producer_of(ledger) as producer:

        async def block() -> None:
            async with producer.transaction() as (session, txn):
                await buy(ledger, session, 1)
                await txn.send(ledger.receipts, b"1")

        with pytest.raises(Exception, match="violates foreign key constraint") as raised:
            await block()
        assert not isinstance(raised.value, TransactionAbortedError)
        await transact(ledger, producer, 2)
    assert await ledger.has_both(2)
    assert await nothing_is_prepared(ledger)


# -- the program ends before the database answers ------------------------------------------------


async def test_a_commit_that_cannot_be_looked_up_is_no_abort(
    ledger: Ledger, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks in the commit, the database stays away, and the program ends."""
    async with producer_of(ledger) as producer:
        wire.arm(Break.AFTER)

        async def away(*_: object) -> bool:
            raise DatabaseUnavailableError("the database is away")

        with monkeypatch.context() as patched:
            patched.setattr("aiosemel._database.decisions.Decisions.is_committed", away)
            block = asyncio.create_task(transact(ledger, producer, 1))
            await until(lambda: broke(wire))
            await producer.close()
            with pytest.raises(DatabaseOutcomeUnknownError, match="did not say whether"):
                await block
    async with producer_of(ledger):  # The next start finds out.
        pass
    await until(lambda: ledger.has_both(1))


async def broke(wire: Wire) -> bool:
    return wire.breaks == 1
