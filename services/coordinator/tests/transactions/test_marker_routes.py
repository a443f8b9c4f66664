"""Routes: the instance of a participant, as long as the metadata says so."""

from msgspec.structs import replace
from transactions_harness import A0, A1, GROUP, cluster_copy, image

from semel_common.ids import TopicPartition
from semel_coordinator.transactions.markers.marker import NOWHERE, Target
from semel_coordinator.transactions.markers.routes import Routes
from semel_runtime.cluster.metadata_image import PartitionLeader, ServiceRole

BROKER_0 = Target(ServiceRole.BROKER, 0)
BROKER_1 = Target(ServiceRole.BROKER, 1)


def test_partitions_belong_to_their_leaders_and_groups_to_their_coordinator() -> None:
    routes = Routes(cluster_copy())
    for _ in range(2):
        assert routes(A0) == BROKER_0
        assert routes(A1) == BROKER_1
        assert routes(GROUP) == Target(ServiceRole.GROUP_COORDINATOR, 0)


def test_what_is_unknown_here_is_nowhere() -> None:
    routes = Routes(cluster_copy())
    assert routes(TopicPartition("topic-x", 0)) == NOWHERE
    assert routes(TopicPartition("topic-a", 2)) == NOWHERE


def test_new_metadata_are_followed() -> None:
    cluster = cluster_copy()
    routes = Routes(cluster)
    assert routes(A0) == BROKER_0
    moved = image(version=2)
    topics = (replace(moved.topics[0], partitions=(PartitionLeader(1, 1),)),)
    cluster.replay(1, replace(moved, topics=topics))
    assert routes(A0) == BROKER_1
    assert routes(A1) == NOWHERE


def test_what_is_remembered_is_bounded() -> None:
    routes = Routes(cluster_copy())
    for number in range(10_500):
        assert routes(TopicPartition("topic-a", number)) is not None
    assert len(routes._found) < 1_000
