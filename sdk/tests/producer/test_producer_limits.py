"""Back-pressure, closing, and options that cannot work."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from network_faults import Hold, HoldReply
from producer_harness import FakeCluster, elapse, open_client

from aiosemel import Producer, ProducerOptions, RecordMetadata
from aiosemel._cluster.last_error import Trouble
from aiosemel._cluster.retry import Deadline
from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch_splitting import cut
from aiosemel._producer.batching.limits import Limits
from aiosemel._producer.sending.buffer_waits import Room
from aiosemel.errors import (
    ClosedError,
    InvalidConfigError,
    RequestTimedOutError,
)

# -- back-pressure ---------------------------------------------------------------------------------


SMALL = ProducerOptions(
    buffer_memory_bytes=1_000, max_request_size_bytes=1_000, batch_size_bytes=100, max_block_ms=500
)


async def test_a_full_buffer_makes_send_wait(fake: FakeCluster) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = client.producer(SMALL)
        await producer.send_and_wait("t", b"v")
        fake.then("Produce", *[HoldReply(released)] * 20)
        sending = [asyncio.create_task(producer.send("t", bytes(84))) for _ in range(15)]
        await elapse(0.1)
        assert sum(task.done() for task in sending) == 10
        released.set()
        await asyncio.gather(*sending)
        await producer.flush()
    assert sum(len(fake.stored("t", partition)) for partition in range(4)) == 16


async def test_a_buffer_that_stays_full_is_an_error_in_max_block_ms(fake: FakeCluster) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = client.producer(SMALL)
        await producer.send_and_wait("t", b"v")
        fake.then("Produce", *[HoldReply(released)] * 20)
        for _ in range(10):
            await producer.send("t", bytes(84))
        with pytest.raises(RequestTimedOutError, match="1000 bytes wait"):
            await producer.send("t", bytes(84))
        released.set()


async def test_the_caller_that_waits_longest_for_room_is_first(fake: FakeCluster) -> None:
    released = asyncio.Event()
    order: list[int] = []

    async def send(producer: Producer, number: int) -> None:
        await producer.send("t", bytes(484), partition=0)
        order.append(number)

    async with open_client(fake) as client:
        producer = client.producer(replace(SMALL, batch_size_bytes=1_000))
        await producer.send_and_wait("t", b"v", partition=0)
        fake.then("Produce", *[HoldReply(released)] * 2)
        sending = [asyncio.create_task(send(producer, number)) for number in range(6)]
        await elapse(0.1)
        assert order == [0, 1]
        sending[2].cancel()
        released.set()
        await asyncio.wait(sending)
        await producer.flush()
    assert order == [0, 1, 3, 4, 5]
    assert len(fake.stored("t", 0)) == 6


async def test_room_that_was_granted_to_who_left_goes_to_the_next() -> None:
    accumulator = Accumulator(
        Limits(
            batch_size_bytes=100,
            request_size_max_bytes=100,
            memory_bytes=100,
            in_flight_max=5,
            delivery_timeout_ms=1_000,
        ),
        transactional=False,
        cut=cut,
    )
    room = Room(accumulator, Trouble())
    accumulator.used_bytes = 100

    async def append() -> None:
        await room.wait(60, Deadline.after_ms(1_000))
        accumulator.used_bytes += 60

    waiting = [asyncio.create_task(append()) for _ in range(4)]
    await elapse(0)
    waiting[0].cancel()
    accumulator.used_bytes = 0
    room.grant()  # Skips the first waiter, which leaves, and grants to the second.
    waiting[1].cancel()  # Leaves with its grant, which goes to the third.
    await elapse(0)
    await elapse(0)
    assert [task.done() for task in waiting] == [True, True, True, False]
    assert [task.cancelled() for task in waiting[:3]] == [True, True, False]
    with pytest.raises(RequestTimedOutError, match="60 bytes wait"):
        await waiting[3]
    accumulator.used_bytes = 0
    assert room.is_free(100)


# -- closing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["producer", "client"])
async def test_an_exception_does_not_wait_for_records_that_are_not_taken(
    fake: FakeCluster, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Until ``delivery_timeout_ms``: the program wants to say what went wrong."""

    async def fail() -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(open_client(fake))
            options = ProducerOptions(close_timeout_ms=300, delivery_timeout_ms=120_000)
            producers = [client.producer(options) for _ in range(3)]
            if left == "producer":
                await stack.enter_async_context(producers[0])
            for producer in producers:
                await producer.send("t", b"v")
            fake.down = True
            raise ZeroDivisionError

    begun = asyncio.get_running_loop().time()
    with pytest.raises(ZeroDivisionError):
        await fail()
    assert asyncio.get_running_loop().time() - begun == pytest.approx(0.3, abs=0.4)
    assert "17 bytes of unacknowledged records are given up" in caplog.text


