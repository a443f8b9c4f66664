"""Volumes that lack the last commits alone: a log that is gone, and a copy of a running service."""

from pathlib import Path

import pytest

from aiosemel import OffsetAndMetadata, TopicPartition
from recovery.stage import REFUSED, Stage, id_of, refused, stage, stops

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAMES = ("coordinator-1", "broker-0", "group-coordinator-0", "coordinator-0")


async def work(on: Stage, topic: str) -> None:
    """Let every service of `NAMES` commit something that it acknowledges."""
    for coordinator in range(2):
        producer = await on.producer(id_of(coordinator))
        await on.write(producer, topic, f"of coordinator {coordinator}")
    async with on.client.consumer("readers") as consumer:
        consumer.assign([(topic, 0)])
        await consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(1)})


async def test_services_whose_logs_were_deleted_are_refused_by_their_own_witnesses(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(0)
        await work(on, topic)
        for name in NAMES:
            await on.cluster.kill(name)
            (on.data(name) / "journal.db-wal").unlink()
            for _ in range(2):
                told = await refused(on, name)
                assert "journal.end says that it went to offset" in told
                assert "semel recover" in told
            if name != "coordinator-0":  # The tests of older copies test the recovery.
                await on.recover(name)
                await on.cluster.start(name)
                await work(on, topic)


async def test_copies_of_running_services_are_refused_by_the_controller(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(0)
        for name in NAMES[:-1]:
            await on.copy_running(name)
            await work(on, topic)
            await on.heard()
            await on.kill_and_put_back(name)
            assert REFUSED in await stops(on, name)
            assert "journal was refused" in await refused(on, name)
            await on.recover(name)
            await on.cluster.start(name)
            await work(on, topic)
