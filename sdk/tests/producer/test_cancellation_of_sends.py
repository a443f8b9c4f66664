"""Cancelled sends, flushes and closes, and ones that lose their future: no other caller suffers."""

import asyncio

import pytest
from network_faults import Hold, HoldReply
from producer_harness import (
    GROUP,
    OFFSETS,
    FakeCluster,
    begun,
    elapse,
    open_client,
    values,
)

from aiosemel import ClosedError, ProducerOptions, SemelClient
from aiosemel.errors import (
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest
from semel.group.v1.group_pb2 import TxnOffsetCommitRequest

NEVER = asyncio.Event
NARROW = ProducerOptions(
    batch_size_bytes=1_000, max_request_size_bytes=1_000, buffer_memory_bytes=1_000
)


# -- columns --------------------------------------------------------------------------------------


async def test_columns_that_are_cancelled_have_sent_what_found_room(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client:
        producer = client.producer(NARROW)
        rows = values(10, size=284)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await producer.send_columns("t", rows, partition=0)
        released.set()
        await producer.flush()
        assert fake.stored("t", 0) == rows[:3]
        await producer.send_and_wait("t", b"after", partition=0)


async def test_columns_are_taken_before_a_commit_that_follows_their_cancellation(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client:
        producer = await begun(client, NARROW)
        rows = values(10, size=284)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await producer.send_columns("t", rows, partition=0)
        released.set()
        await producer.commit()
    assert fake.visible("t", 0) == rows[:3]


# -- room -----------------------------------------------------------------------------------------


async def test_room_that_is_waited_for_by_one_that_is_cancelled_goes_to_the_next(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = client.producer(NARROW)
        fake.then("Produce", Hold(released))
        await producer.send("t", bytes(900), partition=0)
        first = asyncio.create_task(producer.send_columns("t", [bytes(900)], partition=0))
        second = asyncio.create_task(producer.send("t", bytes(900), partition=1))
        await elapse(0.1)
        first.cancel()
        await elapse(0.1)
        assert not second.done()
        released.set()
        await elapse(0.1)
        assert second.done()


async def test_room_that_a_lost_transaction_gives_back_lets_all_know_of_it(
    fake: FakeCluster,
) -> None:
    """Two wait; the one that gets room finds its transaction failed, and so must the other."""
    async with open_client(fake) as client:
        producer = await begun(client, NARROW)
        fake.then("Produce", HoldReply(NEVER()))
        await producer.send("t", bytes(900), partition=0)
        waiting = [
            asyncio.create_task(producer.send("t", bytes(900), partition=each)) for each in (1, 2)
        ]
        await elapse(0.1)
        await producer.abort()
        await elapse(0.1)
        assert [each.done() for each in waiting] == [True, True]
        for each in waiting:
            assert each.exception() is not None


async def test_a_send_to_no_partition_leaves_its_room_to_others(fake: FakeCluster) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = client.producer(NARROW)
        fake.then("Produce", Hold(released))
        await producer.send("t", bytes(900), partition=0)
        wrong = asyncio.create_task(producer.send("t", bytes(900), partition=9))
        await elapse(1)
        right = asyncio.create_task(producer.send("t", bytes(900), partition=1))
        await elapse(1)
        released.set()
        await elapse(1)
        assert isinstance(wrong.exception(), UnknownTopicOrPartitionError)
        assert right.done()


# -- flushing and closing -------------------------------------------------------------------------


async def test_a_cancelled_flush_loses_only_the_waiting(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client:
        producer = client.producer()
        delivery = await producer.send("t", b"v", partition=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await producer.flush()
        released.set()
        await producer.flush()
        assert delivery.done()


async def test_a_producer_that_sent_nothing_makes_no_call_when_it_is_closed(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.flush()
        await producer.close()
    assert fake.asked(InitProducerIdRequest) == []
    await SemelClient("coordinator:1", connector=fake).producer().close()


async def test_a_producer_may_be_initialized_once_its_client_is_open(fake: FakeCluster) -> None:
    client = SemelClient("coordinator:1", connector=fake)
    producer = client.transactional_producer("orders")
    with pytest.raises(ClosedError):
        await producer.init_transactions()
    async with client:
        await producer.init_transactions()
        await producer.begin_transaction()


# -- offsets --------------------------------------------------------------------------------------


async def test_offsets_that_are_cancelled_in_their_turn_make_the_transaction_abortable(
    fake: FakeCluster,
) -> None:
    """Else a commit could leave out what was consumed."""
    released = asyncio.Event()
    fake.then("TxnOffsetCommit", HoldReply(released))
    async with open_client(fake) as client:
        producer = await begun(client)
        first = asyncio.create_task(producer.send_offsets(OFFSETS, GROUP))
        second = asyncio.create_task(producer.send_offsets(OFFSETS, GROUP))
        await elapse(0.1)
        second.cancel()
        await elapse(0.1)
        assert second.cancelled()
        released.set()
        await first
        with pytest.raises(TransactionAbortableError, match="send_offsets was cancelled"):
            await producer.send("t", b"v")
        await producer.abort()
    assert len(fake.asked(TxnOffsetCommitRequest)) == 1
