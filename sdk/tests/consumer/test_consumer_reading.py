"""Reading partitions that were assigned by hand: records, isolation, seeks."""

import asyncio

import pytest
from cluster_calls import now
from consumer_harness import client_of, pass_time
from fake_cluster import FakeCluster
from google.protobuf.message import Message

from aiosemel import Consumer, ConsumerRecord, TopicPartition
from aiosemel.errors import (
    ClosedError,
    IllegalStateError,
    InvalidConfigError,
    InvalidGroupIdError,
    InvalidRequestError,
    RequestTimedOutError,
)
from semel.broker.v1.broker_pb2 import FetchRequest

ORDERS = TopicPartition("orders", 0)


async def values(consumer: Consumer, timeout_ms: int = 500) -> list[bytes | None]:
    polled = await consumer.poll(timeout_ms=timeout_ms)
    return [record.value for records in polled.values() for record in records]


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("orders")
    return fake


# -- records -------------------------------------------------------------------------------------


async def test_poll_returns_records_from_the_beginning_in_offset_order(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"], keys=[b"k", None], headers={1: (("h", b"1"),)})
    fake.append("orders", 0, [None])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        first, second, third = (await consumer.poll())[ORDERS]
        assert (first.offset, first.key, first.value, first.headers) == (0, b"k", b"a", ())
        assert (second.offset, second.key, second.headers) == (1, None, (("h", b"1"),))
        assert (third.offset, third.value, third.timestamp_ms) == (2, None, 1_000)
        assert await consumer.position(ORDERS) == 3
        assert consumer.positions() == {ORDERS: 3}
        assert consumer.assignment() == {ORDERS}


async def test_the_first_poll_of_a_second_consumer_does_not_wait_for_metadata(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        for _ in range(2):
            consumer = client.consumer(auto_offset_reset="earliest")
            consumer.assign([ORDERS])
            assert await values(consumer) == [b"a"]
            assert now() == 0
    assert len(fake.asked("Metadata")) == 1


async def test_metadata_that_is_not_of_now_is_asked_for_before_a_partition_is_read(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"a"])
    async with client_of(fake) as client:
        for _ in range(2):
            consumer = client.consumer(auto_offset_reset="earliest")
            consumer.assign([ORDERS])
            assert await values(consumer) == [b"a"]
            await pass_time(0.2)
    assert len(fake.asked("Metadata")) == 2


async def test_a_partition_that_has_just_been_created_is_found(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer, 10) == []
        fake.create_topic("orders", partitions=2)
        fake.append("orders", 1, [b"b"])
        second = client.consumer(auto_offset_reset="earliest")
        second.assign([TopicPartition("orders", 1)])
        assert await values(second) == [b"b"]


async def test_poll_waits_no_longer_than_its_timeout(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([ORDERS])
        assert await consumer.poll(timeout_ms=700) == {}
        assert now() == pytest.approx(0.7)
        assert await consumer.poll(timeout_ms=0) == {}


async def test_poll_wakes_when_records_arrive(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == []
        waiting = group.create_task(values(consumer, 10_000))
        asyncio.get_running_loop().call_later(3, fake.append, "orders", 0, [b"a"])
        assert await waiting == [b"a"]
        assert now() == pytest.approx(3.5)


async def test_what_comes_next_is_asked_for_before_what_came_is_opened(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])

        async def last_asked_when_polled() -> Message:
            assert await values(consumer) == [b"a"]
            return fake.asked("Fetch")[-1]

        polling = asyncio.create_task(last_asked_when_polled())
        await pass_time(0.1)
        fake.append("orders", 0, [b"a"])
        last = await polling
        assert isinstance(last, FetchRequest)
        assert last.partitions[0].fetch_offset == 1


async def test_poll_starts_at_the_end_by_default(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"old"])
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([ORDERS])
        assert await values(consumer) == []
        fake.append("orders", 0, [b"new"])
        assert await values(consumer) == [b"new"]


async def test_poll_returns_no_more_records_than_wanted(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b", b"c"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert len((await consumer.poll(2))[ORDERS]) == 2
        assert await consumer.position(ORDERS) == 2
        assert len((await consumer.poll(2))[ORDERS]) == 1
        with pytest.raises(InvalidRequestError, match="max_records is 0"):
            await consumer.poll(0)


async def test_columns_come_as_they_were_sent(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"], keys=[b"k", None])
    fake.append("orders", 0, [b"c"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        first, second = (await consumer.poll_columns())[ORDERS]
        assert (list(first.offsets), first.values) == ([0, 1], [b"a", b"b"])
        assert (first.keys, first.timestamps_ms) == ([b"k", None], [1_000, 1_000])
        assert (list(second.offsets), second.keys) == ([2], None)


async def test_iteration_moves_the_position_one_by_one(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b", b"c"])
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        seen: list[ConsumerRecord] = []
        async for record in consumer:
            seen.append(record)
            await consumer.commit()
            assert fake.committed[fake.key("orders")] == (record.offset + 1, "")
            if record.value == b"b":
                break
        assert [record.offset for record in seen] == [0, 1]
        assert await values(consumer) == [b"c"]


async def test_partitions_of_several_brokers_are_read(fake: FakeCluster) -> None:
    fake = FakeCluster(brokers=3)
    fake.create_topic("orders", 5)
    for partition in range(5):
        fake.append("orders", partition, [b"%d" % partition])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign(("orders", partition) for partition in range(5))
        found: set[bytes | None] = set()
        while len(found) < 5:
            found.update(await values(consumer))
        assert {address for name, address, _ in fake.calls if name == "Fetch"} == {
            "broker0:1",
            "broker1:1",
            "broker2:1",
        }


async def test_assigning_again_keeps_what_stays_where_it_was(fake: FakeCluster) -> None:
    fake.create_topic("payments")
    fake.append("orders", 0, [b"a", b"b"])
    fake.append("payments", 0, [b"p"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        await consumer.poll(1)
        consumer.assign([ORDERS, ("payments", 0)])
        assert await consumer.position(ORDERS) == 1
        assert await consumer.position(("payments", 0)) == 0
        consumer.assign([("payments", 0)])
        assert await values(consumer) == [b"p"]
        assert consumer.assignment() == {("payments", 0)}


# -- isolation -----------------------------------------------------------------------------------


async def test_committed_readers_see_no_aborted_record(fake: FakeCluster) -> None:
    """C-001."""
    fake.append_aborted("orders", 0, [b"aborted"])
    fake.append("orders", 0, [b"committed"])
    fake.append_marker("orders", 0, committed=True)
    async with client_of(fake) as client:
        committed = client.consumer(auto_offset_reset="earliest")
        committed.assign([ORDERS])
        assert await values(committed) == [b"committed"]
        assert await committed.position(ORDERS) == 4
        everything = client.consumer(
            auto_offset_reset="earliest", isolation_level="read_uncommitted"
        )
        everything.assign([ORDERS])
        assert await values(everything) == [b"aborted", b"committed"]
        assert await everything.position(ORDERS) == 4


async def test_a_fetch_parked_at_the_last_stable_offset_returns_no_aborted_record(
    fake: FakeCluster,
) -> None:
    """C-002."""
    log = fake.log("orders")
    log.open_from = 0
    fake.append("orders", 0, [b"undecided"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer, 200) == []
        log.hidden.add(0)
        log.open_from = None
        fake.append_marker("orders", 0, committed=False)
        assert await values(consumer) == []
        assert await consumer.position(ORDERS) == 2


async def test_the_end_is_the_last_stable_offset(fake: FakeCluster) -> None:
    """C-004."""
    fake.append("orders", 0, [b"first"])
    fake.append("orders", 0, [b"undecided", b"behind it"])
    fake.log("orders").open_from = 1
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"first"]
        consumer.seek_to_end()
        assert await consumer.position(ORDERS) == 1


# -- positions -----------------------------------------------------------------------------------


async def test_a_seek_does_not_wait_for_the_fetch_that_is_parked(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"])
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest", fetch_max_wait_ms=60_000)
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"a", b"b"]
        assert await values(consumer, 100) == []
        before = now()
        consumer.seek(ORDERS, 1)
        assert await values(consumer, 10_000) == [b"b"]
        consumer.seek_to_beginning(ORDERS)
        assert await values(consumer, 10_000) == [b"a", b"b"]
        assert now() == before


async def test_many_seeks_keep_few_fetches_under_way(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest", fetch_max_wait_ms=60_000)
        consumer.assign([ORDERS])
        await consumer.position(ORDERS)
        for _ in range(20):
            consumer.seek(ORDERS, 0)
            await consumer.poll(timeout_ms=1)
            assert fake.parked <= 5
        fake.append("orders", 0, [b"a"])
        assert await values(consumer) == [b"a"]


async def test_a_position_that_is_not_found_in_time_raises(fake: FakeCluster) -> None:
    fake.down.add("broker0:1")
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([ORDERS])
        with pytest.raises(RequestTimedOutError, match="orders-0"):
            await consumer.position(ORDERS, timeout_ms=1_000)


async def test_a_partition_that_is_not_held_has_no_position(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        with pytest.raises(IllegalStateError, match="orders-0 is not assigned"):
            consumer.seek(ORDERS, 0)
        with pytest.raises(IllegalStateError, match="orders-0 is not assigned"):
            await consumer.position(ORDERS)
        consumer.assign([ORDERS])
        with pytest.raises(InvalidRequestError, match="offset is -1"):
            consumer.seek(ORDERS, -1)


async def test_reading_starts_at_the_committed_offset(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b", b"c"])
    fake.committed[fake.key("orders")] = (2, "")
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.assign([ORDERS])
        assert await values(consumer) == [b"c"]
        consumer.seek_to_committed()
        assert await values(consumer) == [b"c"]
        consumer.seek_to_committed(ORDERS)
        assert await values(consumer) == [b"c"]


# -- bounds --------------------------------------------------------------------------------------


async def test_no_more_is_fetched_ahead_than_the_bound(fake: FakeCluster) -> None:
    for _ in range(100):
        fake.append("orders", 0, [b"x" * 900])
    async with client_of(fake) as client:
        consumer = client.consumer(
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=5_000,
            prefetch_max_bytes=8_000,
        )
        consumer.assign([ORDERS])
        await consumer.poll(1)
        await asyncio.sleep(0)
        fetched = max(r.partitions[0].fetch_offset for r in requests(fake))
        assert fetched <= 10
        seen = 1
        while seen < 100:
            seen += len(await values(consumer))


def requests(fake: FakeCluster) -> list[FetchRequest]:
    found = fake.asked("Fetch")
    return [each for each in found if isinstance(each, FetchRequest)]


# -- misuse --------------------------------------------------------------------------------------


async def test_only_one_task_at_a_time_can_poll(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        consumer = client.consumer()
        consumer.assign([ORDERS])
        waiting = group.create_task(consumer.poll())
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateError, match="another task"):
            await consumer.poll()
        assert await waiting == {}


async def test_a_wakeup_ends_the_poll_that_waits_or_the_next(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        consumer = client.consumer()
        consumer.assign([ORDERS])
        waiting = group.create_task(consumer.poll(timeout_ms=60_000))
        await consumer.position(ORDERS)
        consumer.wakeup()
        assert await waiting == {}
        consumer.wakeup()
        assert await consumer.poll(timeout_ms=60_000) == {}
        assert now() < 1


async def test_a_cancelled_poll_has_moved_nothing(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([ORDERS])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await consumer.poll(timeout_ms=10_000)
        fake.append("orders", 0, [b"a"])
        assert await values(consumer) == [b"a"]


async def test_a_closed_consumer_does_nothing_more(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        async with client.consumer() as consumer:
            consumer.assign([ORDERS])
            await consumer.poll()
        for call in (consumer.poll, lambda: consumer.position(ORDERS), consumer.__aenter__):
            with pytest.raises(ClosedError):
                await call()
        with pytest.raises(ClosedError):
            consumer.assign([ORDERS])
        await consumer.close()


async def test_a_poll_that_waits_hears_of_the_closing(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([ORDERS])

        async def close() -> None:
            await consumer.position(ORDERS)
            await consumer.close()

        waiting, _ = await asyncio.gather(
            consumer.poll(timeout_ms=60_000), close(), return_exceptions=True
        )
        assert isinstance(waiting, ClosedError)


async def test_without_a_group_id_there_is_no_group(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        with pytest.raises(InvalidGroupIdError):
            consumer.subscribe(["orders"])
        with pytest.raises(InvalidGroupIdError):
            consumer.group_metadata()
        with pytest.raises(InvalidGroupIdError):
            await consumer.commit()
        with pytest.raises(InvalidGroupIdError):
            await consumer.committed([ORDERS])


async def test_options_that_cannot_work_are_refused(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        with pytest.raises(InvalidConfigError, match="fetch_min_bytes is 0, less than 1"):
            client.consumer(fetch_min_bytes=0)
        with pytest.raises(InvalidConfigError, match="fetch_max_bytes is 5"):
            client.consumer(fetch_max_bytes=5)
        client.consumer(fetch_max_wait_ms=0)
