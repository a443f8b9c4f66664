"""The cluster itself: made once, one version for each change, one image for each version."""

import pytest
from controller_harness import BROKER, CLUSTER_ID, COORDINATOR, LAYOUT, ControllerHarness
from msgspec.structs import replace

from semel_common.errors import InvalidConfigError
from semel_coordinator.controller.machine import ControllerLimits, ControllerMachine, InstanceKey
from semel_coordinator.controller.machine.records import ClusterRecord


@pytest.fixture
def controller() -> ControllerHarness:
    return ControllerHarness()


def test_a_new_journal_has_no_cluster() -> None:
    machine = ControllerMachine(ControllerLimits())
    assert not machine.has_cluster
    assert list(machine.snapshot()) == []


def test_the_first_start_makes_the_cluster(controller: ControllerHarness) -> None:
    assert controller.machine.has_cluster
    assert controller.records == [ClusterRecord(version=1, cluster_id=CLUSTER_ID, layout=LAYOUT)]
    assert controller.image.cluster_id == CLUSTER_ID
    assert controller.image.layout == LAYOUT
    assert controller.image.version == 1


def test_a_later_start_keeps_the_cluster_and_its_id(controller: ControllerHarness) -> None:
    cluster = controller.run(controller.machine.create_cluster("another id", LAYOUT))
    assert cluster.cluster_id == CLUSTER_ID
    assert controller.records == []


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("transaction_log_partitions", "transaction_state_log_num_partitions"),
        ("coordinators", "coordinators"),
        ("group_partitions", "offsets_topic_num_partitions"),
        ("group_coordinators", "group_coordinators"),
    ],
)
def test_another_layout_is_refused_in_the_words_of_the_settings(
    controller: ControllerHarness, field: str, option: str
) -> None:
    other = replace(LAYOUT, **{field: 7})
    with pytest.raises(InvalidConfigError, match=f"^{option} is 7, but .* set it to") as caught:
        controller.machine.create_cluster(CLUSTER_ID, other)
    assert caught.value.details["option"] == option


def test_each_change_raises_the_version_by_one(controller: ControllerHarness) -> None:
    versions = [controller.image.version]
    controller.register(BROKER, 0)
    versions.append(controller.image.version)
    controller.create("orders")
    versions.append(controller.image.version)
    controller.delete("orders")
    versions.append(controller.image.version)
    assert versions == [1, 2, 3, 4]


def test_the_image_is_made_once_for_each_change(controller: ControllerHarness) -> None:
    before = controller.image
    assert controller.image is before
    controller.register(BROKER, 0)
    assert controller.image is not before


def test_the_image_lists_instances_by_role_and_topics_by_name(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 1)
    controller.register(BROKER, 0)
    controller.register(COORDINATOR, 0)
    controller.create("b")
    controller.create("a")
    keys = [(instance.role, instance.instance_id) for instance in controller.image.instances]
    assert keys == [(COORDINATOR, 0), (BROKER, 0), (BROKER, 1)]
    assert [topic.name for topic in controller.image.topics] == ["a", "b"]


def test_claim_epochs_can_be_asked_for(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0, claim_epoch=5)
    assert controller.machine.claim_epoch_of(InstanceKey(BROKER, 0)) == 5
    assert controller.machine.claim_epoch_of(InstanceKey(BROKER, 1)) == 0


def test_a_snapshot_gives_no_version_twice(controller: ControllerHarness) -> None:
    """The last change deleted a topic, so no entity carries its version any more."""
    controller.brokers(1)
    controller.create("orders")
    controller.delete("orders")
    restarted = ControllerMachine(ControllerLimits())
    for offset, record in controller.machine.snapshot():
        restarted.replay(offset, record)
    assert restarted.image() == controller.image
