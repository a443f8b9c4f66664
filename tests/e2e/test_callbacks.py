"""Calls that users make in callbacks of a rebalance, against a real cluster."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from aiosemel import Consumer, ConsumerOptions, OffsetReset, SemelClient, TopicPartition

pytestmark = pytest.mark.asyncio(loop_scope="session")

Partitions = frozenset[TopicPartition]
AT_ONCE_S = 10
"""Far less than the time-out of a call, which is 60 s."""


async def every_call(
    client: SemelClient, consumer: Consumer, partitions: Partitions, transactional_id: str
) -> dict[TopicPartition, int]:
    """Make all calls that ask or change something; returns the positions at the end."""
    here = sorted(partitions)
    consumer.pause(*here)
    consumer.resume(*here)
    await consumer.committed(here)
    await consumer.commit()
    ends = await consumer.end_offsets(here)
    assert await consumer.beginning_offsets(here) == dict.fromkeys(here, 0)
    assert all((await consumer.offsets_for_times(dict.fromkeys(here, 0))).values())
    consumer.seek_to_end(*here)
    assert {each: await consumer.position(each) for each in here} == ends
    consumer.seek_to_beginning(*here)
    assert {each: await consumer.position(each) for each in here} == dict.fromkeys(here, 0)
    async with client.transactional_producer(transactional_id) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send(here[0].topic, b"made in a callback", partition=0)
            moved = dict.fromkeys(here, 1)
            await producer.send_offsets(moved, consumer.group_metadata())
    consumer.seek_to_committed(*here)
    return {each: await consumer.position(each) for each in here}


@pytest.mark.parametrize("moment", ["on_assigned", "on_revoked"])
async def test_every_call_works_in_a_callback(
    client: SemelClient, topic: str, name: str, moment: str
) -> None:
    for partition in range(4):
        await client.producer().send_and_wait(topic, b"v", partition=partition)
    found: list[dict[TopicPartition, int]] = []
    consumer = client.consumer(name, ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST))

    async def told(partitions: Partitions) -> None:
        async with asyncio.timeout(AT_ONCE_S):
            found.append(await every_call(client, consumer, partitions, name))

    callbacks: dict[str, Callable[[Partitions], Awaitable[None]]] = {moment: told}
    consumer.subscribe([topic], **callbacks)
    while not consumer.assignment():
        await consumer.poll(timeout_ms=100)
    await consumer.close()
    assert found == [{TopicPartition(topic, partition): 1 for partition in range(4)}]
