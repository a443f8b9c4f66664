"""An outbox: a transaction of the application decides, and each record is sent once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from committed_records import visible_records

from aiosemel import (
    AfterRestore,
    ConsumerRecord,
    DatabaseBehindError,
    Relay,
    RelayOptions,
    SemelClient,
)
from aiosemel._joint.joint_transaction import JointTransaction
from aiosemel._outbox.outbox_table import OutboxTable
from aiosemel.database import Outbox
from aiosemel.database.django import DjangoDatabase
from aiosemel.errors import JointOwnerMismatchError, MessageTooLargeError
from database.layers import Layer
from database.running import running, until

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

OPTIONS = RelayOptions(
    max_records=7, poll_interval_ms=20, lease_ms=400, retry_backoff_ms=5, retry_backoff_max_ms=20
)


HEADERS = (("kind", b"order"), ("none", None))


class Died(BaseException):
    """The process has ended at this point."""


class Shop:
    """The application: it writes orders, and events into its outbox."""

    def __init__(self, layer: Layer, client: SemelClient, topic: str, name: str) -> None:
        self.layer = layer
        self.client = client
        self.topic = topic
        self.name = name
        self.outbox = Outbox(layer.database, name)

    def relay(
        self, after_restore: AfterRestore = AfterRestore.STOP, options: RelayOptions = OPTIONS
    ) -> Relay:
        return self.client.relay(
            self.outbox,
            transactional_id=self.name,
            after_restore=after_restore,
            options=options,
            handle_signals=False,
        )

    async def order(self, *numbers: int) -> None:
        """Write orders and events in one transaction."""
        async with self.layer.database.transaction() as transaction:
            await self.order_in(transaction.session, *numbers)

    async def order_in(self, session: object, *numbers: int) -> None:
        """Write orders and events in the caller's transaction."""
        for number in numbers:
            await self.layer.pay(session, f"order-{number}", number)
            key, value = b"%d" % (number % 3), b"%d" % number
            if isinstance(self.layer.database, DjangoDatabase):
                await self.layer.database.handler(self._send_by_cursor)(session, key, value)
            else:
                await self.outbox.send(
                    session,
                    self.topic,
                    value,
                    key=key,
                    headers=HEADERS,
                )

    def _send_by_cursor(self, session: object, key: bytes, value: bytes) -> None:
        with session.cursor() as cursor:  # type: ignore[attr-defined]  # Django's connection
            self.outbox.send_by(cursor, self.topic, value, key=key, headers=HEADERS)

    async def events(self) -> list[ConsumerRecord]:
        """Return what readers of committed records see, partition after partition."""
        return await visible_records(
            self.client, [(self.topic, partition) for partition in range(2)]
        )

    async def has_sent(self, *numbers: int) -> bool:
        """Whether exactly these events are in the topic, each once."""
        sent = [int(record.value or b"") for record in await self.events()]
        assert len(sent) == len(set(sent)), "an event twice"
        return sorted(sent) == sorted(numbers)

    async def is_empty(self) -> bool:
        """Whether no record waits."""
        return not await self.layer.query("SELECT id FROM semel_outbox")

    async def send_all(self, after_restore: AfterRestore = AfterRestore.STOP) -> None:
        """Relay until no record waits."""
        async with running(self.relay(after_restore)) as task:
            await until(self.is_empty, task)


@pytest.fixture
def shop(layer: Layer, client: SemelClient, topic: str, name: str) -> Shop:
    return Shop(layer, client, topic, name)


@pytest.fixture
def on_sqlite(sqlite: Layer, client: SemelClient, topic: str, name: str) -> Shop:
    return Shop(sqlite, client, topic, name)


async def test_what_commits_is_sent_once_in_the_order_of_each_key(shop: Shop) -> None:
    for start in range(0, 30, 5):
        await shop.order(*range(start, start + 5))
    await shop.send_all()
    assert await shop.has_sent(*range(30))
    events = await shop.events()
    for key in range(3):
        of_key = [int(event.value or b"") for event in events if event.key == b"%d" % key]
        assert of_key == [*range(key, 30, 3)]
    assert {event.headers for event in events} == {HEADERS}


async def test_what_rolls_back_is_not_sent(shop: Shop) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail(shop)
    await shop.order(2)
    await shop.send_all()
    assert await shop.has_sent(2)


async def fail(shop: Shop) -> None:
    async with shop.layer.database.transaction() as transaction:
        await shop.order_in(transaction.session, 1)
        raise ZeroDivisionError


async def test_two_relays_at_once_send_each_record_once(shop: Shop) -> None:
    async with running(shop.relay()) as one, running(shop.relay()):
        for start in range(0, 60, 5):
            await shop.order(*range(start, start + 5))
        await until(shop.is_empty, one)
    await until(lambda: shop.has_sent(*range(60)))


async def test_relays_that_all_believe_to_be_in_charge_send_each_record_once(shop: Shop) -> None:
    """Their leases are over as soon as they have them."""
    eager = replace(OPTIONS, lease_ms=1, poll_interval_ms=5)
    async with running(shop.relay(options=eager)) as one, running(shop.relay(options=eager)):
        for start in range(0, 60, 5):
            await shop.order(*range(start, start + 5))
        await until(shop.is_empty, one)
    await until(lambda: shop.has_sent(*range(60)))


