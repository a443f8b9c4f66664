"""Callers that wait for a missing topic, alone or with others, and the times of their answers."""

import asyncio
import logging
from random import Random

import pytest
from network_faults import Refuse
from producer_harness import BOOTSTRAP, FakeCluster, elapse, open_client

from aiosemel import ClientOptions, ProducerOptions
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import (
    NetworkExceptionError,
    RequestTimedOutError,
    TopicNotFoundError,
    UnknownTopicOrPartitionError,
)


def cluster_of(fake: FakeCluster, seed: int = 7) -> Cluster:
    return Cluster((BOOTSTRAP,), fake, ClientOptions(), Random(seed))


async def wait_in_vain(cluster: Cluster, timeout_ms: int) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic no-such"):
        await cluster.cache.topic("no-such", Deadline.after_ms(timeout_ms))


async def test_a_caller_waiting_for_a_topic_is_told_so_now_and_then(
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
    assert [message for message in caplog.messages if "no metadata" in message] == []
    assert cluster.cache.failures.last is None


async def test_without_an_answer_a_caller_is_not_told_that_a_topic_is_missing(
    fake: FakeCluster,
) -> None:
    cluster = cluster_of(fake)
    waiting = asyncio.create_task(cluster.cache.topic("no-such", Deadline.after_ms(5_000)))
    await elapse(1)
    fake.down = True
    with pytest.raises(RequestTimedOutError, match="no service answers"):
        await waiting


async def test_a_producer_that_waits_for_no_topic_asks_the_controller_and_fails_at_once(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(waits_for_topics=False))
        started = asyncio.get_running_loop().time()
        with pytest.raises(TopicNotFoundError) as missing:
            await producer.send("nowhere", b"v")
        assert asyncio.get_running_loop().time() - started < 1
        assert missing.value.details["topic"] == "nowhere"
        fake.create_topic("nowhere")
        await producer.send_and_wait("nowhere", b"v")


async def test_a_controller_that_does_not_answer_makes_no_topic_a_missing_one(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(waits_for_topics=False))
        fake.then("Metadata", None, Refuse(NetworkExceptionError("the controller is away")))
        sending = asyncio.create_task(producer.send_and_wait("late", b"v"))
        await elapse(0.02)
        fake.create_topic("late")
        assert (await sending).offset == 0
