"""An older copy of the controller's volume takes over what another instance keeps."""

import pytest
from controller_harness import BROKER, ControllerHarness, history_of, replayed

from semel_common.errors import StaleClaimEpochError
from semel_coordinator.controller.machine import ControllerMachine, InstanceKey, Reassignment
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result


def newest() -> ControllerHarness:
    """A controller that has gone on after the copy was made."""
    controller = older()
    controller.delete("deleted-since")
    controller.create("new", 2)
    controller.create("deleted-since", 1)
    controller.register(BROKER, 2)
    moved = Reassignment(topic="new", partition=0, broker_id=2)
    controller.run(controller.machine.alter_partition_reassignments([moved]))
    controller.run(controller.machine.decommission_instance(InstanceKey(BROKER, 1)))
    return controller


def older() -> ControllerHarness:
    controller = ControllerHarness()
    controller.brokers(2)
    controller.create("kept", 1)
    controller.create("deleted-since", 1)
    return controller


def take_over(
    controller: ControllerHarness, image: ClusterImage, claim_epoch: int = 7
) -> ClusterImage:
    mark = JournalMark(claim_epoch=claim_epoch, claim_token="of the volume", end_offset=30)
    records = controller.machine.taken_over(image, {InstanceKey(BROKER, 0): mark})
    controller.run(Result(None, records))
    return controller.image


def test_the_metadata_are_those_of_the_image_under_the_next_version() -> None:
    image = newest().image
    assert image.topics[-1].partitions[0].moving_to == 2
    controller = older()
    assert controller.machine.is_behind(image)
    taken = take_over(controller, image)
    assert taken.topics == image.topics
    assert taken.instances == image.instances
    assert taken.version == image.version + 1
    copy = ClusterCopy()
    copy.replay(0, image)
    assert copy.update(taken).response


def test_an_empty_volume_becomes_that_of_the_cluster() -> None:
    image = newest().image
    empty = ControllerMachine(ControllerHarness().limits)
    for offset, record in enumerate(empty.taken_over(image, {})):
        empty.replay(offset, record)
    assert empty.has_cluster
    assert empty.image().cluster_id == image.cluster_id
    assert empty.image().layout == image.layout
    assert empty.image().topics == image.topics


def test_what_is_newer_here_stays() -> None:
    controller = newest()
    before = controller.image
    assert not controller.machine.is_behind(older().image)
    assert take_over(controller, older().image) == before


def test_an_image_of_the_same_version_that_says_something_else_is_newer() -> None:
    controller, other = older(), ControllerHarness()
    other.brokers(2)
    other.create("kept", 1)
    other.create("made-since", 1)
    assert other.image.version == controller.image.version
    assert controller.machine.is_behind(other.image)
    assert not controller.machine.is_behind(controller.image)


def test_marks_of_journals_are_those_of_the_volumes() -> None:
    controller = older()
    take_over(controller, newest().image, claim_epoch=7)
    assert controller.machine.claim_epoch_of(InstanceKey(BROKER, 0)) == 7
    assert controller.machine.claim_epoch_of(InstanceKey(BROKER, 1)) == 1
    assert controller.machine.claim_epoch_of(InstanceKey(BROKER, 2)) == 0
    history = history_of((6, "a", 0), (7, "of the volume", 20), (8, "b", 29))
    with pytest.raises(StaleClaimEpochError, match="ends at offset 29, not at 30"):
        controller.register(BROKER, 0, claim_epoch=8, claim_token="b", history=history, end=29)


def test_the_same_state_is_read_back() -> None:
    controller = older()
    image = take_over(controller, newest().image)
    assert replayed(enumerate(controller.journal)).image() == image
    assert replayed(controller.machine.snapshot()).image() == image
