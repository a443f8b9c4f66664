"""EndTxn: decisions, their participants, and limits. The retry table is in test_table.py."""

import pytest
from transactions_harness import A0, A1, B0, GROUP, TIMEOUT_MS, TransactionsHarness, after

from semel_common.errors import ConcurrentTransactionsError, InvalidTxnStateError
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    Producer,
    TransactionLimits,
    TransactionState,
)


def test_a_commit_is_one_write_with_participants_and_next_epoch() -> None:
    """C-082."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    assert harness.commit(key, [A0, GROUP]) == after(key)
    decided, producer = harness.records
    assert isinstance(decided, DecidedTransaction)
    assert isinstance(producer, Producer)
    assert (decided.state, decided.traceparent) == (TransactionState.PREPARE_COMMIT, "of end")
    assert (set(decided.committing), set(decided.aborting)) == ({A0, GROUP}, set())
    assert producer.producer_epoch == key.producer_epoch + 1


def test_a_registered_participant_that_is_not_named_aborts() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0, A1, GROUP)
    harness.commit(key, [A1, B0])
    (decided,) = harness.machine.markers.pending()
    assert (set(decided.committing), set(decided.aborting)) == ({A1, B0}, {A0, GROUP})
    assert set(decided.participants) == {A0, A1, B0, GROUP}


def test_naming_no_participant_differs_from_not_naming() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.commit(key, [])
    (decided,) = harness.machine.markers.pending()
    assert (set(decided.committing), set(decided.aborting)) == (set(), {A0})
    harness.add(after(key), A0)
    harness.commit(after(key), None)
    assert set(harness.machine.markers.pending()[1].committing) == {A0}


def test_what_was_never_registered_commits_if_it_is_named() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    (decided,) = harness.machine.markers.pending()
    assert (set(decided.committing), decided.start_ms) == ({A0}, harness.now_ms)


def test_an_abort_goes_to_all_that_are_registered_or_named() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.abort(key, [A0, B0])
    (decided,) = harness.machine.markers.pending()
    assert (list(decided.aborting), decided.reason) == ([A0, B0], "CLIENT")
    harness.abort(after(key), [GROUP])
    assert set(harness.machine.markers.pending()[1].aborting) == {GROUP}


def test_an_empty_transaction_ends_with_an_epoch_and_no_marker() -> None:
    """C-073: so that nothing late of it can ever commit."""
    harness = TransactionsHarness()
    key = harness.init()
    assert harness.commit(key) == after(key, 1)
    assert harness.abort(after(key, 1), []) == after(key, 2)
    assert not harness.machine.markers.pending()
    (answer,) = harness.inquire((key, A0))
    assert answer.outcome == "ABORTED"


def test_a_repeat_of_a_commit_gets_the_same_answer() -> None:
    """C-072, C-079: before and after its markers are written."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    assert harness.commit(key, [A0]) == harness.commit(key, [A0]) == after(key)
    harness.complete(key)
    assert harness.commit(key) == after(key)
    assert not harness.records


def test_a_commit_after_an_abort_is_told_the_outcome() -> None:
    """C-075, C-076."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.abort(key, [A0])
    with pytest.raises(InvalidTxnStateError) as caught:
        harness.commit(key, [A0])
    assert caught.value.details == {"outcome": "ABORTED", "reason": "CLIENT"}


def test_an_abort_after_a_commit_is_told_the_outcome() -> None:
    """C-078."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    with pytest.raises(InvalidTxnStateError) as caught:
        harness.abort(key, [A0])
    assert caught.value.details == {"outcome": "COMMITTED"}


def test_too_many_transactions_without_their_markers_hold_up_commits_only() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(incomplete_transactions_max=3))
    first = key = harness.init()
    for _ in range(3):
        key = harness.commit(key, [A0])
    harness.add(key, A0)
    with pytest.raises(ConcurrentTransactionsError, match="3 transactions wait for their markers"):
        harness.commit(key)
    assert harness.commit(after(key, -1), [A0]) == key
    assert harness.abort(key) == after(key)
    with pytest.raises(ConcurrentTransactionsError):
        harness.commit(after(key), [A0])
    assert harness.commit(after(key)) == after(key, 2)
    harness.complete(first, after(first))
    assert harness.commit(after(key, 2), [A0]) == after(key, 3)


def test_epochs_never_run_out() -> None:
    """C-014, C-042: where Kafka takes a new producer id at 32767."""
    harness = TransactionsHarness()
    key = harness.init()
    producer = harness.machine._state.producers[key.producer_id]
    late = Producer(
        producer_id=key.producer_id,
        transactional_id="app",
        producer_epoch=1 << 40,
        last_update_ms=producer.last_update_ms,
    )
    harness.machine.replay(99, late)
    assert harness.commit(after(key, 1 << 40), [A0]) == after(key, (1 << 40) + 1)


def test_a_clock_that_goes_back_is_tolerated() -> None:
    """C-084."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.now_ms -= TIMEOUT_MS - 1
    harness.add(key, A1)
    assert harness.tick() == ()
    assert harness.commit(key) == after(key)


def test_outcomes_are_known_for_256_epochs_and_never_guessed() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    for number in range(300):
        key = harness.commit(key) if number % 3 else harness.abort(key)
        if number % 50 == 0:
            harness.restart()
    producer = harness.machine._state.producers[key.producer_id]
    known = [producer.outcome_of(epoch) for epoch in range(300)]
    assert known[:44] == [None] * 44
    assert known[44:] == ["COMMITTED" if epoch % 3 else "ABORTED" for epoch in range(44, 300)]
    assert producer.outcome_of(300) is None


@pytest.mark.parametrize("commit", [True, False])
def test_a_decided_transaction_is_as_old_as_its_first_participant(*, commit: bool) -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    began_ms = harness.now_ms
    harness.now_ms += 1_000
    later = harness.commit(key, [A0]) if commit else harness.abort(key, [A0])
    harness.commit(later, [A0])
    first, second = harness.machine.markers.pending()
    assert (first.start_ms, second.start_ms) == (began_ms, began_ms + 1_000)
