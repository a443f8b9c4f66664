"""The transactions of inquiries, and the effect of the answers (protocol.md, section 6)."""

import pytest
from group_harness import ABORT, COMMIT, GROUP, PRODUCER_ID, GroupHarness, orders

from semel_common.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError
from semel_common.ids import GroupId
from semel_group.machine.records import TransactionEnded
from semel_runtime.participant.inquiry import InquiryOutcome, OpenTransactionAt

COMMITTED, ABORTED, NEVER_GIVEN = InquiryOutcome


@pytest.fixture
def group() -> GroupHarness:
    return GroupHarness()


# -- when ----------------------------------------------------------------------------------------


def test_an_open_transaction_is_asked_about_after_the_interval(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.now_ms += 9_999
    assert group.to_inquire() == []
    group.now_ms += 1
    assert group.to_inquire() == [0]
    group.marker(COMMIT)
    assert group.to_inquire() == []


def test_its_age_counts_from_its_first_offsets(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.now_ms += 9_999
    group.txn_commit({0: 9}, sequence=1)
    group.now_ms += 1
    assert group.to_inquire() == [0]


def test_a_clock_that_was_put_back_does_not_put_questions_off(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.now_ms -= 1
    assert group.to_inquire() == [0]


def test_a_superseded_transaction_is_asked_about_soon(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.now_ms += 50
    group.txn_commit({0: 9}, epoch=1)
    group.now_ms += 40
    group.txn_commit({0: 10}, epoch=2)
    group.now_ms += 209
    assert group.to_inquire() == []
    group.now_ms += 1
    assert group.to_inquire() == [0]
    group.now_ms += 40
    assert group.to_inquire() == [0, 1]


def test_a_transaction_older_than_the_fence_is_asked_about_at_once(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.marker(ABORT, epoch=1)
    assert group.to_inquire() == [0]


def test_a_transaction_is_asked_about_at_once_when_the_newer_one_has_ended(
    group: GroupHarness,
) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.txn_commit({0: 9}, epoch=1)
    group.marker(COMMIT, epoch=1)
    assert group.to_inquire() == [0]


def test_a_transaction_with_a_waiting_reader_is_asked_about_at_once(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    open_ones = group.fetch(0, stable=True).unstable
    assert group.to_inquire(open_ones) == [0]
    group.marker(COMMIT)
    assert group.to_inquire(open_ones) == []


def test_an_instance_knows_whether_anything_is_open(group: GroupHarness) -> None:
    seen = [group.machine.transactions.has_open_transactions()]
    group.txn_commit({0: 8})
    seen.append(group.machine.transactions.has_open_transactions())
    group.marker(ABORT)
    seen.append(group.machine.transactions.has_open_transactions())
    assert seen == [False, True, False]


# -- what ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "offset"), [(COMMITTED, 8), (ABORTED, 5)])
def test_an_answer_does_what_the_marker_does(
    group: GroupHarness, outcome: InquiryOutcome, offset: int
) -> None:
    group.commit({0: 5})
    group.txn_commit({0: 8})
    assert group.answer(outcome)
    assert group.committed(0) == offset
    with pytest.raises(InvalidProducerEpochError):
        group.txn_commit({0: 9}, epoch=0, sequence=1)


def test_an_answer_that_comes_after_the_marker_does_nothing(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.marker(COMMIT)
    before = len(group.journal)
    assert not group.answer(ABORTED)
    assert group.written(before) == []


def test_the_answer_of_a_deposed_coordinator_does_nothing(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.marker(ABORT, producer_id=PRODUCER_ID + 1, coordinator_epoch=4)
    assert not group.answer(ABORTED, coordinator_epoch=3)
    assert group.to_inquire([OpenTransactionAt(GroupId(GROUP), PRODUCER_ID, 0)]) == [0]


# -- epochs that were never given ----------------------------------------------------------------


def test_an_epoch_that_was_never_given_aborts_and_fences_no_producer(group: GroupHarness) -> None:
    group.txn_commit({0: 99}, epoch=100)
    assert group.answer(NEVER_GIVEN, epoch=100, current_epoch=3)
    assert group.committed(0) == -1
    assert group.fetch(0, stable=True).unstable == frozenset()
    group.txn_commit({0: 8}, epoch=3)
    group.marker(COMMIT, epoch=3)
    assert group.committed(0) == 8


def test_epochs_before_the_current_one_stay_out(group: GroupHarness) -> None:
    group.txn_commit({0: 99}, epoch=100)
    group.answer(NEVER_GIVEN, epoch=100, current_epoch=3)
    with pytest.raises(InvalidProducerEpochError, match="is below the fence 3"):
        group.txn_commit({0: 8}, epoch=2)


def test_the_current_transaction_goes_on_where_it_was(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=3)
    group.txn_commit({0: 99}, epoch=100)
    group.answer(NEVER_GIVEN, epoch=100, current_epoch=3)
    group.txn_commit({0: 8}, epoch=3)
    with pytest.raises(OutOfOrderSequenceNumberError):
        group.txn_commit({0: 10}, epoch=3, sequence=2)
    group.txn_commit({0: 9}, epoch=3, sequence=1)
    group.marker(COMMIT, epoch=3)
    assert group.committed(0) == 9


def test_a_late_answer_lowers_neither_fence_nor_epoch(group: GroupHarness) -> None:
    """The producer went on while the answer was on its way."""
    group.txn_commit({0: 99}, epoch=100)
    group.marker(ABORT, epoch=7)
    group.answer(NEVER_GIVEN, epoch=100, current_epoch=5)
    with pytest.raises(InvalidProducerEpochError, match="is below the fence 8"):
        group.txn_commit({0: 8}, epoch=7)
    group.txn_commit({0: 8}, epoch=8)


def test_an_older_made_up_epoch_leaves_newer_ones_alone(group: GroupHarness) -> None:
    group.txn_commit({0: 98}, epoch=99)
    group.txn_commit({0: 99}, epoch=100)
    group.answer(NEVER_GIVEN, epoch=99, current_epoch=3)
    group.answer(NEVER_GIVEN, epoch=100, current_epoch=3)
    group.txn_commit({0: 8}, epoch=3)


def test_an_epoch_that_was_given_in_between_is_no_made_up_one(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=5)
    assert not group.answer(NEVER_GIVEN, epoch=5, current_epoch=5)
    group.marker(COMMIT, epoch=5)
    assert group.committed(0) == 8


def test_the_record_of_an_answer_is_the_marker_s(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.answer(COMMITTED)
    assert group.journal[-1] == TransactionEnded(
        group_id=GROUP,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        committed=True,
        ended_ms=group.now_ms,
    )
    assert orders(0) <= group.machine.offsets.group(GROUP).committed.keys()


def test_an_invented_producer_id_leaves_nothing_to_its_later_owner(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.txn_commit({0: 9}, epoch=7)
    assert group.answer(NEVER_GIVEN, epoch=7, current_epoch=-1)
    assert group.answer(NEVER_GIVEN, epoch=0, current_epoch=-1)
    group.txn_commit({1: 5}, epoch=0, sequence=0)
    group.marker(COMMIT, epoch=0)
    assert [group.committed(0), group.committed(1)] == [-1, 5]
