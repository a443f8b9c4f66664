"""Instances that never come back, and instances that stand still and come back late."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from database_chaos.application import Start, Take
from database_chaos.books import PARTITIONS, Books
from database_chaos.run import Engine, Stage, stage
from database_chaos.steps import COMMITTED, WRITTEN, Call, after, before
from database_chaos.victim import Victim
from semel_local.layout import Role, Settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HELD_S = 45.0
"""How long a transaction of a process that is gone may hold readers up."""
TIMEOUT_S = 60.0
LOST = {
    "undecided": (Call.TRANSFORM, after("PrepareTxn"), signal.SIGKILL),
    "decided": (Call.TRANSFORM, COMMITTED, signal.SIGKILL),
    "half-decided": (Call.PRODUCER, after("INSERT semel_transaction"), signal.SIGKILL),
    "untold": (Call.PRODUCER, before("CompletePreparedTxn"), signal.SIGKILL),
}
STANDING_STILL = {
    # With the row of its decision locked, and no end of its connection.
    "still": (Call.TRANSFORM, after("INSERT semel_transaction"), signal.SIGSTOP),
}
SHORT_SESSIONS: Settings = {
    Role.GROUP_COORDINATOR: {
        "group_consumer_session_timeout_ms": 2_000,
        "group_consumer_heartbeat_interval_ms": 400,
    }
}


@dataclass(frozen=True, slots=True)
class Instance:
    """A process, and both sides of its application."""

    victim: Victim
    books: Books
    start: Start


@asynccontextmanager
async def instance(place: Stage, start: Start, orders: int) -> AsyncIterator[Instance]:
    """Start an application that has orders to process."""
    books = Books(start, place.client, place.database)
    async with books.opened():
        books.expected.update(range(1, orders + 1))
        if start.call is not Call.PRODUCER:
            await give(place, start, *books.expected)
        victim = Victim(start)
        victim.tell(Take(sorted(books.expected)))
        try:
            yield Instance(victim, books, start)
        finally:
            victim.end()


async def give(place: Stage, start: Start, *numbers: int) -> None:
    async with place.client.producer() as producer:
        for number in numbers:
            await producer.send(start.orders, b"%d" % number)
        await producer.flush()


async def until(condition: Callable[[], Awaitable[bool] | bool], timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.05)


async def test_another_process_ends_what_lost_instances_left(
    tmp_path: Path, engine: Engine
) -> None:
    kinds = LOST | (STANDING_STILL if engine is Engine.POSTGRES else {})
    async with stage(engine, tmp_path) as place, survivor(place), asyncio.TaskGroup() as group:
        for run, (call, point, number) in kinds.items():
            start = replace(place.start(call, run), point=point, number=number)
            group.create_task(lose(place, start))


@asynccontextmanager
async def survivor(place: Stage) -> AsyncIterator[None]:
    """Another process with the database: nothing else resolves."""
    async with instance(place, place.start(Call.TRANSFORM, "survivor"), 1) as other:
        await until(other.books.is_processed, TIMEOUT_S)
        yield
        assert not other.victim.was_killed


async def lose(place: Stage, start: Start) -> None:
    """Lose an instance at its point; what it left must end, and both sides must be equal."""
    async with instance(place, start, 4) as lost:
        gone = lost.victim
        await until(
            lambda: gone.was_killed or (start.number is signal.SIGSTOP and gone.stands_still),
            TIMEOUT_S,
        )
        began = time.monotonic()
        await readers_go_on(place, lost, began)
        paid, sent = await lost.books.paid(), await lost.books.received()
        assert sent.pop(0) == PARTITIONS  # of the readers' own records
        assert paid == sent
        assert bool(paid) == (start.run in {"decided", "untold"})
        if start.number is signal.SIGSTOP:
            gone.signal(signal.SIGCONT)  # Its commit fails, and it does its work again.
            lost.books.expected.add(0)
            await give(place, start, 0)
            await until(lost.books.is_processed, TIMEOUT_S)
            await until(lambda: both_have(lost.books, {1, 2, 3, 4}), TIMEOUT_S)


async def readers_go_on(place: Stage, lost: Instance, began: float) -> None:
    """A record that is sent now is seen in each partition before readers were held too long."""
    async with place.client.producer() as producer:
        for partition in range(PARTITIONS):
            await producer.send(lost.start.receipts, b"0", partition=partition)
        await producer.flush()

    async def seen() -> bool:
        return (await lost.books.received())[0] == PARTITIONS

    await until(seen, began + HELD_S - time.monotonic())


async def both_have(books: Books, numbers: set[int]) -> bool:
    paid, sent = await books.paid(), await books.received()
    counts = [(paid[number], sent[number]) for number in numbers]
    assert all(each <= (1, 1) for each in counts), counts
    return all(each == (1, 1) for each in counts)


@pytest.mark.parametrize("call", [Call.STORE, Call.TRANSFORM])
async def test_an_instance_that_stood_still_in_its_handler_commits_nothing(
    tmp_path: Path, call: Call
) -> None:
    """Longer than its session: another instance has its partitions by then, and did its work."""
    async with stage(Engine.POSTGRES, tmp_path, SHORT_SESSIONS) as place:
        start = replace(place.start(call, "zombie"), point=WRITTEN, number=signal.SIGSTOP)
        async with instance(place, start, 12) as zombie:
            await until(lambda: zombie.victim.stands_still, TIMEOUT_S)
            other = Victim(replace(start, instance="-2", point=""))
            try:
                await until(zombie.books.is_processed, TIMEOUT_S)
                zombie.victim.signal(signal.SIGCONT)
                await zombie.books.agree(time.monotonic(), idle)
                zombie.books.expected.update(range(13, 25))
                await give(place, start, *range(13, 25))
                await zombie.books.agree(time.monotonic(), idle)
                assert not zombie.victim.was_killed
                assert not other.was_killed
            finally:
                other.end()


async def idle() -> None:
    """Start nothing."""
