"""Gauges for operators: counts, ages, and late transactions."""

from transactions_harness import A0, B0, TIMEOUT_MS, TransactionsHarness

from semel_coordinator.transactions.machine import TransactionState
from semel_coordinator.transactions.machine.gauges import Standing


def standing(harness: TransactionsHarness) -> Standing:
    return harness.machine.queries.standing(now_ms=harness.now_ms)


def test_nothing_is_there_at_first() -> None:
    empty = standing(TransactionsHarness())
    assert set(empty.counts.values()) == {0}
    assert (empty.oldest_ms, empty.late, empty.transactional_ids) == ({}, 0, 0)


def test_each_state_is_counted_with_its_oldest() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    began_ms = harness.now_ms
    harness.now_ms += 10
    key = harness.prepare(key, [A0])
    harness.now_ms += 10
    harness.add(key, B0)
    other = harness.init("other")
    harness.add(other, B0, transactional_id="other")
    second_ms = harness.now_ms
    now = standing(harness)
    assert now.counts[TransactionState.PREPARED] == 1
    assert now.counts[TransactionState.ONGOING] == 2
    assert now.oldest_ms[TransactionState.PREPARED] == began_ms + 10
    assert now.oldest_ms[TransactionState.ONGOING] == second_ms
    harness.abort(other, transactional_id="other")
    after = standing(harness)
    assert after.counts[TransactionState.PREPARE_ABORT] == 1
    assert after.counts[TransactionState.ONGOING] == 1
    assert after.transactional_ids == 2


def test_late_is_what_should_have_been_aborted() -> None:
    harness = TransactionsHarness()
    harness.add(harness.init(), A0)
    harness.now_ms += TIMEOUT_MS - 1
    assert standing(harness).late == 0
    harness.now_ms += 1
    assert standing(harness).late == 1
    harness.tick()
    assert standing(harness).late == 0
