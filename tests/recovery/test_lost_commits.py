"""Volumes that lack the last commits alone: a log that is gone, and a copy of a running service."""

from pathlib import Path

import pytest

from aiosemel import OffsetAndMetadata, TopicPartition
from recovery.stage import REFUSED, Stage, id_of, refused, stage, stops

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAMES = ("coordinator-0", "coordinator-1", "broker-0", "group-coordinator-0")


async def work(on: Stage, topic: str) -> None:
    """Let every service of `NAMES` commit something that it acknowledges."""
    for coordinator in range(2):
        producer = await on.producer(id_of(coordinator))
        await on.write(producer, topic, f"of coordinator {coordinator}")
    async with on.client.consumer("readers") as consumer:
        consumer.assign([(topic, 0)])
        await consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(1)})


@pytest.mark.parametrize("name", NAMES)
async def test_a_service_whose_log_was_deleted_is_refused_by_its_own_witness(
    tmp_path: Path, name: str
) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(0)
        await work(on, topic)
        await on.cluster.kill(name)
        (on.data(name) / "journal.db-wal").unlink()
        for _ in range(2):
            told = await refused(on, name)
            assert "journal.end says that it went to offset" in told
            assert "semel recover" in told
        if name == "coordinator-0":
            return  # What recovers it is tested with its older copies.
        await on.recover(name)
        await on.cluster.start(name)
        await work(on, topic)


@pytest.mark.parametrize("name", NAMES[1:])
async def test_a_copy_of_a_running_service_is_refused_by_the_controller(
    tmp_path: Path, name: str
) -> None:
    async with stage(tmp_path) as on:
        topic = await on.topic_on(0)
        await on.copy_running(name)
        await work(on, topic)
        await on.heard()
        await on.kill_and_put_back(name)
        assert REFUSED in await stops(on, name)
        assert "journal was refused" in await refused(on, name)
        await on.recover(name)
        await on.cluster.start(name)
        await work(on, topic)
