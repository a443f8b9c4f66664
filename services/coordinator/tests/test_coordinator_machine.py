"""The coordinator's machine: several machines, one journal."""

import pytest
from controller_harness import CLUSTER_ID, LAYOUT

from semel.coordinator.journal.v1.journal_pb2 import JournalRecord
from semel_coordinator.controller.machine import ControllerLimits
from semel_coordinator.coordinator_machine import CoordinatorMachine, CoordinatorRecord
from semel_coordinator.record_serde import CoordinatorSerde
from semel_coordinator.transactions.machine import CoordinatorEpoch, TransactionLimits
from semel_runtime.cluster.metadata_image import ClusterImage, Instance, Listener, ServiceRole
from semel_runtime.machine import UnknownRecordError

IMAGE = ClusterImage(
    cluster_id=CLUSTER_ID,
    version=7,
    layout=LAYOUT,
    instances=(
        Instance(
            role=ServiceRole.BROKER,
            instance_id=0,
            listeners=(Listener(name="default", host="h", port=1),),
        ),
    ),
    topics=(),
)


def machine(instance_id: int = 0) -> CoordinatorMachine:
    return CoordinatorMachine(
        instance_id=instance_id,
        controller_limits=ControllerLimits(),
        transaction_limits=TransactionLimits(),
    )


def replay(onto: CoordinatorMachine, *records: CoordinatorRecord) -> None:
    for offset, record in enumerate(records):
        onto.replay(offset, record)


def test_the_controller_s_copy_shows_its_decisions() -> None:
    controller = machine()
    assert controller.show_changes() == 0
    replay(controller, *controller.controller.create_cluster(CLUSTER_ID, LAYOUT).records)
    assert controller.show_changes() == 1
    assert controller.cluster.image is controller.controller.image()
    assert controller.show_changes() == 1


def test_the_controller_s_copy_is_not_written_into_its_snapshot() -> None:
    controller = machine()
    replay(controller, *controller.controller.create_cluster(CLUSTER_ID, LAYOUT).records)
    controller.show_changes()
    assert list(controller.snapshot()) == list(controller.controller.snapshot())


def test_a_snapshot_of_any_other_has_its_copy_and_its_transactions() -> None:
    other = machine(1)
    epoch = CoordinatorEpoch(partition=1, coordinator_epoch=4)
    replay(other, IMAGE, epoch)
    assert other.show_changes() == 7
    assert list(other.snapshot()) == [(0, IMAGE), (1, epoch)]
    restarted = machine(1)
    for offset, record in other.snapshot():
        restarted.replay(offset, record)
    assert restarted.cluster.image == IMAGE
    assert restarted.transactions.markers.serving()[1] == 4


def test_every_machine_s_records_come_back_from_the_disk_as_they_were() -> None:
    serde = CoordinatorSerde()
    (cluster,) = machine().controller.create_cluster(CLUSTER_ID, LAYOUT).records
    for record in (cluster, IMAGE, CoordinatorEpoch(partition=1, coordinator_epoch=4)):
        assert serde.decode(serde.encode(record)) == record


def test_a_record_of_an_unknown_kind_is_not_taken_for_another() -> None:
    with pytest.raises(UnknownRecordError, match="None is no record of the controller's"):
        CoordinatorSerde().decode(JournalRecord().SerializeToString())
