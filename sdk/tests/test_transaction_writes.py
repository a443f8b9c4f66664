"""The search for a transaction's writes: call after call, up to its marker or the log's end."""

import pytest
from fake_cluster import FakeCluster
from google.protobuf.message import Message

from aiosemel import ClientOptions, PartitionWrites, SemelClient, TopicPartition
from aiosemel.errors import NotLeaderOrFollowerError, RequestTimedOutError
from semel.broker.v1 import producers_pb2 as producers
from semel_common.wire import status

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
STEP = 10
"""Offsets that a broker looks at in one call."""
END = 35


class FakeWrites(FakeCluster):
    """Brokers with a transaction at each offset from ``first`` on, and its marker behind it."""

    def __init__(self, first: int, marker: int | None) -> None:
        super().__init__(brokers=2)
        self.create_topic("orders", 2)
        self.first = first
        self.marker = marker
        self.requests: list[producers.DescribeWritesRequest] = []

    async def deliver(self, address: str, name: str, request: Message) -> Message:
        if not isinstance(request, producers.DescribeWritesRequest):
            return await super().deliver(address, name, request)
        self.requests.append(request)
        response = producers.DescribeWritesResponse()
        for asked in request.partitions:
            response.partitions.append(self._found(asked))
        if self.refusals[name]:
            refusal = status.to_value(self.refusals[name].popleft())
            response.partitions[0].error.CopyFrom(refusal)
        return response

    def _found(self, asked: producers.DescribeWritesPartition) -> producers.PartitionWrites:
        start = asked.from_offset
        upto = min(start + STEP, END)
        last = END if self.marker is None else self.marker
        mine = [offset for offset in range(start, upto) if self.first <= offset < last]
        has_marker = self.marker is not None and start <= self.marker < upto
        return producers.PartitionWrites(
            topic_id=asked.topic_id,
            partition=asked.partition,
            first_offset=mine[0] if mine else -1,
            last_offset=mine[-1] if mine else -1,
            record_count=len(mine),
            first_timestamp_ms=1_000 + start if mine else -1,
            marker_offset=last if has_marker else -1,
            next_offset=last + 1 if has_marker else upto,
            end_offset=END,
        )


async def found_in(fake: FakeWrites, *partitions: TopicPartition) -> list[PartitionWrites]:
    options = ClientOptions(default_api_timeout_ms=2_000)
    async with SemelClient("coordinator:1", connector=fake, options=options) as client:
        found = await client.admin().operators.describe_writes(
            partitions or (P0,), producer_id=7, producer_epoch=2, from_time_ms=500
        )
    return list(found.values())


async def test_the_answers_of_several_calls_are_one() -> None:
    fake = FakeWrites(first=12, marker=27)
    (found,) = await found_in(fake)
    assert found == PartitionWrites(
        partition=P0,
        first_offset=12,
        last_offset=26,
        record_count=15,
        first_timestamp_ms=1_010,
        marker_offset=27,
    )
    asked = fake.requests
    assert [each.partitions[0].WhichOneof("start") for each in asked] == [
        "from_time_ms",
        "from_offset",
        "from_offset",
    ]
    assert [each.partitions[0].from_offset for each in asked] == [0, 10, 20]
    assert asked[0].partitions[0].from_time_ms == 500
    assert {(each.producer_id, each.producer_epoch) for each in asked} == {(7, 2)}


async def test_without_a_marker_the_search_ends_with_the_log() -> None:
    (found,) = await found_in(FakeWrites(first=30, marker=None))
    assert (found.first_offset, found.last_offset, found.marker_offset) == (30, 34, None)


async def test_a_transaction_that_wrote_nothing_has_no_offsets() -> None:
    first, second = await found_in(FakeWrites(first=END, marker=None), P0, P1)
    assert (first, second) == (PartitionWrites(partition=P0), PartitionWrites(partition=P1))


async def test_a_partition_that_has_moved_is_asked_for_again() -> None:
    fake = FakeWrites(first=2, marker=4)
    fake.refusals["DescribeWrites"].append(NotLeaderOrFollowerError("moved"))
    (found,) = await found_in(fake)
    assert (found.record_count, found.marker_offset) == (2, 4)


async def test_a_search_that_takes_too_long_is_given_up() -> None:
    fake = FakeWrites(first=2, marker=4)
    fake.refusals["DescribeWrites"].extend([NotLeaderOrFollowerError("moving")] * 100)
    with pytest.raises(RequestTimedOutError):
        await found_in(fake)