@pytest.mark.parametrize("method", ["rows", "delete"])
async def test_a_relay_that_stood_still_longer_than_its_lease_sends_nothing_twice(
    shop: Shop, method: str
) -> None:
    """With a version that it has claimed, or that it has sent and not deleted."""
    late, stood, goes_on = shop.relay(), asyncio.Event(), asyncio.Event()
    original = getattr(late._table, method)

    async def stand_still(version: int) -> object:
        if not stood.is_set():
            stood.set()
            await goes_on.wait()
        return await original(version)

    setattr(late._table, method, stand_still)
    await shop.order(*range(10))
    async with running(late) as task:
        await stood.wait()
        async with running(shop.relay()) as other:
            await until(shop.is_empty, other)
            goes_on.set()
            await shop.order(*range(10, 20))
            await until(shop.is_empty, task)
    await until(lambda: shop.has_sent(*range(20)))


@asynccontextmanager
async def dying(target: type, method: str, *, after: bool) -> AsyncIterator[None]:
    """End the process at its next call of a method, before it or after it has taken effect."""
    original = getattr(target, method)

    async def die(*args: object, **kwargs: object) -> None:
        if after:
            await original(*args, **kwargs)
        raise Died

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(target, method, die)
        yield


@pytest.mark.parametrize(
    ("target", "method", "after"),
    [
        (OutboxTable, "claim", False),
        (OutboxTable, "claim", True),
        (JointTransaction, "commit", False),
        (JointTransaction, "commit", True),
        (OutboxTable, "delete", False),
        (OutboxTable, "delete", True),
    ],
)
async def test_a_successor_goes_on_wherever_a_relay_died(
    on_sqlite: Shop, target: type, method: str, after: bool
) -> None:
    shop = on_sqlite
    await shop.order(*range(20))
    async with dying(target, method, after=after):
        with pytest.raises(Died):
            await shop.relay().run()
    await shop.send_all()
    assert await shop.has_sent(*range(20))


async def test_a_row_that_commits_late_is_not_passed_over(on_sqlite: Shop) -> None:
    """Ids say when a row was written, not when it committed."""
    shop = on_sqlite
    await shop.order(1, 2, 3)
    await shop.send_all()
    await shop.layer.run(  # As of a transaction that began before the others and commits now.
        "INSERT INTO semel_outbox (id, outbox, topic, record_value)"  # noqa: S608 - of this test
        f" VALUES (-5, '{shop.name}', '{shop.topic}', CAST('4' AS BLOB))"
    )
    await shop.send_all()
    assert await shop.has_sent(1, 2, 3, 4)


async def test_a_record_that_is_too_large_names_its_row(on_sqlite: Shop) -> None:
    shop = on_sqlite
    async with shop.layer.database.transaction() as transaction:
        await shop.outbox.send(transaction.session, shop.topic, bytes(3_000_000))
    with pytest.raises(MessageTooLargeError) as raised:
        await asyncio.wait_for(shop.relay().run(), 20)
    assert any("row 1 of semel_outbox" in note for note in raised.value.__notes__)


# -- restores ------------------------------------------------------------------------------------


async def go_back(shop: Shop, *numbers: int) -> None:
    """Leave the database as in a backup from before the first version, with some rows."""
    await shop.layer.run("UPDATE semel_outbox_relay SET next_version = 1")
    await shop.layer.run("DELETE FROM payment")
    await shop.order(*numbers)


async def test_a_database_of_an_older_backup_stops_the_relay(on_sqlite: Shop) -> None:
    shop = on_sqlite
    await shop.order(*range(20))
    await shop.send_all()
    await go_back(shop, 20)
    with pytest.raises(DatabaseBehindError, match="from before 3 versions"):
        await shop.relay().run()
    assert not await shop.is_empty()


async def test_reprocess_sends_all_rows_that_are_there(on_sqlite: Shop) -> None:
    shop = on_sqlite
    await shop.order(*range(20))
    await shop.send_all()
    await go_back(shop, 20, 21)
    await shop.send_all(AfterRestore.REPROCESS)
    assert await shop.has_sent(*range(22))


async def test_skip_deletes_all_rows_that_are_there(on_sqlite: Shop) -> None:
    shop = on_sqlite
    await shop.order(*range(20))
    await shop.send_all()
    await go_back(shop, 20, 21)
    await shop.send_all(AfterRestore.SKIP)
    await shop.order(22)
    await shop.send_all()
    assert await shop.has_sent(*range(20), 22)


async def test_the_id_of_another_outbox_is_refused(on_sqlite: Shop) -> None:
    shop = on_sqlite
    await shop.order(1)
    await shop.send_all()
    other = Shop(shop.layer, shop.client, shop.topic, f"{shop.name}-other")
    await other.order(2)
    relay = shop.client.relay(
        other.outbox, transactional_id=shop.name, options=OPTIONS, handle_signals=False
    )
    with pytest.raises(JointOwnerMismatchError) as raised:
        await relay.run()
    assert any("belongs to another outbox" in note for note in raised.value.__notes__)
