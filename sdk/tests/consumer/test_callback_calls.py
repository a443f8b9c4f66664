"""Calls that users make inside of callbacks: each of them works there, at once, or says why not."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from consumer_harness import Client, client_of, pass_time
from fake_cluster import FakeCluster

from aiosemel import Consumer, TopicPartition
from aiosemel.errors import ClosedError, IllegalStateError, UnknownMemberIdError

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
Partitions = frozenset[TopicPartition]
Call = Callable[[Consumer], Awaitable[object]]
AT_ONCE_MS = 2_000
"""In virtual time: long enough for every answer and for one heartbeat, too short for a time-out."""


def plain(call: Callable[[Consumer], object]) -> Call:
    """Make a call that needs no waiting one to wait for."""

    async def called(consumer: Consumer) -> object:
        return call(consumer)

    return called


CALLS: dict[str, Call] = {
    "position": lambda c: c.position(P0),
    "positions": plain(lambda c: c.positions()),
    "committed": lambda c: c.committed([P0, P1]),
    "commit": lambda c: c.commit(),
    "commit offsets": lambda c: c.commit({P0: 1}),
    "seek": plain(lambda c: c.seek(P0, 1)),
    "seek_to_beginning": plain(lambda c: c.seek_to_beginning(P0)),
    "seek_to_end": plain(lambda c: c.seek_to_end()),
    "seek_to_committed": plain(lambda c: c.seek_to_committed()),
    "pause": plain(lambda c: c.pause(P0)),
    "resume": plain(lambda c: c.resume(P0)),
    "paused": plain(lambda c: c.paused()),
    "assignment": plain(lambda c: c.assignment()),
    "subscription": plain(lambda c: c.subscription()),
    "group_metadata": plain(lambda c: c.group_metadata()),
    "beginning_offsets": lambda c: c.beginning_offsets([P0]),
    "end_offsets": lambda c: c.end_offsets([P0]),
    "offsets_for_times": lambda c: c.offsets_for_times({P0: 0}),
    "subscribe": plain(lambda c: c.subscribe(["orders"])),
    "wakeup": plain(lambda c: c.wakeup()),
    "close": lambda c: c.close(),
}
OF_MEMBERS = {"committed", "commit", "commit offsets"}
"""Calls that only a member may make: one that has lost its partitions is refused."""
POSITION_AFTER = ("seek", "seek_to_beginning", "seek_to_end", "seek_to_committed")


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    fake.append("orders", 0, [b"a", b"b"])
    return fake


class Caller:
    """A consumer whose callbacks make one call, and keep what came of it."""

    def __init__(self, client: Client, moment: str, call: Call) -> None:
        self.consumer = client.consumer("g", auto_offset_reset="earliest")
        self.outcome: object = None
        self.called = 0
        self._call = call

        async def told(_: Partitions) -> None:
            self.called += 1
            async with asyncio.timeout(AT_ONCE_MS / 1000):
                self.outcome = await _outcome(self._call(self.consumer))

        self.consumer.subscribe(["orders"], **{moment: told})

    async def until_called(self) -> None:
        """Poll until the callback was told, and the poll is over."""
        with suppress(ClosedError):  # One of the calls closes the consumer.
            while not self.called:
                await self.consumer.poll(timeout_ms=100)


async def _outcome(call: Awaitable[object]) -> object:
    try:
        return await call
    except (ClosedError, IllegalStateError, UnknownMemberIdError) as error:
        return error


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_works_when_partitions_came(fake: FakeCluster, name: str) -> None:
    async with client_of(fake) as client:
        caller = Caller(client, "on_assigned", CALLS[name])
        await caller.until_called()
        assert not isinstance(caller.outcome, Exception)


async def test_a_poll_whose_callback_closes_the_consumer_ends_at_once(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        caller = Caller(client, "on_assigned", CALLS["close"])
        async with asyncio.timeout(AT_ONCE_MS / 1000):
            with pytest.raises(ClosedError, match="the consumer is closed"):
                await caller.consumer.poll(timeout_ms=60_000)


@pytest.mark.parametrize("name", POSITION_AFTER)
async def test_a_position_is_found_after_a_seek_when_partitions_came(
    fake: FakeCluster, name: str
) -> None:
    async def seek_and_tell(consumer: Consumer) -> int:
        await CALLS[name](consumer)
        return await consumer.position(P0)

    async with client_of(fake) as client:
        caller = Caller(client, "on_assigned", seek_and_tell)
        await caller.until_called()
        expected = {"seek": 1, "seek_to_end": 2}
        assert caller.outcome == expected.get(name, 0)


@pytest.mark.parametrize("is_polled", [True, False])
@pytest.mark.parametrize("name", CALLS)
async def test_a_call_works_when_partitions_go(
    fake: FakeCluster, name: str, *, is_polled: bool
) -> None:
    """By a rebalance, of which a poll tells; and by the end of the consumer."""
    async with client_of(fake) as client:
        caller = Caller(client, "on_revoked", CALLS[name])
        while not caller.consumer.assignment():
            await caller.consumer.poll(timeout_ms=100)
        if is_polled:
            fake.target = lambda _: frozenset()
            fake.group_epoch += 1
            await pass_time(3)
            await caller.until_called()
        else:
            await caller.consumer.close()
        is_refused = name == "subscribe" and not is_polled
        assert isinstance(caller.outcome, ClosedError) == is_refused
        assert caller.called == 1


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_is_answered_when_partitions_are_lost(fake: FakeCluster, name: str) -> None:
    async with client_of(fake) as client:
        caller = Caller(client, "on_lost", CALLS[name])
        while len(caller.consumer.positions()) < 2:
            await caller.consumer.poll(timeout_ms=100)
        fake.expel(caller.consumer.group_metadata().member_id)
        await caller.until_called()
        assert isinstance(caller.outcome, UnknownMemberIdError) == (name in OF_MEMBERS)


async def test_a_position_that_was_not_found_before_the_loss_is_not_waited_for(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        caller = Caller(client, "on_lost", CALLS["position"])
        fake.unstable.add(fake.key("orders", 0))
        while not caller.consumer.assignment():
            await caller.consumer.poll(timeout_ms=100)
        fake.expel(caller.consumer.group_metadata().member_id)
        await caller.until_called()
        assert isinstance(caller.outcome, UnknownMemberIdError)


async def test_a_position_of_a_member_that_did_not_poll_names_the_option(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g", max_poll_interval_ms=10_000)
        outcomes: list[object] = []

        async def on_lost(_: Partitions) -> None:
            outcomes.append(await _outcome(consumer.position(P0)))

        consumer.subscribe(["orders"], on_lost=on_lost)
        fake.unstable.add(fake.key("orders", 0))
        while not consumer.assignment():
            await consumer.poll(timeout_ms=100)
        await pass_time(11)
        await consumer.poll(timeout_ms=100)
        (error,) = outcomes
        assert "10000 ms (max_poll_interval_ms)" in str(error)


@pytest.mark.parametrize("moment", ["on_assigned", "on_revoked", "on_lost"])
@pytest.mark.parametrize("name", ["poll", "unsubscribe"])
async def test_a_callback_cannot_poll_and_is_told_why(
    fake: FakeCluster, moment: str, name: str
) -> None:
    calls: dict[str, Call] = {"poll": lambda c: c.poll(), "unsubscribe": lambda c: c.unsubscribe()}
    async with client_of(fake) as client:
        caller = Caller(client, moment, calls[name])
        while not caller.consumer.assignment():
            await caller.consumer.poll(timeout_ms=100)
        if moment == "on_revoked":
            fake.target = lambda _: frozenset()
            fake.group_epoch += 1
            await pass_time(3)
        if moment == "on_lost":
            fake.expel(caller.consumer.group_metadata().member_id)
        await caller.until_called()
        assert isinstance(caller.outcome, IllegalStateError)
        assert "a callback of a rebalance runs inside of a poll" in str(caller.outcome)


async def test_a_callback_closes_what_another_task_closes_and_waits_for_nothing(
    fake: FakeCluster,
) -> None:
    """The other task waits for the callback; also when a task of the callback closes."""
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        told = asyncio.Event()

        async def on_revoked(_: Partitions) -> None:
            told.set()
            await pass_time(1)
            await consumer.close()
            await asyncio.create_task(consumer.close())

        async def close() -> None:
            await told.wait()
            await consumer.close()

        consumer.subscribe(["orders"], on_revoked=on_revoked)
        while not consumer.assignment():
            await consumer.poll(timeout_ms=100)
        closing = asyncio.create_task(close())
        fake.target = lambda _: frozenset()
        fake.group_epoch += 1
        await pass_time(3)
        async with asyncio.timeout(10):
            with suppress(ClosedError):
                while True:
                    await consumer.poll(timeout_ms=100)
            await closing
