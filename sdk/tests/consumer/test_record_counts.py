"""Counting what a reader has yet to see: call after call, up to where the log ended at first."""

import pytest
from fake_cluster import FakeCluster
from google.protobuf.message import Message

from aiosemel import ClientOptions, IsolationLevel, Lag, SemelClient, TopicPartition
from aiosemel.errors import NotLeaderOrFollowerError, RequestTimedOutError
from semel.broker.v1 import broker_pb2 as broker
from semel_common.wire import status

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
STEP = 10
"""Offsets that a broker looks at in one call."""


class FakeCounts(FakeCluster):
    """Brokers whose logs have a record at every offset, and grow while they are counted."""

    def __init__(self, end_offset: int, *, growth: int) -> None:
        super().__init__(brokers=2)
        self.create_topic("orders", 2)
        self.end_offset = end_offset
        self.growth = growth

    async def deliver(self, address: str, name: str, request: Message) -> Message:
        if not isinstance(request, broker.CountRecordsRequest):
            return await super().deliver(address, name, request)
        self.calls.append((name, address, request))
        assert len(self.calls) < 100, "it never ends"
        response = broker.CountRecordsResponse()
        for partition in request.partitions:
            upto = min(partition.from_offset + STEP, self.end_offset)
            response.partitions.add(
                topic_id=partition.topic_id,
                partition=partition.partition,
                record_count=max(0, upto - partition.from_offset),
                first_timestamp_ms=1_000 + partition.from_offset,
                next_offset=max(upto, partition.from_offset),
                end_offset=self.end_offset,
            )
        self.end_offset += self.growth
        if self.refusals[name]:
            refusal = status.to_value(self.refusals[name].popleft())
            response.partitions[0].error.CopyFrom(refusal)
        return response


def open_client(fake: FakeCluster) -> SemelClient:
    options = ClientOptions(default_api_timeout_ms=2_000)
    return SemelClient("coordinator:1", connector=fake, options=options)


async def test_a_count_ends_where_the_log_ended_at_first() -> None:
    """A log that grows as fast as it is counted is counted, too."""
    fake = FakeCounts(25, growth=STEP)
    async with open_client(fake) as client:
        counts = await client.admin().count_records({P0: 0})
    assert counts[P0] == 30
    assert len(fake.asked("CountRecords")) == 3


async def test_each_partition_is_counted_from_its_own_offset() -> None:
    fake = FakeCounts(25, growth=0)
    async with open_client(fake) as client:
        assert await client.admin().count_records({P0: 3, ("orders", 1): 30}) == {P0: 22, P1: 0}


async def test_a_lag_has_the_time_of_its_first_record() -> None:
    fake = FakeCounts(25, growth=0)
    async with open_client(fake) as client:
        lags = await client.admin().measure_lag({P0: 3, P1: 30})
    assert lags == {P0: Lag(22, 1_003), P1: Lag(0, None)}


@pytest.mark.parametrize(
    ("isolation", "wire"),
    [
        (IsolationLevel.READ_COMMITTED, broker.ISOLATION_LEVEL_READ_COMMITTED),
        (IsolationLevel.READ_UNCOMMITTED, broker.ISOLATION_LEVEL_READ_UNCOMMITTED),
    ],
)
async def test_readers_of_both_kinds_are_counted_for(
    isolation: IsolationLevel, wire: broker.IsolationLevel.ValueType
) -> None:
    fake = FakeCounts(5, growth=0)
    async with open_client(fake) as client:
        await client.admin().count_records({P0: 0}, isolation_level=isolation)
    (asked,) = fake.asked("CountRecords")
    assert isinstance(asked, broker.CountRecordsRequest)
    assert asked.isolation_level == wire


async def test_a_partition_that_has_moved_is_asked_for_again() -> None:
    fake = FakeCounts(5, growth=0)
    fake.refusals["CountRecords"].append(NotLeaderOrFollowerError("moved"))
    async with open_client(fake) as client:
        assert await client.admin().count_records({P0: 0}) == {P0: 5}


async def test_a_count_that_takes_too_long_is_given_up() -> None:
    fake = FakeCounts(5, growth=0)
    fake.refusals["CountRecords"].extend([NotLeaderOrFollowerError("moving")] * 100)
    async with open_client(fake) as client:
        with pytest.raises(RequestTimedOutError):
            await client.admin().count_records({P0: 0})
