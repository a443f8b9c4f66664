"""What producers do while partitions move: they go on, with the sequences that they had."""

import asyncio

import pytest
from network_faults import LoseReply, RefusePartition
from producer_harness import FakeCluster, begun, elapse, open_client, values

from aiosemel import ProducerOptions
from aiosemel.errors import NotLeaderOrFollowerError
from semel.broker.v1.broker_pb2 import ProduceRequest


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster(brokers=2)
    cluster.create_topic("t")
    return cluster


async def hand_over(fake: FakeCluster, to: int) -> None:
    """Move the partition: its leader has stopped before anybody hears of the new one."""
    refused = RefusePartition(NotLeaderOrFollowerError("handed over"))
    fake.then("Produce", refused, refused, refused)
    await elapse(0.02)
    fake.log("t").leader = to
    fake.version += 1


async def test_batches_in_flight_go_to_the_new_leader_in_order(fake: FakeCluster) -> None:
    sent = values(300, size=50)
    async with open_client(fake) as client, asyncio.TaskGroup() as group:
        producer = client.producer(ProducerOptions(batch_size_bytes=500))
        for number, value in enumerate(sent):
            if number in {100, 200}:
                group.create_task(hand_over(fake, to=1 if number == 100 else 0))
            await producer.send("t", value)
            await elapse(0.001)
        await producer.flush()
    assert fake.stored("t") == sent
    assert {"broker0:1", "broker1:1"} <= set(fake.addresses)


async def test_a_batch_has_the_same_sequence_at_the_new_leader(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"1")
        fake.log("t").leader = 1
        fake.version += 1
        await producer.send_and_wait("t", b"2")
    _, refused, taken = fake.asked(ProduceRequest)
    assert refused == taken
    assert taken.partitions[0].batches[0].base_sequence == 1


async def test_a_batch_whose_answer_was_lost_is_not_stored_again_by_the_new_leader(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        fake.then("Produce", LoseReply())
        sending = asyncio.create_task(producer.send_and_wait("t", b"1"))
        await elapse(0.002)
        fake.log("t").leader = 1
        fake.version += 1
        assert (await sending).offset == 0
    assert fake.stored("t") == [b"1"]


async def test_an_open_transaction_goes_on_at_the_new_leader(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"1")
        await producer.flush()
        async with asyncio.TaskGroup() as group:
            group.create_task(hand_over(fake, to=1))
            await producer.send("t", b"2")
            await producer.flush()
        await producer.send("t", b"3")
        await producer.commit()
    assert fake.visible("t") == [b"1", b"2", b"3"]
    assert fake.names().count("InitProducerId") == 1
    assert fake.names().count("EndTxn") == 1
