"""Registrations: which instances may come, and at whose address."""

import pytest
from controller_harness import (
    BROKER,
    CLUSTER_ID,
    COORDINATOR,
    GROUP_COORDINATOR,
    LAYOUT,
    ControllerHarness,
    history_of,
    listener,
)

from semel_common.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
    StaleClaimEpochError,
)
from semel_coordinator.controller.machine import InstanceKey
from semel_coordinator.controller.machine.records import InstanceRecord
from semel_runtime.cluster.metadata_image import ServiceRole


@pytest.fixture
def controller() -> ControllerHarness:
    return ControllerHarness()


def test_a_new_instance_gets_cluster_id_and_layout(controller: ControllerHarness) -> None:
    cluster = controller.register(BROKER, 3)
    assert (cluster.cluster_id, cluster.layout) == (CLUSTER_ID, LAYOUT)
    (record,) = controller.records
    assert isinstance(record, InstanceRecord)
    assert (record.version, record.claim_epoch, record.claim_token) == (2, 1, "a")
    assert controller.instance(BROKER, 3).listeners == (listener(2003),)


def test_an_instance_of_another_cluster_is_refused(controller: ControllerHarness) -> None:
    with pytest.raises(InconsistentClusterIdError, match="broker 0 belongs to cluster other") as e:
        controller.register(BROKER, 0, cluster_id="other")
    assert e.value.details == {"cluster_id": CLUSTER_ID}


def test_an_instance_of_this_cluster_comes_back(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0)
    controller.register(BROKER, 0, claim_epoch=2, claim_token="b", cluster_id=CLUSTER_ID)
    assert len(controller.records) == 1


@pytest.mark.parametrize("role", [COORDINATOR, GROUP_COORDINATOR, BROKER])
def test_instances_beyond_the_layout_may_register(
    controller: ControllerHarness, role: ServiceRole
) -> None:
    controller.register(role, 9_999)
    for beyond in (10_000, -1):
        with pytest.raises(InvalidRequestError, match=f"there can be no .* {beyond}.* 0 to 9999"):
            controller.register(role, beyond)


# -- claim epochs ------------------------------------------------------------------------------


def test_a_repeat_of_the_same_process_writes_nothing(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0)
    controller.register(BROKER, 0)
    assert controller.records == []


def test_a_restart_at_the_same_address_changes_nothing_that_others_see(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0)
    before = controller.image
    controller.register(BROKER, 0, claim_epoch=2, claim_token="b")
    assert len(controller.records) == 1
    assert controller.image == before


def test_an_older_claim_epoch_is_refused_with_a_sentence_that_says_what_to_do(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, claim_epoch=5)
    with pytest.raises(
        StaleClaimEpochError, match=r"claim epoch 4, but has been here with 5: .*`semel recover`"
    ) as caught:
        controller.register(BROKER, 0, claim_epoch=4, claim_token="b")
    assert caught.value.details == {"claim_epoch": "5"}


def test_a_second_process_with_the_same_claim_epoch_is_refused(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, claim_epoch=5, claim_token="a")
    with pytest.raises(StaleClaimEpochError, match=r"another process .*`semel recover`"):
        controller.register(BROKER, 0, claim_epoch=5, claim_token="b")


def test_claim_epochs_of_different_instances_have_nothing_to_do_with_one_another(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, claim_epoch=5)
    controller.register(BROKER, 1, claim_epoch=1)
    controller.register(GROUP_COORDINATOR, 0, claim_epoch=1)
    assert len(controller.image.instances) == 3


# -- how far journals go -----------------------------------------------------------------------


def test_a_longer_journal_is_noted_and_changes_nothing_that_others_see(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, end=5)
    image = controller.machine.image()
    controller.register(BROKER, 0, end=9)
    assert [record.mark.end_offset for record in controller.records] == [9]  # type: ignore[union-attr]  # an instance's
    assert controller.machine.image() is image
    controller.register(BROKER, 0, end=9)
    assert controller.records == []


