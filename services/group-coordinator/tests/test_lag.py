"""Lags come from the leaders; a leader that does not answer hides only its own."""

import asyncio

import pytest
from group_harness import GROUP, GroupHarness, image
from msgspec.structs import replace

from semel.broker.v1 import broker_pb2 as broker
from semel_common.errors import KafkaStorageError, UnknownTopicIdError
from semel_common.ids import TopicPartition
from semel_common.wire.methods import COUNT_RECORDS
from semel_common.wire.status import to_value
from semel_group.loops.consumer_lag import LagOptions, LagWatch, Position
from semel_group.machine.values import Committer
from semel_runtime.cluster.metadata_image import (
    Instance,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.network import MemoryNetwork

OPTIONS = LagOptions(interval_ms=1, request_timeout_ms=1_000, listener="default")
PARTITIONS = tuple(TopicPartition("orders-id", number) for number in range(4))


class ScriptedBroker:
    """Counts as a test says: partition 2 is not there; of 1, it looks at a part only."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        self.handlers.add(COUNT_RECORDS, self._count)
        self.failing = False
        self.asked: list[int] = []

    async def _count(
        self, request: broker.CountRecordsRequest, call: Call
    ) -> broker.CountRecordsResponse:
        del call
        assert request.isolation_level == broker.ISOLATION_LEVEL_READ_COMMITTED
        if self.failing:
            raise KafkaStorageError("journal failed")
        self.asked += [partition.partition for partition in request.partitions]
        response = broker.CountRecordsResponse()
        for partition in request.partitions:
            result = response.partitions.add(record_count=10 - partition.from_offset)
            result.next_offset, result.end_offset = (
                (50, 80) if partition.partition == 1 else (80, 80)
            )
            if partition.partition == 2:
                result.error.CopyFrom(to_value(UnknownTopicIdError("gone")))
        return response


@pytest.fixture
def brokers() -> tuple[ScriptedBroker, ScriptedBroker]:
    return ScriptedBroker(), ScriptedBroker()


@pytest.fixture
def lag(brokers: tuple[ScriptedBroker, ScriptedBroker]) -> LagWatch:
    """Partition 3 is led by broker 1, the others by broker 0; the group stands at 4 everywhere."""
    network, group = MemoryNetwork(), GroupHarness()
    leaders = tuple(PartitionLeader(1 if each == 3 else 0, 0) for each in range(4))
    topic = Topic(topic_id="orders-id", name="orders", partitions=leaders)
    known = image({"orders": 4}, version=2)
    instances = [_broker(number) for number in range(2)]
    group.run(
        group.machine.update_cluster(
            replace(known, topics=(topic,), instances=(*known.instances, *instances))
        )
    )
    for number, each in enumerate(brokers):
        network.serve(f"broker-{number}:1", each.handlers)
    group.commit(dict.fromkeys(range(4), 4))
    return LagWatch(group.machine, network, OPTIONS)


def _broker(number: int) -> Instance:
    listener = Listener(name="default", host=f"broker-{number}", port=1)
    return Instance(role=ServiceRole.BROKER, instance_id=number, listeners=(listener,))


async def test_each_leader_is_asked_for_its_partitions(
    lag: LagWatch, brokers: tuple[ScriptedBroker, ScriptedBroker]
) -> None:
    await lag.look()
    assert [each.asked for each in brokers] == [[0, 1, 2], [3]]
    at = {each.partition.partition: records for each, records in lag.lags.items()}
    assert at == {0: 6, 1: 6 + 30, 3: 6}
    assert Position(GROUP, PARTITIONS[0]) in lag.lags


async def test_who_fails_is_left_out_until_it_answers(
    lag: LagWatch, brokers: tuple[ScriptedBroker, ScriptedBroker]
) -> None:
    await lag.look()
    brokers[0].failing = True
    await lag.look()
    assert [each.partition.partition for each in lag.lags] == [3]
    brokers[0].failing = False
    await lag.look()
    assert len(lag.lags) == 3


async def test_no_caller_waits_while_many_positions_are_gathered() -> None:
    """Even the group whose turn it is can go in between."""
    groups, partitions = 100, 70
    harness = GroupHarness()
    harness.run(harness.machine.update_cluster(image({"orders": partitions}, version=2)))
    for number in range(groups):
        harness.commit(dict.fromkeys(range(partitions), 4), Committer(group_id=f"{number:02}"))
    looking = asyncio.create_task(LagWatch(harness.machine, MemoryNetwork(), OPTIONS).look())
    turns = 0
    await asyncio.sleep(0)
    while not looking.done():
        turns += 1
        harness.run(harness.machine.deletion.delete_groups([f"{1_000 * turns // partitions:02}"]))
        await asyncio.sleep(0)
    await looking
    assert turns >= groups * partitions // 1_000
