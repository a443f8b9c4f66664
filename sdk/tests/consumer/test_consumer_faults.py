"""What a consumer does when brokers move, fail, or answer what cannot be."""

import pytest
from cluster_calls import now
from consumer_harness import client_of
from fake_cluster import FakeCluster

from aiosemel import Consumer, ConsumerOptions, TopicPartition
from aiosemel.errors import (
    CorruptMessageError,
    InvalidConfigError,
    InvalidGroupIdError,
    InvalidRequestError,
    InvalidResponseError,
    InvalidTopicError,
    KafkaStorageError,
    MessageTooLargeError,
    NetworkExceptionError,
    NoOffsetForPartitionError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_common.record_batches.batches import check_crc
from semel_runtime.testing.payloads import header_bomb

ORDERS = TopicPartition("orders", 0)


async def values(consumer: Consumer, timeout_ms: int = 5_000) -> list[bytes | None]:
    polled = await consumer.poll(timeout_ms=timeout_ms)
    return [record.value for records in polled.values() for record in records]


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders")
    return fake


# -- brokers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["Metadata", "ListOffsets", "Fetch"])
@pytest.mark.parametrize(
    "error",
    [
        NetworkExceptionError("connection lost"),
        RequestTimedOutError("no answer"),
        KafkaStorageError("disk is full"),
        UnknownServerError("broken"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_request_that_fails_is_repeated(
    fake: FakeCluster, method: str, error: NetworkExceptionError
) -> None:
    fake.append("orders", 0, [b"a"])
    fake.faults[method].extend([error, error])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"a"]
        assert now() > 0.1


async def test_repeated_failures_wait_longer_each_time(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    fake.faults["Fetch"].extend([KafkaStorageError("disk is full")] * 6)
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer, 60_000) == [b"a"]
        assert 2.5 < now() < 4.5


@pytest.mark.parametrize("method", ["ListOffsets", "Fetch"])
async def test_a_partition_whose_leader_moves_is_read_from_the_new_one(
    fake: FakeCluster, method: str
) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"a"]
        fake.log("orders").leader = 1
        fake.append("orders", 0, [b"b"])
        if method == "ListOffsets":
            consumer.seek_to_beginning()
            assert await values(consumer) == [b"a", b"b"]
        else:
            assert await values(consumer) == [b"b"]
        assert fake.calls[-1][1] == "broker1:1"


async def test_one_partition_that_fails_does_not_hold_up_the_others(fake: FakeCluster) -> None:
    fake = FakeCluster(brokers=1)
    fake.create_topic("orders", 2)
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS, ("orders", 1)])
        await consumer.position(ORDERS)
        await consumer.position(("orders", 1))
        fake.log("orders", 0).leader = 7
        for number in range(3):
            fake.append("orders", 1, [b"%d" % number])
            before = now()
            assert await values(consumer) == [b"%d" % number]
            assert now() - before < 0.2


