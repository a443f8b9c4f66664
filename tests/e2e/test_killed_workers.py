"""Workers that are killed with SIGKILL and started again: their partitions do not stand still.

A worker is a process of its own. The session time-out of the cluster is the default, 45 s; each
wait here is shorter, so a worker that had to wait for the session of its predecessor would fail.
"""

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aiosemel import Consumer, ConsumerOptions, OffsetReset, SemelClient
from semel_local import LocalCluster

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

AT_ONCE_S = 20
FROM_THE_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)

TRANSFORM = """
import asyncio, sys
from aiosemel import ProducerRecord, SemelClient

async def handle(records, outputs):
    return [ProducerRecord(topic=sys.argv[3], value=b"done " + each.value) for each in records]

async def main():
    async with SemelClient(sys.argv[1]) as client:
        await client.transform(
            source=[sys.argv[2]], group=sys.argv[4], transactional_id=sys.argv[4], handler=handle
        )

asyncio.run(main())
"""
STATIC_MEMBER = """
import asyncio, sys
from aiosemel import ConsumerOptions, SemelClient

async def main():
    async with SemelClient(sys.argv[1]) as client:
        options = ConsumerOptions(auto_offset_reset="earliest", group_instance_id="reader-0")
        async with client.consumer(sys.argv[4], options) as consumer:
            consumer.subscribe([sys.argv[2]])
            async for record in consumer:
                await client.producer().send_and_wait(sys.argv[3], b"done " + record.value)
                await consumer.commit()

asyncio.run(main())
"""


@asynccontextmanager
async def worker(program: str, *arguments: str) -> AsyncIterator[Process]:
    """Run a worker until it is killed, at the latest at the end of the block."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, *arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def done(consumer: Consumer, value: bytes) -> None:
    """Wait until a worker has done its work on a record in each of four partitions."""
    found: list[bytes | None] = []
    async with asyncio.timeout(AT_ONCE_S):
        while found.count(b"done " + value) < 4:
            for records in (await consumer.poll(timeout_ms=100)).values():
                found += [record.value for record in records]


async def send(client: SemelClient, topic: str, value: bytes) -> None:
    """Send a record to each partition."""
    for partition in range(4):
        await client.producer().send_and_wait(topic, value, partition=partition)


@pytest.mark.parametrize("program", [TRANSFORM, STATIC_MEMBER], ids=["transform", "consumer"])
async def test_a_worker_that_is_killed_and_started_again_takes_over_at_once(
    cluster: LocalCluster, client: SemelClient, topic: str, name: str, program: str
) -> None:
    outputs = f"{topic}-done"
    await client.admin().create_topic(outputs, partitions=1)
    arguments = (cluster.bootstrap, topic, outputs, name)
    async with client.consumer(options=FROM_THE_START) as consumer:
        consumer.assign([(outputs, 0)])
        for life in range(3):
            async with worker(program, *arguments):
                value = b"%d" % life
                await send(client, topic, value)
                await done(consumer, value)
        async with worker(program, *arguments):
            await send(client, topic, b"last")
            await done(consumer, b"last")
            (member,) = (await client.admin().describe_group(name)).members
            assert member.group_instance_id in {name, "reader-0"}


async def test_a_transformation_that_ends_gives_its_partitions_to_others_at_once(
    client: SemelClient, topic: str, name: str
) -> None:
    """Though it is a static member: it says goodbye for good."""

    async def handle(*_: object) -> None:
        return None

    transformation = client.transform(
        source=[topic], group=name, transactional_id=name, handler=handle
    )
    running = asyncio.create_task(transformation.run())
    async with asyncio.timeout(AT_ONCE_S):
        while not await _members(client, name):
            pass
        transformation.stop()
        await running
    assert not await _members(client, name)


async def _members(client: SemelClient, group_id: str) -> list[str]:
    groups = [group.group_id for group in await client.admin().list_groups()]
    if group_id not in groups:
        return []
    return [
        member.group_instance_id
        for member in (await client.admin().describe_group(group_id)).members
    ]
