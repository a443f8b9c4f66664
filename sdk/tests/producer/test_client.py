"""The client: what it owns, and in which order it ends."""

import asyncio
import inspect
import logging
from collections.abc import Iterator
from typing import get_args, get_type_hints

import pytest
from network_faults import Hold
from producer_harness import FakeCluster, begun, elapse, open_client

import aiosemel
import aiosemel.database
from aiosemel import SemelClient, SystemClock
from aiosemel.errors import ClosedError, IllegalStateError, InvalidConfigError
from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel_common import ids


async def test_a_connector_that_was_given_is_not_closed() -> None:
    fake = FakeCluster()
    async with open_client(fake) as client:
        await client.admin().create_topic("t")
    assert not fake.closed


async def test_a_client_of_its_own_makes_no_connection_before_it_must() -> None:
    async with SemelClient("localhost:1") as client:
        client.producer()


async def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="localhost"):
        SemelClient("localhost")


async def test_a_client_that_is_not_open_starts_nothing() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    client = SemelClient("coordinator:1", connector=fake)
    with pytest.raises(ClosedError, match="client is not open"):
        await client.producer().send("t", b"v")


async def test_a_client_is_opened_once_and_may_be_closed_twice() -> None:
    client = SemelClient("coordinator:1", connector=FakeCluster())
    await client.open()
    with pytest.raises(IllegalStateError, match="open already"):
        await client.open()
    await client.close()
    await client.close()


async def test_a_client_may_be_closed_by_another_task() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    client = SemelClient("coordinator:1", connector=fake)
    await asyncio.create_task(client.open())
    delivery = await client.producer().send("t", b"v")
    await asyncio.create_task(client.close())
    assert delivery.result().offset == 0


async def test_deliveries_can_be_gathered() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    async with open_client(fake) as client:
        producer = client.producer()
        deliveries = [await producer.send("t", b"v") for _ in range(3)]
        stored = await asyncio.gather(*deliveries)
    assert [each.offset for each in stored] == [0, 1, 2]


async def test_a_client_makes_no_call_unless_it_is_open() -> None:
    fake = FakeCluster()
    client = SemelClient("coordinator:1", connector=fake)
    admin = client.admin()
    with pytest.raises(ClosedError, match="client is not open"):
        await admin.list_topics()
    assert fake.asked(MetadataRequest) == []
    async with client:
        assert await admin.list_topics() == ()
    asked = len(fake.asked(MetadataRequest))
    with pytest.raises(ClosedError, match="client is not open"):
        await admin.list_topics()
    assert len(fake.asked(MetadataRequest)) == asked


async def test_what_fails_to_close_leaves_nothing_else_open() -> None:
    """What was taken is stored, whatever the callback of a consumer raises."""

    class Failing:
        async def close(self) -> None:
            raise ZeroDivisionError

    fake = FakeCluster()
    fake.create_topic("t")
    client = SemelClient("coordinator:1", connector=fake)
    await client.open()
    delivery = await client.producer().send("t", b"v")
    client._adopt(Failing())
    with pytest.raises(ZeroDivisionError):
        await client.close()
    assert delivery.result().offset == 0
    with pytest.raises(ClosedError):
        await client.admin().list_topics()


async def test_a_close_that_is_cancelled_leaves_nothing_open() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    fake.then("Produce", Hold(asyncio.Event()))
    client = SemelClient("coordinator:1", connector=fake)
    await client.open()
    stuck = await client.producer().send("t", b"v")
    transactional = client.transactional_producer("x")
    await transactional.init_transactions()
    await transactional.begin_transaction()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await client.close()
    with pytest.raises(ClosedError):
        stuck.result()
    with pytest.raises(ClosedError):
        await transactional.commit()
    with pytest.raises(ClosedError):
        await client.admin().list_topics()


async def test_a_close_that_is_cancelled_waits_for_nothing_more() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    fake.then("Produce", *[Hold(asyncio.Event())] * 3)
    client = SemelClient("coordinator:1", connector=fake)
    await client.open()
    stuck = [await client.producer().send("t", b"v") for _ in range(3)]
    await elapse(0.1)
    before = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await client.close()
    assert asyncio.get_running_loop().time() - before == pytest.approx(1, abs=0.01)
    assert all(each.done() for each in stuck)


