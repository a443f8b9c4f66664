"""Sends of single records: their times, their partitions, and those of a handler."""

import asyncio
from dataclasses import dataclass
from random import Random

import pytest
from network_faults import Hold
from producer_harness import BOOTSTRAP, FakeCluster, begun, open_client

from aiosemel import ProducerOptions, SemelClient
from aiosemel._producer.sending.pipeline import YIELD_BYTES
from aiosemel._transform.outputs import Outputs
from aiosemel.errors import IllegalStateError, UnknownTopicOrPartitionError

NARROW = ProducerOptions(
    batch_size_bytes=1_000, max_request_size_bytes=1_000, buffer_memory_bytes=1_000
)


@dataclass
class Clock:
    """Shows what it was set to."""

    time_ms: int = 1_000

    def now_ms(self) -> int:
        return self.time_ms


async def test_a_record_has_the_time_of_its_turn_of_the_event_loop(fake: FakeCluster) -> None:
    clock = Clock()
    async with SemelClient(BOOTSTRAP, connector=fake, clock=clock, random=Random(7)) as client:
        producer = client.producer()
        first = await producer.send("t", b"0", partition=0)
        await first
        clock.time_ms = 2_000
        second = await producer.send("t", b"1", partition=0)
        await asyncio.sleep(0)
        clock.time_ms = 3_000
        third = await producer.send("t", b"2", partition=0)
        assert [(await each).timestamp_ms for each in (first, second, third)] == [1000, 2000, 3000]


async def test_a_caller_that_never_waits_gets_a_new_time_with_its_next_turn(
    fake: FakeCluster,
) -> None:
    clock = Clock()
    value = bytes(YIELD_BYTES // 16)
    async with SemelClient(BOOTSTRAP, connector=fake, clock=clock, random=Random(7)) as client:
        producer = client.producer()
        await (await producer.send("t", value, partition=0))
        deliveries = []
        for _ in range(40):
            deliveries.append(await producer.send("t", value, partition=0))
            clock.time_ms += 1
        times = [(await each).timestamp_ms for each in deliveries]
    assert times == sorted(times)
    assert len(set(times)) >= 2


async def test_a_negative_partition_is_refused_although_there_is_no_room(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = client.producer(NARROW)
        fake.then("Produce", Hold(released))
        await producer.send("t", bytes(900), partition=0)
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition -1"):
            await producer.send("t", bytes(900), partition=-1)
        released.set()


# -- a handler's ----------------------------------------------------------------------------------


async def test_outputs_count_the_records_that_wait_and_those_that_do_not(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        outputs = Outputs(producer)
        for at in range(3):  # The first one waits for the topic's metadata.
            await outputs.send("t", b"%d" % at, partition=0, headers=iter([("h", b"x")]))  # type: ignore[arg-type]  # any iterable of pairs will do
            assert outputs.count == at + 1
        await producer.commit()
    assert fake.visible("t", 0) == [b"0", b"1", b"2"]


async def test_outputs_raise_what_the_producer_raises_when_they_are_awaited(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        outputs = Outputs(producer)
        await outputs.send("t", b"0", partition=0)
        await producer.commit()
        late = outputs.send("t", b"1", partition=0)
        with pytest.raises(IllegalStateError, match="READY"):
            await late
        outputs.close()
        over = outputs.send("t", b"1", partition=0)
        with pytest.raises(IllegalStateError, match="send in the handler"):
            await over
        assert outputs.count == 1
    assert fake.visible("t", 0) == [b"0"]


async def test_outputs_that_are_cancelled_while_they_wait_have_sent_nothing(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = await begun(client, NARROW)
        outputs = Outputs(producer)
        fake.then("Produce", Hold(released))
        await outputs.send("t", bytes(900), partition=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await outputs.send("t", bytes(900), partition=0)
        assert outputs.count == 1
        released.set()
        await producer.commit()
    assert fake.visible("t", 0) == [bytes(900)]
