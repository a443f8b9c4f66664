"""Reading many partitions: what is quiet costs nothing while others get records."""

import pytest
from consumer_harness import client_of
from fake_cluster import FakeCluster

from aiosemel import Consumer
from semel.broker.v1.broker_pb2 import FetchRequest

PARTITIONS = 100


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("wide", partitions=PARTITIONS)
    return fake


async def read(consumer: Consumer) -> list[bytes | None]:
    polled = await consumer.poll(timeout_ms=100)
    return [record.value for records in polled.values() for record in records]


def asked_for(fake: FakeCluster) -> int:
    """Count the partitions that all fetches named."""
    fetches = [question for question in fake.asked("Fetch") if isinstance(question, FetchRequest)]
    return sum(len(fetch.partitions) for fetch in fetches)


@pytest.mark.parametrize("busy", [1, 3, 8])
async def test_quiet_partitions_are_not_asked_for_with_each_record_of_others(
    fake: FakeCluster, busy: int
) -> None:
    records = 80
    async with client_of(fake) as client:
        consumer = client.consumer(auto_offset_reset="earliest")
        consumer.assign([("wide", number) for number in range(PARTITIONS)])
        assert await read(consumer) == []
        before = asked_for(fake)
        for number in range(records):
            value = b"%d" % number
            fake.append("wide", number % busy, [value])
            assert await read(consumer) == [value]
        # All again for the first record of each; then the busy ones, and some of them twice.
        assert asked_for(fake) - before <= busy * PARTITIONS + 2 * busy * records
