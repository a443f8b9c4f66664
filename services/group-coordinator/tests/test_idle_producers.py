"""Producers that a group has not heard of for long are forgotten, and nothing else is."""

import pytest
from group_harness import ABORT, COMMIT, GROUP, PRODUCER_ID, GroupHarness

from semel_common.errors import InvalidProducerEpochError
from semel_common.ids import GroupId
from semel_runtime.participant.inquiry import InquiryOutcome
from semel_runtime.participant.producer_expiry import IdleProducer

DAY_MS = 86_400_000


@pytest.fixture
def group() -> GroupHarness:
    return GroupHarness()


def test_a_producer_is_forgotten_some_time_after_its_last_transaction(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    assert group.forget() == 0, "its transaction is open"
    group.marker(COMMIT, epoch=0)
    assert group.forget(after_ms=DAY_MS - 1) == 0
    assert group.forget(after_ms=1) == 1
    assert group.forget() == 0
    assert group.committed(0) == 8


def test_a_fence_that_only_a_marker_raised_is_forgotten_with_its_group(
    group: GroupHarness,
) -> None:
    group.marker(ABORT, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        group.txn_commit({0: 8}, epoch=3)
    assert group.machine.offsets.known_group_ids() == [GROUP]
    assert group.forget() == 1
    assert group.machine.offsets.known_group_ids() == []


def test_what_is_late_after_that_moves_nothing_once_the_coordinator_has_answered(
    group: GroupHarness,
) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.marker(COMMIT, epoch=0)
    group.commit({0: 9})
    group.forget()
    group.txn_commit({0: 8}, epoch=0)
    assert group.answer(InquiryOutcome.ABORTED, epoch=0)
    assert group.committed(0) == 9


def test_an_epoch_that_was_never_given_is_forgotten_in_its_time(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=7)
    assert group.answer(InquiryOutcome.NEVER_GIVEN, epoch=7, current_epoch=0)
    assert group.forget(after_ms=DAY_MS - 1) == 0
    assert group.forget(after_ms=1) == 1


def test_a_producer_heard_of_between_look_and_act_stays(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.marker(COMMIT, epoch=0)
    group.now_ms += DAY_MS
    machine, participant = group.machine, GroupId(GROUP)
    producer_ids = machine.producers.producer_ids(participant).response
    idle = machine.producers.idle_producers(participant, producer_ids, now_ms=group.now_ms).response
    assert idle == [IdleProducer(participant, PRODUCER_ID, 1)]
    assert not machine.producers.idle_producers(participant, [1], now_ms=group.now_ms).response
    group.txn_commit({0: 9}, epoch=1)
    assert machine.producers.forget_producers(idle, now_ms=group.now_ms).response == 0
    group.marker(COMMIT, epoch=1)
    group.now_ms += DAY_MS
    assert machine.producers.forget_producers(idle, now_ms=group.now_ms).response == 0, (
        "its fence has risen"
    )