async def test_what_fails_when_a_close_was_cancelled_does_not_hide_that(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing:
        async def close(self) -> None:
            raise ZeroDivisionError

    fake = FakeCluster()
    fake.create_topic("t")
    fake.then("Produce", Hold(asyncio.Event()))
    client = SemelClient("coordinator:1", connector=fake)
    await client.open()
    client._adopt(Failing())
    await client.producer().send("t", b"v")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await client.close()
    assert "closing failed: ZeroDivisionError()" in caplog.text


@pytest.mark.parametrize("first", ["producer", "client"])
async def test_a_client_that_is_closed_waits_for_who_closes_already(first: str) -> None:
    """Else the records that the first one waits for would be given up."""
    released = asyncio.Event()
    fake = FakeCluster()
    fake.create_topic("t")
    fake.then("Produce", Hold(released))
    client = SemelClient("coordinator:1", connector=fake)
    await client.open()
    producer = client.producer()
    delivery = await producer.send("t", b"v")
    closing = asyncio.create_task(producer.close() if first == "producer" else client.close())
    await elapse(0.1)
    asyncio.get_running_loop().call_later(1, released.set)
    await client.close()
    assert delivery.result().offset == 0
    await closing


async def test_nothing_is_made_of_a_client_that_is_being_closed() -> None:
    """No code would close it, and a waiting caller would wait for ever."""
    released = asyncio.Event()
    fake = FakeCluster()
    fake.create_topic("t")
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client:
        await client.producer().send("t", b"v")
        closing = asyncio.create_task(client.close())
        await elapse(0.1)
        for make in (client.producer, client.consumer, lambda: client.transactional_producer("x")):
            with pytest.raises(ClosedError, match="being closed"):
                make()
        released.set()
        await closing


async def test_a_client_that_is_closed_waits_for_the_abort_of_a_producer_that_closes() -> None:
    released = asyncio.Event()
    fake = FakeCluster()
    fake.create_topic("t")
    fake.then("EndTxn", Hold(released))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        closing = asyncio.create_task(producer.close())
        await elapse(0.1)
        asyncio.get_running_loop().call_later(1, released.set)
    assert fake.transactional["orders"].outcomes[0] == ("ABORTED", "CLIENT")
    await closing


async def test_a_client_can_be_opened_again() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    client = SemelClient("coordinator:1", connector=fake)
    for offset in range(2):
        async with client:
            stored = await client.producer().send_and_wait("t", b"v")
            assert stored.offset == offset


async def test_a_closed_producer_begins_no_transaction() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    async with open_client(fake) as client:
        producer = client.transactional_producer("x")
        await producer.init_transactions()
        transaction = producer.transaction()
        await producer.close()
        with pytest.raises(ClosedError):
            await transaction.__aenter__()
    assert fake.stored("t") == []


async def test_closing_cancels_what_still_runs() -> None:
    client = SemelClient("coordinator:1", connector=FakeCluster())
    await client.open()
    task = client._spawn(asyncio.Event().wait(), name="endless")  # type: ignore[arg-type]  # no caller takes its result
    never_started = client._spawn(elapse(1), name="never started")
    await client.close()
    assert task.cancelled()
    assert never_started.cancelled()


async def test_a_defect_in_one_task_leaves_the_others_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    fake = FakeCluster()
    fake.create_topic("t")
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"1")
        with caplog.at_level(logging.ERROR, "aiosemel"):
            await client._spawn(fail(), name="broken")
        await producer.send_and_wait("t", b"2")
    assert "unexpected end of the task broken" in caplog.text


async def test_an_exception_in_the_block_goes_on_as_it_is() -> None:
    async def run() -> None:
        async with open_client(FakeCluster()):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run()


def test_the_clock_of_the_machine_tells_milliseconds() -> None:
    assert 1_700_000_000_000 < SystemClock().now_ms() < 10_000_000_000_000


def test_everything_that_is_exported_is_there() -> None:
    assert [name for name in aiosemel.__all__ if not hasattr(aiosemel, name)] == []
    assert aiosemel.__all__ == sorted(aiosemel.__all__)


def _mentioned(hint: object) -> Iterator[type]:
    """Yield the classes that a type hint is made of."""
    if isinstance(hint, type):
        yield hint
    for arg in get_args(hint):
        yield from _mentioned(arg)
    if isinstance(hint, (list, tuple)):  # the arguments of a Callable
        for each in hint:
            yield from _mentioned(each)


def _hints(public: object) -> Iterator[object]:
    """Yield the type hints of a class: of its fields, and of its public methods."""
    if not isinstance(public, type):
        yield public
        return
    yield from get_type_hints(public).values()
    for name, member in vars(public).items():
        called = member.fget if isinstance(member, property) else member
        if inspect.isfunction(called) and (not name.startswith("_") or name == "__await__"):
            yield from get_type_hints(called).values()


OURS = ("aiosemel", "semel")
OPAQUE: tuple[type, ...] = (ids.TopicPartition, ids.GroupId)
"""What a receipt of a joint transaction names, for its owner to pass on."""


def test_whatever_public_signatures_mention_is_exported() -> None:
    """And no message of the wire is among it."""
    exported = {
        name: getattr(module, name)
        for module in (aiosemel, aiosemel.database)
        for name in module.__all__
    }
    missing = {
        f"{name} mentions {each.__qualname__}"
        for name, public in exported.items()
        if not (isinstance(public, type) and issubclass(public, Exception))
        for hint in _hints(public)
        for each in _mentioned(hint)
        if each.__module__.startswith(OURS) and each not in (*exported.values(), *OPAQUE)
    }
    assert missing == set()