async def test_a_broker_that_hangs_is_asked_again_when_its_time_is_up(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        await consumer.position(ORDERS)
        fake.down.add("broker0:1")
        consumer.seek_to_beginning()
        assert await values(consumer, 1_000) == []
        fake.down.clear()
        assert await values(consumer, 60_000) == [b"a"]


async def test_a_broker_without_an_address_is_waited_for(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    fake.log("orders").leader = 2
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer, 1_000) == []
        fake.brokers = 3
        assert await values(consumer) == [b"a"]


@pytest.mark.parametrize("method", ["ListOffsets", "Fetch"])
async def test_a_permanent_error_reaches_the_user(fake: FakeCluster, method: str) -> None:
    fake.append("orders", 0, [b"a"])
    fake.faults[method].append(InvalidRequestError("broken"))
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(InvalidRequestError):
            await values(consumer)
        assert await values(consumer) == [b"a"]


@pytest.mark.parametrize("method", ["ListOffsets", "Fetch"])
async def test_errors_of_a_partition_are_told_apart(fake: FakeCluster, method: str) -> None:
    fake.append("orders", 0, [b"a"])
    errors = [
        NotLeaderOrFollowerError("moved"),
        KafkaStorageError("full"),
        InvalidRequestError("?"),
    ]
    fake.refusals[method].extend(errors)
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(InvalidRequestError):
            await values(consumer)
        assert await values(consumer) == [b"a"]


async def test_a_defect_behind_the_calls_reaches_the_user(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer's own task ends by the defect: the consumer does not go on without it."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("aiosemel._consumer.fetching.leader_requests._chunk", broken)
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(ExceptionGroup) as raised:
            await values(consumer)
        assert raised.group_contains(ZeroDivisionError)


async def test_an_answer_that_does_not_fit_is_told_to_the_user_by_its_address(
    fake: FakeCluster,
) -> None:
    fake.surplus = True
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(InvalidResponseError, match="broker0:1 answered ListOffsets with"):
            await values(consumer, 30_000)
        fake.surplus = False
        fake.append("orders", 0, [b"a"])
        assert await values(consumer) == [b"a"]


# -- topics --------------------------------------------------------------------------------------


async def test_a_topic_that_is_not_there_is_waited_for(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([("later", 0)])
        assert await values(consumer, 1_000) == []
        fake.create_topic("later")
        fake.append("later", 0, [b"a"])
        assert await values(consumer) == [b"a"]


async def test_a_topic_that_never_comes_is_reported(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([("never", 0)])
        with pytest.raises(UnknownTopicOrPartitionError, match="never"):
            await values(consumer, 120_000)
        assert now() < 61


async def test_a_name_that_the_cluster_refuses_is_reported(fake: FakeCluster) -> None:
    fake.illegal.add("reserved")
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([("reserved", 0)])
        with pytest.raises(InvalidTopicError):
            await values(consumer)


async def test_a_partition_that_is_not_there_is_reported(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([("orders", 7)])
        with pytest.raises(UnknownTopicOrPartitionError, match="has 1 partitions, no partition 7"):
            await values(consumer)


async def test_a_topic_that_is_not_there_holds_up_no_other(fake: FakeCluster) -> None:
    fake.create_topic("income")
    for topic in ("orders", "income"):
        fake.append(topic, 0, [topic.encode()])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS, ("never", 0), ("income", 0)])
        assert {*await values(consumer), *await values(consumer)} == {b"income", b"orders"}
        assert now() < 0.1
        with pytest.raises(UnknownTopicOrPartitionError, match="never"):
            await values(consumer, 70_000)
        assert 50 < now() < 65
        fake.append("orders", 0, [b"later"])
        assert await values(consumer) == [b"later"]
        assert await consumer.position(("income", 0)) == 1


async def test_a_partition_that_is_not_there_holds_up_no_other(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS, ("never", 0), ("orders", 77)])
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 77"):
            await consumer.position(("orders", 77))
        assert await consumer.position(ORDERS) == 0
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 77"):
            await values(consumer)
        assert await values(consumer) == [b"a"]
        assert now() < 0.1


async def test_a_topic_made_again_under_its_name_is_not_read_on(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"a"]
        fake.create_topic("orders")
        with pytest.raises(UnknownTopicIdError, match="id-orders-0 is gone"):
            await values(consumer)


# -- offsets -------------------------------------------------------------------------------------


async def test_an_offset_that_the_log_does_not_hold_is_put_right(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        await consumer.position(ORDERS)
        consumer.seek(ORDERS, 99)
        assert await values(consumer) == [b"a", b"b"]


async def test_without_a_policy_an_offset_out_of_range_is_raised(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    fake.committed[fake.key("orders")] = (99, "")
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="none")
        consumer.assign([ORDERS])
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match="orders-0: offset 99 is not within"):
                await values(consumer)
        consumer.seek(ORDERS, 0)
        assert await values(consumer) == [b"a"]


async def test_without_a_policy_a_start_must_be_committed(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        for group_id in (None, "g"):
            consumer = client.consumer(group_id, auto_offset_reset="none")
            consumer.assign([ORDERS])
            with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
                await values(consumer)
            with pytest.raises(NoOffsetForPartitionError):
                await consumer.position(ORDERS)


async def test_an_offset_that_a_transaction_may_change_is_waited_for(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"])
    fake.unstable.add(fake.key("orders"))
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer, 300) == []
        fake.committed[fake.key("orders")] = (1, "")
        fake.unstable.clear()
        assert await values(consumer) == [b"b"]
        assert now() < 0.4


@pytest.mark.parametrize(
    "error",
    [KafkaStorageError("full"), NetworkExceptionError("lost"), UnknownServerError("broken")],
)
async def test_committed_offsets_are_asked_for_until_they_are_answered(
    fake: FakeCluster, error: KafkaStorageError
) -> None:
    fake.append("orders", 0, [b"a"])
    fake.faults["FetchOffsets"].extend([error, error])
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"a"]


async def test_a_group_coordinator_that_hangs_is_waited_for(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    fake.down.add("group:1")
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer, 70_000) == []
        fake.down.clear()
        assert await values(consumer, 60_000) == [b"a"]


async def test_a_group_that_is_refused_is_reported(fake: FakeCluster) -> None:
    fake.faults["FetchOffsets"].append(InvalidGroupIdError("not a group id"))
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(InvalidGroupIdError):
            await values(consumer)


async def test_a_partition_without_an_answer_starts_as_the_policy_says(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    fake.refusals["FetchOffsets"].append(InvalidGroupIdError("broken"))
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(InvalidGroupIdError):
            await values(consumer)
        assert await values(consumer) == [b"a"]


# -- corruption ----------------------------------------------------------------------------------


async def test_a_corrupt_batch_is_raised_and_can_be_skipped(fake: FakeCluster) -> None:
    """C21: corruption is detected, not served."""
    fake.append("orders", 0, [b"a"])
    fake.append("orders", 0, [b"b", b"c"])
    fake.append("orders", 0, [b"d"])
    batch = fake.log("orders").batches[1]
    batch.payload = batch.payload.replace(b"b", b"X")
    with pytest.raises(CorruptMessageError):
        check_crc(batch, batch.payload)
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"a"]
        for _ in range(2):
            with pytest.raises(CorruptMessageError, match="orders-0, offset 1: CRC") as raised:
                await values(consumer)
            assert raised.value.details["offset"] == "1"
        consumer.seek(ORDERS, 3)
        assert await values(consumer) == [b"d"]
        unchecked = client.consumer(auto_offset_reset="earliest", check_crcs=False)
        unchecked.assign([ORDERS])
        assert await values(unchecked) == [b"a", b"X", b"c", b"d"]


async def test_a_group_goes_on_without_a_batch_that_its_options_name(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a"])
    fake.append("orders", 0, [b"b"])
    fake.append("orders", 0, [b"c"])
    bomb = header_bomb()
    bomb.base_offset = 1
    fake.log("orders").batches[1].CopyFrom(bomb)
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.subscribe(["orders"])
        assert await values(consumer) == [b"a"]
        with pytest.raises(MessageTooLargeError, match="name orders:0:1 in skip_batches"):
            await values(consumer)
        await consumer.commit()
        await consumer.close()
        told = client.consumer("g", skip_batches=[("orders", 0, 1)])
        told.subscribe(["orders"])
        assert await values(told) == [b"c"]
        await told.commit()
        assert await told.position(ORDERS) == 3


@pytest.mark.parametrize(
    ("name", "value"), [("auto_offset_reset", "newest"), ("isolation_level", "dirty")]
)
def test_options_have_names_of_kafka(name: str, value: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"{name} is '{value}': "):
        ConsumerOptions(**{name: value})  # type: ignore[arg-type]  # what types would forbid
