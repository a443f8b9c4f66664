"""What a time-out says: the last error and its address; and the log says it early, and once."""

import asyncio
import logging
from dataclasses import replace

import pytest
from network_faults import Hold, Refuse, RefusePartition
from producer_harness import FakeCluster, elapse, open_client

from aiosemel import ClientOptions, OffsetSpec, ProducerOptions
from aiosemel.errors import (
    CoordinatorLoadInProgressError,
    KafkaStorageError,
    NetworkExceptionError,
    RequestTimedOutError,
    SemelError,
)

OPTIONS = ProducerOptions(
    request_timeout_ms=1_000,
    delivery_timeout_ms=5_000,
    max_block_ms=5_000,
    buffer_memory_bytes=1_000,
    max_request_size_bytes=1_000,
    batch_size_bytes=1_000,
)
MANY = 10_000
LOST = NetworkExceptionError("the host name of broker0:1 cannot be resolved")
FULL = KafkaStorageError("the disk is full")


@pytest.fixture
def fake(caplog: pytest.LogCaptureFixture) -> FakeCluster:
    caplog.set_level(logging.WARNING, "aiosemel")
    fake = FakeCluster()
    fake.create_topic("t")
    return fake


@pytest.mark.parametrize(
    ("fault", "last_error"),
    [
        (Refuse(LOST), LOST.message),
        (Refuse(FULL), "broker0:1: the disk is full"),
        (RefusePartition(FULL), "broker0:1: the disk is full"),
    ],
    ids=["unreachable", "refused", "partition refused"],
)
async def test_records_that_are_not_acknowledged_say_why(
    fake: FakeCluster,
    fault: Refuse | RefusePartition,
    last_error: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer(OPTIONS)
        await producer.send_and_wait("t", b"before")
        fake.then("Produce", *[fault] * MANY)
        delivery = await producer.send("t", b"lost")
        await elapse(2.5)
        early = "records are not acknowledged yet, still trying: " + last_error
        assert caplog.messages == [early]
        with pytest.raises(RequestTimedOutError) as raised:
            await delivery
        message = raised.value.message
        assert message.startswith("t-0: 1 record was not acknowledged in ")
        assert message.endswith(f"times; last error: {last_error}")


async def test_records_that_are_never_sent_say_why(fake: FakeCluster) -> None:
    fake.then("InitProducerId", *[Refuse(CoordinatorLoadInProgressError("loading"))] * MANY)
    async with open_client(fake) as client:
        with pytest.raises(
            RequestTimedOutError, match="never sent; last error: coordinator:1: load"
        ):
            await client.producer(OPTIONS).send_and_wait("t", b"lost")


async def test_full_buffer_says_why(fake: FakeCluster) -> None:
    fake.then("Produce", *[Refuse(LOST)] * MANY)
    async with open_client(fake) as client:
        producer = client.producer(replace(OPTIONS, delivery_timeout_ms=60_000))
        await producer.send("t", bytes(900))
        await elapse(1)
        with pytest.raises(
            RequestTimedOutError, match=r"no room for .*; last error: the host name"
        ):
            await producer.send("t", bytes(900))


async def test_call_says_why_and_warns_early(
    fake: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    fake.then("CreateTopics", *[Refuse(CoordinatorLoadInProgressError("loading"))] * MANY)
    async with open_client(fake, ClientOptions(default_api_timeout_ms=8_000)) as client:
        with pytest.raises(RequestTimedOutError, match="not done in time: coordinator:1: loading"):
            await client.admin().create_topic("new")
    (warning,) = caplog.messages
    assert warning.startswith("still trying after ")
    assert warning.endswith(" attempts: coordinator:1: loading")


async def test_trouble_is_forgotten_when_its_address_answers(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        trouble = client._cluster.trouble
        fake.then("InitProducerId", Refuse(CoordinatorLoadInProgressError("loading")))
        await client.producer().send_and_wait("t", b"one")
        assert trouble.suffix == ""
        trouble.failed(SemelError("gone"), "broker9:1")
        await client.admin().list_topics()
        assert trouble.suffix == "; last error: broker9:1: gone"


async def test_batch_keeps_its_own_error_when_its_broker_answers_others(fake: FakeCluster) -> None:
    fake.then("Produce", RefusePartition(FULL), Hold(asyncio.Event()))
    async with open_client(fake) as client:
        producer = client.producer(replace(OPTIONS, request_timeout_ms=5_000))
        delivery = await producer.send("t", b"lost")
        await elapse(1)
        client._cluster.trouble.answered("broker0:1")
        with pytest.raises(RequestTimedOutError, match="last error: broker0:1: the disk is full"):
            await delivery


async def test_a_look_up_that_fails_shortly_before_its_end_says_why(fake: FakeCluster) -> None:
    """Then metadata are asked for with too little time to get them: that is not the cause."""
    fake.then("ListOffsets", *[Refuse(LOST)] * MANY)
    async with open_client(fake, ClientOptions(default_api_timeout_ms=400)) as client:
        await client.admin().describe_topic("t")
        fake.then("Metadata", None, *[Hold(asyncio.Event())] * MANY)
        with pytest.raises(RequestTimedOutError, match=LOST.message):
            await client.admin().list_offsets({("t", 0): OffsetSpec.LATEST})
