"""InquireTransactions: nothing hangs and nothing tears. Single answers are in test_table.py."""

import pytest
from transactions_harness import A0, A1, B0, GROUP, TIMEOUT_MS, TransactionsHarness, after

from semel_common.ids import producer_id_of
from semel_coordinator.transactions.machine import (
    InquiryOutcome,
    TransactionKey,
    TransactionLimits,
    TransactionState,
)


def test_a_participant_that_asks_about_an_undecided_transaction_is_registered() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.now_ms += 5
    first, second = harness.inquire((key, A0), (key, GROUP))
    assert (first.outcome, first.time_left_ms) == (InquiryOutcome.ONGOING, TIMEOUT_MS)
    assert first == second
    assert len(harness.records) == 1
    assert harness.states() == [TransactionState.ONGOING]
    harness.now_ms += 1_000
    (again,) = harness.inquire((key, A0))
    assert again.time_left_ms == TIMEOUT_MS - 1_000
    harness.abort(key)
    assert set(harness.machine.markers.pending()[0].aborting) == {A0, GROUP}


def test_a_late_transaction_is_aborted_before_the_answer() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.now_ms += TIMEOUT_MS
    answers = harness.inquire((key, A1), (key, A0))
    assert [answer.outcome for answer in answers] == [InquiryOutcome.ABORTED] * 2
    (decided,) = harness.machine.markers.pending()
    assert (set(decided.aborting), decided.reason) == ({A0, A1}, "TIMED_OUT")
    assert harness.states() == [TransactionState.PREPARE_ABORT, TransactionState.EMPTY]


def test_answers_carry_the_coordinator_epoch_of_the_partition() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    harness.restart()
    harness.run(harness.machine.claim())
    (answer,) = harness.inquire((key, A0))
    assert (answer.outcome, answer.coordinator_epoch) == (InquiryOutcome.COMMITTED, 2)


def test_a_registered_participant_that_was_not_named_hears_of_an_abort() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0, A1)
    harness.commit(key, [A0])
    assert [each.outcome for each in harness.inquire((key, A0), (key, A1), (key, B0))] == [
        InquiryOutcome.COMMITTED,
        InquiryOutcome.ABORTED,
        InquiryOutcome.ABORTED,
    ]


def test_one_request_may_ask_about_many_producers() -> None:
    harness = TransactionsHarness()
    first, second = harness.init("first"), harness.init("second")
    harness.commit(first, [A0], transactional_id="first")
    answers = harness.inquire((first, A0), (after(first), A0), (second, A0), (after(second, 5), A0))
    assert [answer.outcome for answer in answers] == [
        InquiryOutcome.COMMITTED,
        InquiryOutcome.ONGOING,
        InquiryOutcome.ONGOING,
        InquiryOutcome.NEVER_GIVEN,
    ]
    assert answers[3].current_epoch == 0
    assert len(harness.records) == 2


def test_what_another_instance_owns_is_asked_again() -> None:
    harness = TransactionsHarness(coordinators=2)
    not_owned = TransactionKey(producer_id_of(1, 1), 0)
    (answer,) = harness.inquire((not_owned, A0))
    assert answer.outcome is InquiryOutcome.LATER
    assert answer.error is not None
    assert answer.error.code.name == "NOT_COORDINATOR"
    assert not harness.verified


def test_never_given_is_answered_only_behind_a_commit() -> None:
    """A deposed owner may not know yet which epochs its successor has given out."""
    harness = TransactionsHarness()
    key = harness.init()
    (answer,) = harness.inquire((after(key), A0))
    assert answer.outcome is InquiryOutcome.NEVER_GIVEN
    assert harness.verified


@pytest.mark.parametrize(
    "producer_id",
    [
        pytest.param(producer_id_of(0, 1_000), id="above the highest"),
        pytest.param(3 << 48, id="below the lowest"),
        pytest.param(producer_id_of(5_000, 1), id="of no partition"),
        pytest.param(5_000 << 48, id="of no partition, below the lowest"),
    ],
)
def test_an_invented_producer_id_blocks_no_producer(producer_id: int) -> None:
    harness = TransactionsHarness()
    harness.run(harness.machine.give_producer_id())
    key = harness.init()
    harness.commit(key, [A0])
    invented, other = harness.inquire((TransactionKey(producer_id, 7), A0), (key, A0))
    assert (invented.outcome, invented.current_epoch) == (InquiryOutcome.NEVER_GIVEN, -1)
    assert harness.verified
    assert other.outcome is InquiryOutcome.COMMITTED


def test_an_idempotent_producer_has_no_transactions() -> None:
    harness = TransactionsHarness()
    key = harness.run(harness.machine.give_producer_id())
    (answer,) = harness.inquire((key, A0))
    assert answer.outcome is InquiryOutcome.ABORTED
    assert harness.verified


def test_past_a_limit_the_participant_asks_again() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(transactions_max=1, participants_max=1))
    key, other = harness.init(), harness.init("other")
    (answer,) = harness.inquire((key, A0))
    assert answer.outcome is InquiryOutcome.ONGOING
    assert [each.outcome for each in harness.inquire((key, A1), (other, A0))] == [
        InquiryOutcome.LATER,
        InquiryOutcome.LATER,
    ]
    assert not harness.records


def test_a_forgotten_transaction_is_aborted_for_who_never_acknowledged_it() -> None:
    """A participant that acknowledged has nothing open, so an asking one never committed."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    harness.complete(key)
    (answer,) = harness.inquire((key, B0))
    assert answer.outcome is InquiryOutcome.ABORTED
    assert harness.verified


def test_a_clock_that_went_back_gives_no_more_time_than_the_time_out() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.now_ms -= 5_000
    (answer,) = harness.inquire((key, A0))
    assert answer.time_left_ms == TIMEOUT_MS