async def test_an_exception_waits_for_records_that_are_taken(fake: FakeCluster) -> None:
    async def fail() -> None:
        async with open_client(fake) as client, client.producer() as producer:
            await producer.send("t", b"v", partition=0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert fake.stored("t", 0) == [b"v"]


async def test_closing_sends_the_buffered_records(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        async with client.producer() as producer:
            delivery = await producer.send("t", b"v")
        assert delivery.done()
        await producer.close()
        with pytest.raises(ClosedError):
            await producer.send("t", b"v")
        with pytest.raises(ClosedError):
            await producer.flush()


async def test_closing_the_client_closes_producers(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        delivery = await producer.send("t", b"v")
    assert delivery.result().offset == 0
    with pytest.raises(ClosedError):
        await producer.send("t", b"v")


async def test_a_cancelled_close_gives_up_the_buffered_records(fake: FakeCluster) -> None:
    fake.then("Produce", Hold(asyncio.Event()))
    async with open_client(fake) as client:
        producer = client.producer()
        delivery = await producer.send("t", b"v")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await producer.close()
        with pytest.raises(ClosedError):
            delivery.result()


async def test_a_cancelled_wait_loses_only_the_waiting(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", HoldReply(released))
    async with open_client(fake) as client:
        producer = client.producer()
        delivery = await producer.send("t", b"v", partition=0)

        async def wait() -> RecordMetadata:
            return await delivery

        waiting = [asyncio.create_task(wait()) for _ in range(2)]
        await elapse(0.1)
        waiting[0].cancel()
        await elapse(0.1)
        released.set()
        assert await waiting[1] == delivery.result()


@pytest.mark.parametrize("headers", [{"a": b"1"}, ["ab"], [("a", b"1", b"2")]])
async def test_headers_that_are_no_pairs_are_refused(headers: list[tuple[str, bytes]]) -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    async with open_client(fake) as client:
        with pytest.raises(TypeError, match=r"headers must be \(name, value\) pairs, not"):
            await client.producer().send("t", b"v", headers=headers)


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"delivery_timeout_ms": 1_000}, "delivery_timeout_ms is 1000.*request_timeout_ms"),
        ({"batch_size_bytes": 2_000_000}, "max_request_size_bytes.*batch_size_bytes"),
        ({"max_request_size_bytes": (16 << 20) + 1}, "more than 16777216: brokers open no larger"),
        ({"buffer_memory_bytes": 1_000}, "buffer_memory_bytes is 1000.*max_request_size_bytes"),
        ({"max_in_flight": 6}, "max_in_flight is 6, not 1 to 5"),
        ({"max_in_flight": 0}, "max_in_flight is 0"),
        ({"request_timeout_ms": 0}, "request_timeout_ms is 0, less than 1"),
        ({"transaction_timeout_ms": 0}, "transaction_timeout_ms is 0"),
        ({"transaction_timeout_ms": 1 << 31}, "transaction_timeout_ms is 2147483648, more"),
        ({"cancelled_commit_grace_ms": -1}, "cancelled_commit_grace_ms is -1"),
        ({"compression": "gzip"}, "compression is 'gzip': none, zstd"),
    ],
    ids=lambda wrong: wrong if isinstance(wrong, str) else None,
)
def test_options_in_conflict_are_refused_by_name(wrong: dict[str, int], names: str) -> None:
    with pytest.raises(InvalidConfigError, match=names):
        ProducerOptions(**wrong)  # type: ignore[arg-type]  # numbers, all of them
