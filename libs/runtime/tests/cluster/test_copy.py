"""The copy of the metadata that every instance keeps."""

import pytest
from cluster_harness import LAYOUT, image
from msgspec.structs import replace

from semel_common.errors import (
    BrokerNotAvailableError,
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidProducerIdMappingError,
    StaleClaimEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import InternalTopic, TopicPartition, producer_id_of
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    InternalPartition,
    PartitionLeader,
    ServiceRole,
)
from semel_runtime.cluster.metadata_serde import (
    ImageReader,
    image_from_wire,
    image_to_journal,
)
from semel_runtime.testing.controller import metadata


def copy_of(*images: ClusterImage) -> ClusterCopy:
    """Take images one after the other, as the runner would."""
    copy = ClusterCopy()
    for offset, each in enumerate(images):
        for record in copy.update(each).records:
            copy.replay(offset, record)
    return copy


def test_a_newer_image_replaces_the_copy_and_a_repeated_one_does_not() -> None:
    copy = copy_of(image(2, topics=1), image(5, topics=3))
    assert not copy.update(image(5, topics=3)).records
    assert copy.image == image(5, topics=3)
    assert copy.topic_by_name("topic-2").topic_id == "id-2"


@pytest.mark.parametrize(("version", "topics"), [(4, 3), (4, 2), (5, 2)])
def test_what_a_controller_says_that_has_forgotten_something_is_refused(
    version: int, topics: int
) -> None:
    copy = copy_of(image(5, topics=3))
    with pytest.raises(
        StaleClaimEpochError,
        match=rf"version {version} and {topics} topics, but version 5 with 3 topics .*restored",
    ):
        copy.update(image(version, topics=topics))


def test_the_image_of_another_cluster_is_refused() -> None:
    with pytest.raises(InconsistentClusterIdError, match="cluster-a, not to cluster-b"):
        copy_of(image(1)).update(image(9, cluster_id="cluster-b"))


def test_before_the_first_image_nothing_is_known() -> None:
    copy = ClusterCopy()
    assert (copy.image, copy.cluster_id, list(copy.snapshot())) == (None, "", [])
    with pytest.raises(CoordinatorNotAvailableError, match="not heard from the controller"):
        copy.coordinator_for("id")


def test_a_snapshot_gives_the_same_copy() -> None:
    copy = copy_of(image(1), image(2, topics=2))
    restored = ClusterCopy()
    for offset, record in copy.snapshot():
        restored.replay(offset, record)
    assert restored.image == copy.image
    assert list(restored.snapshot()) == list(copy.snapshot())


def test_a_producer_id_that_no_coordinator_gives_out_is_refused() -> None:
    copy = copy_of(image(1))
    copy.check_producer_id(producer_id_of(49, 1))
    with pytest.raises(InvalidProducerIdMappingError, match="transaction-log partition 50 of 50"):
        copy.check_producer_id(producer_id_of(50, 1))


def test_partitions_are_found_with_their_leaders() -> None:
    copy = copy_of(image(1))
    assert copy.leader_of(TopicPartition("id-0", 1)) == PartitionLeader(0, 3)
    with pytest.raises(UnknownTopicOrPartitionError, match="has 2 partitions, no partition 2"):
        copy.leader_of(TopicPartition("id-0", 2))
    with pytest.raises(UnknownTopicIdError, match="'id-9'"):
        copy.leader_of(TopicPartition("id-9", 0))
    with pytest.raises(UnknownTopicOrPartitionError, match="'topic-9'"):
        copy.topic_by_name("topic-9")


def test_instances_are_found_by_listener() -> None:
    copy = copy_of(image(1))
    assert copy.address(ServiceRole.BROKER, 0, "default") == "127.0.0.1:2"
    with pytest.raises(BrokerNotAvailableError, match="broker 7 has not registered"):
        copy.address(ServiceRole.BROKER, 7, "default")
    with pytest.raises(CoordinatorNotAvailableError, match="a listener 'client'"):
        copy.address(ServiceRole.COORDINATOR, 0, "client")


def test_the_instance_in_charge_follows_from_an_id_alone() -> None:
    copy = copy_of(image(1))
    assert copy.coordinator_of(producer_id_of(7, 1)) == 1
    assert copy.coordinator_for("some-id") in range(LAYOUT.coordinators)
    assert copy.group_coordinator_for("some-group") in range(LAYOUT.group_coordinators)


def moved(topic: str, partition: int, leader: PartitionLeader) -> InternalPartition:
    return InternalPartition(topic=topic, partition=partition, leader=leader)


MOVED = (
    moved(InternalTopic.CONSUMER_OFFSETS, 4, PartitionLeader(7, 2)),
    moved(InternalTopic.CONSUMER_OFFSETS, 5, PartitionLeader(0, 0, moving_to=0)),
    moved(InternalTopic.TRANSACTION_STATE, 7, PartitionLeader(9, 1)),
)


def test_partitions_that_were_moved_are_led_as_the_image_says() -> None:
    copy = copy_of(replace(image(1), internal_partitions=MOVED))
    assert copy.group_leader(4) == PartitionLeader(7, 2)
    assert copy.group_leader(5) == PartitionLeader(0, 0, moving_to=0)
    assert copy.group_leader(6) == PartitionLeader(6 % LAYOUT.group_coordinators, 0)
    in_4 = next(f"g{n}" for n in range(999) if copy.group_partition_of(f"g{n}") == 4)
    assert copy.group_coordinator_for(in_4) == 7
    assert copy.coordinator_of(producer_id_of(7, 1)) == 9
    assert copy.coordinator_of(producer_id_of(8, 1)) == 8 % LAYOUT.coordinators


def test_an_image_of_the_same_version_must_not_forget_moves_but_may_add_them() -> None:
    with_moves = replace(image(2), internal_partitions=MOVED)
    assert copy_of(image(2), with_moves).image == with_moves
    with pytest.raises(StaleClaimEpochError):
        copy_of(with_moves).update(image(2))


def test_an_image_survives_the_wire_and_the_journal() -> None:
    original = replace(image(3, topics=2), internal_partitions=MOVED)
    assert image_from_wire(metadata(original)) == original
    assert ImageReader().from_journal(image_to_journal(original)) == original


def test_a_topic_that_is_as_it_was_is_the_same_object() -> None:
    reader = ImageReader()
    first = reader.from_wire(metadata(image(1, topics=2)))
    one, two = first.topics
    more = replace(two, partitions=(*two.partitions, PartitionLeader(0, 0)))
    second = reader.from_wire(metadata(replace(first, version=2, topics=(one, more))))
    assert second.topics == (one, more)
    assert second.topics[0] is one
    assert reader.from_wire(metadata(first)) == first


def test_a_topic_is_read_from_the_journal_once() -> None:
    reader = ImageReader()
    first = reader.from_journal(image_to_journal(image(1, topics=2)))
    second = reader.from_journal(image_to_journal(replace(first, version=2)))
    assert second == replace(first, version=2)
    assert all(one is other for one, other in zip(first.topics, second.topics, strict=True))