def test_a_copy_without_the_last_commits_is_refused_although_its_claim_is_new(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, claim_epoch=3, claim_token="a", end=40)
    copied = history_of((3, "a", 10), (4, "b", 35))
    with pytest.raises(StaleClaimEpochError, match="ends at offset 35, not at 40") as caught:
        controller.register(BROKER, 0, claim_epoch=4, claim_token="b", history=copied, end=35)
    assert caught.value.details == {"claim_epoch": "3"}
    whole = history_of((3, "a", 10), (4, "b", 41))
    controller.register(BROKER, 0, claim_epoch=4, claim_token="b", history=whole, end=41)


def test_a_copy_is_refused_however_often_it_was_started_and_whatever_it_has_written(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, claim_epoch=3, claim_token="a", end=40)
    copied = history_of((2, "x", 5), (3, "copy", 9), (4, "copy", 70), (5, "copy", 90))
    with pytest.raises(StaleClaimEpochError, match="another process had claim epoch 3"):
        controller.register(BROKER, 0, claim_epoch=5, claim_token="copy", history=copied, end=90)


def test_a_recovered_journal_is_let_in(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0, claim_epoch=3, claim_token="a", end=40)
    recovered = history_of((1000, "recovery", 20), (1001, "b", 20), recovered_epoch=1000)
    controller.register(BROKER, 0, claim_epoch=1001, claim_token="b", history=recovered, end=20)


# -- addresses ---------------------------------------------------------------------------------


def test_a_process_may_change_its_address(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0)
    controller.register(BROKER, 0, listeners=[listener(77)])
    assert controller.image.version == 3
    assert controller.instance(BROKER, 0).listeners == (listener(77),)


def test_an_address_that_was_left_is_free(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0, listeners=[listener(77)])
    controller.register(BROKER, 0, listeners=[listener(78)])
    controller.live = {InstanceKey(BROKER, 0)}
    controller.register(BROKER, 1, listeners=[listener(77)])
    assert controller.instance(BROKER, 0).listeners == (listener(78),)
    assert controller.instance(BROKER, 1).listeners == (listener(77),)


def test_the_address_of_a_living_instance_is_its_own(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0, listeners=[listener(77)])
    controller.live = {InstanceKey(BROKER, 0)}
    with pytest.raises(
        CoordinatorNotAvailableError, match=r"broker 1 says that it is at 127.0.0.1:77, where"
    ):
        controller.register(BROKER, 1, listeners=[listener(77)])


def test_the_address_of_a_silent_instance_can_be_given_to_another(
    controller: ControllerHarness,
) -> None:
    inside, outside = listener(77, name="inside"), listener(88, name="outside")
    controller.register(BROKER, 0, listeners=[inside, outside])
    controller.register(BROKER, 1, listeners=[listener(77), listener(99, name="x")])
    assert controller.instance(BROKER, 0).listeners == (outside,)
    assert controller.instance(BROKER, 1).listeners == (listener(77), listener(99, name="x"))
    assert [record.version for record in controller.records] == [3, 4]


def test_addresses_of_several_silent_instances_can_be_given_to_another(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, listeners=[listener(77)])
    controller.register(BROKER, 1, listeners=[listener(78)])
    controller.register(BROKER, 2, listeners=[listener(77, name="x"), listener(78, name="y")])
    assert controller.instance(BROKER, 0).listeners == ()
    assert controller.instance(BROKER, 1).listeners == ()
    assert controller.image.version == 6


def test_an_instance_that_lost_its_address_gets_a_new_one_by_registering(
    controller: ControllerHarness,
) -> None:
    controller.register(BROKER, 0, listeners=[listener(77)])
    controller.register(BROKER, 1, listeners=[listener(77)])
    controller.register(BROKER, 0, listeners=[listener(78)])
    assert controller.instance(BROKER, 0).listeners == (listener(78),)


def test_instances_of_different_roles_may_share_an_address(controller: ControllerHarness) -> None:
    controller.register(BROKER, 0, listeners=[listener(77)])
    controller.live = {InstanceKey(BROKER, 0)}
    controller.register(COORDINATOR, 0, listeners=[listener(77)])
    assert controller.instance(BROKER, 0).listeners == (listener(77),)
    assert controller.instance(COORDINATOR, 0).listeners == (listener(77),)
