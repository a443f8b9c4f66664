"""Routes to partitions of groups and of the transaction log that were moved."""

from dataclasses import replace

from aiosemel._cluster.metadata import COORDINATOR, GROUP_COORDINATOR, merge
from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.ids import InternalTopic, partition_for_id, producer_id_of

LAYOUT = wire.ClusterLayout(
    transaction_log_partitions=50, coordinators=1, group_partitions=50, group_coordinators=1
)


def internal(topic: str, partition: int, leader_id: int) -> wire.InternalPartition:
    return wire.InternalPartition(
        topic=topic,
        partition=wire.Partition(index=partition, leader_id=leader_id, leader_epoch=1),
    )


def response(*moved: wire.InternalPartition, closed: tuple[int, ...] = ()) -> wire.MetadataResponse:
    roles = (COORDINATOR, GROUP_COORDINATOR)
    return wire.MetadataResponse(
        cluster_id="c",
        version=1 + len(moved),
        layout=LAYOUT,
        internal_partitions=moved,
        instances=[
            wire.Instance(
                role=role,
                instance_id=number,
                host=f"{role}-{number}",
                port=1,
                decommissioned=number in closed,
            )
            for role in roles
            for number in (0, 3)
        ],
    )


def test_moved_partitions_are_routed_to_their_leaders_and_others_as_before() -> None:
    before = merge(None, response())
    group, transaction = partition_for_id("g", 50), partition_for_id("t", 50)
    after = merge(
        before,
        response(
            internal(InternalTopic.CONSUMER_OFFSETS, group, 3),
            internal(InternalTopic.TRANSACTION_STATE, transaction, 3),
        ),
    )
    assert before.group_coordinator_address("g") == f"{GROUP_COORDINATOR}-0:1"
    assert after.group_coordinator_address("g") == f"{GROUP_COORDINATOR}-3:1"
    assert after.coordinator_address("t") == f"{COORDINATOR}-3:1"
    of_producer = after.coordinator_address_of_producer
    assert of_producer(producer_id_of(transaction, 1)) == f"{COORDINATOR}-3:1"
    assert of_producer(producer_id_of(transaction + 1, 1)) == f"{COORDINATOR}-0:1"


def test_everyone_includes_instances_beyond_the_layout() -> None:
    known = merge(None, response())
    assert known.instance_ids(GROUP_COORDINATOR) == (0, 3)
    alone = replace(known, addresses={})
    assert alone.instance_ids(COORDINATOR) == (0,)


def test_a_decommissioned_instance_is_asked_as_long_as_it_leads_anything() -> None:
    everything = [internal(InternalTopic.CONSUMER_OFFSETS, each, 3) for each in range(50)]
    emptied = merge(None, response(*everything, closed=(0, 3)))
    assert emptied.instance_ids(GROUP_COORDINATOR) == (3,)
    assert emptied.instance_ids(COORDINATOR) == (0,)
    nearly = merge(None, response(*everything[1:], closed=(0,)))
    assert nearly.instance_ids(GROUP_COORDINATOR) == (0, 3)
