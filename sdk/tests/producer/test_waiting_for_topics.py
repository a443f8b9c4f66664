"""Who waits for a topic that is not there, alone or with others: what they hear, and when."""

import asyncio
import logging
from random import Random

import pytest
from producer_harness import BOOTSTRAP, FakeCluster, elapse

from aiosemel._cluster import Cluster
from aiosemel._retry import Deadline
from aiosemel.errors import RequestTimedOutError, UnknownTopicOrPartitionError
from aiosemel.options import ClientOptions


def cluster_of(fake: FakeCluster, seed: int = 7) -> Cluster:
    return Cluster((BOOTSTRAP,), fake, ClientOptions(), Random(seed))


async def wait_in_vain(cluster: Cluster, timeout_ms: int) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic no-such"):
        await cluster.topic("no-such", Deadline.after_ms(timeout_ms))


async def test_who_waits_for_a_topic_is_told_so_now_and_then(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "aiosemel")
    cluster = cluster_of(fake)
    await wait_in_vain(cluster, 900)
    assert caplog.messages == []
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(wait_in_vain(cluster, 15_000))
    assert caplog.messages == ["waiting for topic no-such: no topic no-such"] * 2


@pytest.mark.parametrize("seed", range(10))
async def test_all_who_wait_for_a_topic_hear_that_it_is_not_there(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """Also those whose time is up while they wait for another's question, or for their turn."""
    caplog.set_level(logging.WARNING, "aiosemel")
    cluster = cluster_of(fake, seed)
    async with asyncio.TaskGroup() as group:
        for number in range(30):
            group.create_task(wait_in_vain(cluster, 1_000 + 37 * number))
    assert [each for each in caplog.messages if "no metadata" in each] == []
    assert cluster.known.failures.last is None


async def test_who_waits_until_nobody_answers_is_not_told_that_a_topic_is_not_there(
    fake: FakeCluster,
) -> None:
    cluster = cluster_of(fake)
    waiting = asyncio.create_task(cluster.topic("no-such", Deadline.after_ms(5_000)))
    await elapse(1)
    fake.down = True
    with pytest.raises(RequestTimedOutError, match="nobody answers"):
        await waiting
