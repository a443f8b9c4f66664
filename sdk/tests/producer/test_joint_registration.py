"""The coordinator knows where a joint writer wrote when it leaves: it may have to abort there."""

import asyncio
from contextlib import suppress

import pytest
from joint_fakes import HANDLE, joint_cluster
from network_faults import Hold, Refuse
from producer_harness import GROUP, OFFSETS, FakeCluster, open_client

from aiosemel import ProducerOptions, RequestTimedOutError, TransactionAbortedError
from aiosemel.errors import TransactionAbortableError
from semel.coordinator.v1 import transactions_pb2 as wire


@pytest.fixture
def fake() -> FakeCluster:
    return joint_cluster()


async def test_a_writer_leaves_when_the_coordinator_knows_where_it_has_written(
    fake: FakeCluster,
) -> None:
    """Whatever the options say, and without a receipt that anybody could name."""
    options = ProducerOptions(registration_delay_ms=60_000)
    async with open_client(fake) as client:
        with suppress(ValueError):
            async with client.join(HANDLE, options=options) as writer:
                await writer.send("t", b"v", partition=2)
                await writer.send_offsets(OFFSETS, GROUP)
                await writer.send_and_wait("t", b"v", partition=1)
                raise ValueError
        told = fake.asked(wire.AddPartitionsToTxnRequest)
        (group,) = fake.asked(wire.AddOffsetsToTxnRequest)
    assert {(each.producer_id, each.producer_epoch) for each in told} == {(77, 3)}
    topics = [topic for each in told for topic in each.topics]
    assert sorted(number for topic in topics for number in topic.partitions) == [1, 2]
    assert group.group_id == GROUP.group_id


async def test_a_receipt_waits_until_the_coordinator_knows(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("AddPartitionsToTxn", Hold(released))
    options = ProducerOptions(max_block_ms=100)
    async with open_client(fake) as client, client.join(HANDLE, options=options) as writer:
        await writer.send_and_wait("t", b"v", partition=0)
        with pytest.raises(RequestTimedOutError, match="the participants of sink"):
            await writer.finish()
        released.set()
        assert len((await writer.finish()).participants) == 1
    assert len(fake.asked(wire.AddPartitionsToTxnRequest)) == 1


async def test_a_writer_leaves_in_the_end_without_an_answer(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    fake.then("AddPartitionsToTxn", Hold(asyncio.Event()))
    async with open_client(fake) as client:
        writer = client.join(HANDLE)
        await writer.join()
        await writer.send_and_wait("t", b"v", partition=0)
        async with asyncio.timeout(6):
            await writer.close()
    assert "the participants of sink; they will ask it" in caplog.text


async def test_a_writer_that_the_coordinator_refuses_gives_no_receipt(fake: FakeCluster) -> None:
    fake.then("AddPartitionsToTxn", Refuse(TransactionAbortableError("it is over")))
    async with open_client(fake) as client, client.join(HANDLE) as writer:
        await writer.send("t", b"v", partition=0)
        with pytest.raises(TransactionAbortedError):
            await writer.finish()
