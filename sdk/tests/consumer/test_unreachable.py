"""Consumers without a reachable instance: they warn, and their waits end with the cause."""

import asyncio
import logging

import pytest
from consumer_harness import client_of, heartbeats, pass_time
from fake_cluster import FakeCluster

from aiosemel._consumer.group.membership import LEAVE_EPOCH
from aiosemel.errors import (
    ClosedError,
    InvalidResponseError,
    KafkaStorageError,
    NetworkExceptionError,
    RequestTimedOutError,
    SslAuthenticationError,
)

REFUSED = NetworkExceptionError("connection refused")


@pytest.fixture
def fake(caplog: pytest.LogCaptureFixture) -> FakeCluster:
    caplog.set_level(logging.WARNING, "aiosemel")
    fake = FakeCluster()
    fake.create_topic("orders")
    return fake


async def test_it_warns_at_first_and_from_time_to_time(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    fake.faults["Metadata"].extend([REFUSED] * 10_000)
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"])
        assert await consumer.poll(timeout_ms=500) == {}
        assert caplog.messages == [
            "no metadata from coordinator:1, still trying: connection refused"
        ]
        for _ in range(40):
            await consumer.poll(timeout_ms=1_000)
        assert 4 <= len(caplog.messages) <= 6
        fake.faults["Metadata"].clear()
        await consumer.poll(timeout_ms=5_000)
        assert consumer.assignment()


async def test_heartbeats_that_fail_are_warned_of(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    fake.faults["ConsumerGroupHeartbeat"].extend([REFUSED] * 5)
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            await consumer.poll(timeout_ms=1_000)
        assert caplog.messages == ["heartbeat to group g failed: connection refused"]
        fake.faults["ConsumerGroupHeartbeat"].append(REFUSED)
        await pass_time(5)
        assert len(caplog.messages) == 2


@pytest.mark.parametrize("method", ["Metadata", "ConsumerGroupHeartbeat"])
async def test_polls_of_a_member_raise_trouble_that_no_time_heals(
    fake: FakeCluster, method: str
) -> None:
    fake.faults[method].extend([SslAuthenticationError("coordinator:1 speaks TLS")] * 10_000)
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"])
        began = asyncio.get_running_loop().time()
        for _ in range(3):
            with pytest.raises(SslAuthenticationError, match="speaks TLS"):
                await consumer.poll(timeout_ms=60_000)
        assert asyncio.get_running_loop().time() < began + 15
        fake.faults[method].clear()
        while not consumer.assignment():
            await consumer.poll(timeout_ms=5_000)


async def test_a_single_answer_that_does_not_fit_ends_no_poll(fake: FakeCluster) -> None:
    fake.faults["ConsumerGroupHeartbeat"].extend([InvalidResponseError("no epoch")] * 2)
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            await consumer.poll(timeout_ms=5_000)


@pytest.mark.parametrize(("method", "leaves"), [("Metadata", 0), ("ConsumerGroupHeartbeat", 1)])
async def test_closing_does_not_wait_for_a_group_that_never_answered(
    fake: FakeCluster, method: str, leaves: int
) -> None:
    fake.faults[method].extend([REFUSED] * 10_000)
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"])
        await consumer.poll(timeout_ms=3_000)
        before = asyncio.get_running_loop().time()
        await consumer.close()
        assert asyncio.get_running_loop().time() == before
    assert [heartbeat.member_epoch for heartbeat in heartbeats(fake)].count(LEAVE_EPOCH) == leaves


async def test_the_next_member_asks_where_the_group_coordinator_is_after_a_lost_goodbye(
    fake: FakeCluster,
) -> None:
    fake.down = {"group:1"}
    async with client_of(fake) as client:
        first = client.consumer("g")
        first.subscribe(["orders"])
        await first.poll(timeout_ms=500)
        fake.group_host = "successor"
        fake.version += 1
        await first.close(timeout_ms=1_000)
        second = client.consumer("g")
        second.subscribe(["orders"])
        await second.poll(timeout_ms=500)
        assert second.assignment()


async def test_a_broker_that_fails_for_long_is_warned_of(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    fake.faults["Fetch"].extend([KafkaStorageError("disk is full")] * 10_000)
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([("orders", 0)])
        await consumer.poll(timeout_ms=5_000)
        assert caplog.messages == []
        await consumer.poll(timeout_ms=10_000)
        assert caplog.messages == ["asking broker0:1 failed: disk is full"]


@pytest.mark.parametrize(
    ("method", "timeout_ms"),
    [("Metadata", 2_000), ("FetchOffsets", 70_000), ("ListOffsets", 2_000)],
)
async def test_a_position_that_is_not_found_says_why(
    fake: FakeCluster, method: str, timeout_ms: int
) -> None:
    fake.faults[method].extend([REFUSED] * 10_000)
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.assign([("orders", 0)])
        with pytest.raises(RequestTimedOutError) as raised:
            await consumer.position(("orders", 0), timeout_ms=timeout_ms)
        assert "connection refused" in str(raised.value.__cause__)


async def test_a_caller_waiting_for_a_position_hears_that_the_consumer_is_closed(
    fake: FakeCluster,
) -> None:
    fake.down = {"broker0:1"}
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([("orders", 0)])
        waiting = asyncio.create_task(consumer.position(("orders", 0)))
        await pass_time(1)
        await consumer.close()
        async with asyncio.timeout(1):
            with pytest.raises(ClosedError):
                await waiting
