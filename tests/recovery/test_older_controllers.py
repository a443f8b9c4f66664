"""Coordinator 0 on an older copy of its volume: stopped before it gives anything out again."""

import asyncio
from pathlib import Path

import pytest

from aiosemel import SemelError, TransactionalProducer
from recovery.stage import REFUSED, Stage, ended, id_of, refused, stage, stops

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAME = "coordinator-0"
OTHERS = ("coordinator-1", "broker-0", "broker-1", "group-coordinator-0")
TOPIC = "orders"
KNOWN = "knows more of the journal of coordinator-0"


async def work(on: Stage) -> TransactionalProducer:
    """Let three idempotent producers and a transactional one store records."""
    for number in range(3):
        async with on.client.producer() as producer:
            for _ in range(4):
                await producer.send_and_wait(TOPIC, f"idempotent {number}".encode(), partition=0)
    transactional = await on.producer(id_of(0))
    await on.write(transactional, TOPIC, "transactional")
    return transactional


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
async def test_the_others_stop_it_and_its_volume_stays_refused(
    tmp_path: Path, *, running: bool
) -> None:
    async with stage(tmp_path) as on:
        await on.client.admin().create_topic(TOPIC, partitions=1)
        await (on.copy_running if running else on.copy)(NAME)
        await work(on)
        await on.heard()
        before = await on.read(TOPIC)
        await on.kill_and_put_back(NAME)

        told = await stops(on, NAME)
        assert KNOWN in told
        assert REFUSED in told
        assert "transaction-log partitions claimed" not in told.split("journal loaded")[-1]
        for _ in range(2):
            assert "journal was refused" in await refused(on, NAME)
        assert all(on.cluster.pid(name) for name in OTHERS)

        for name in OTHERS:
            await on.cluster.stop_service(name)
        await on.recover(NAME, *(f"--metadata-from={name}={on.data(name)}" for name in OTHERS))
        for name in (NAME, *OTHERS):
            await on.cluster.start(name)
        given = {producer_id for producer_id, _ in on.given}
        await work(on)
        assert not given & {producer_id for producer_id, _ in on.given[1:]}
        assert (await on.read(TOPIC))[: len(before)] == before
        assert len(await on.read(TOPIC)) == 2 * len(before)


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
async def test_no_order_of_starts_lets_it_in(tmp_path: Path, *, first: bool) -> None:
    async with stage(tmp_path) as on:
        await on.client.admin().create_topic(TOPIC, partitions=1)
        await on.copy_running(NAME)
        await work(on)
        await on.heard()
        for name in OTHERS:
            await on.cluster.stop_service(name)
        await on.kill_and_put_back(NAME)
        for _ in range(3 if first else 0):  # Each of its starts raises its claim epoch.
            await on.cluster.start(NAME)
            with pytest.raises((SemelError, TimeoutError)):
                async with asyncio.timeout(1):
                    await on.client.admin().create_topic("not-made", partitions=1)
            await on.cluster.kill(NAME)
        if first:
            await on.cluster.start(NAME)
        for name in OTHERS:
            await on.cluster.start(name, wait=False)
        if not first:
            await on.cluster.start(NAME, wait=False)
        assert KNOWN in await ended(on, NAME)
        assert "journal was refused" in await refused(on, NAME)
