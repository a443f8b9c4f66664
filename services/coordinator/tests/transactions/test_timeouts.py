"""Ticks: a transaction that is open for too long is aborted, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transactions_harness import A0, A1, B0, GROUP, TIMEOUT_MS, TransactionsHarness, after

from semel_common.ids import Participant
from semel_coordinator.transactions.machine import (
    InquiryOutcome,
    TransactionKey,
    TransactionLimits,
    TransactionState,
)


def test_a_transaction_is_aborted_when_its_time_is_over() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    assert harness.tick(after_ms=TIMEOUT_MS - 1) == ()
    assert harness.records == []
    assert harness.tick(after_ms=1) == (("app", key),)
    (decided,) = harness.machine.markers.pending()
    assert (decided.state, decided.reason) == (TransactionState.PREPARE_ABORT, "TIMED_OUT")


def test_time_counts_from_the_first_participant() -> None:
    """Not from the begin, and not from the last activity."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.tick(after_ms=10 * TIMEOUT_MS)
    harness.add(key, A0)
    harness.tick(after_ms=TIMEOUT_MS - 1)
    harness.add(key, B0)
    assert harness.tick(after_ms=1) == (("app", key),)


def test_only_what_is_ongoing_times_out() -> None:
    """C-092, C-095."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.commit(key)
    harness.abort(after(key), [A0])
    assert harness.tick(after_ms=10 * TIMEOUT_MS) == ()


def test_a_newer_transaction_of_the_producer_is_not_hit() -> None:
    """C-091: the tick decides on the state and epoch of its own step."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.now_ms += TIMEOUT_MS - 1
    harness.commit(key)
    harness.add(after(key), A0)
    assert harness.tick(after_ms=1) == ()
    assert harness.states()[-1] is TransactionState.ONGOING


def test_a_client_goes_on_after_its_transaction_has_timed_out() -> None:
    """C-094, C-155: a time-out is never reported as fencing."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.tick(after_ms=TIMEOUT_MS)
    assert harness.abort(key, [A0]) == after(key)
    assert harness.commit(after(key), [A0]) == after(key, 2)


def test_one_tick_aborts_a_bounded_number() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(step_transactions_max=2))
    for number in range(5):
        key = harness.init(f"id-{number}")
        harness.add(key, A0, transactional_id=f"id-{number}")
    assert [len(harness.tick(after_ms=TIMEOUT_MS)) for _ in range(4)] == [2, 2, 1, 0]


def test_one_tick_aborts_for_a_bounded_number_of_participants() -> None:
    """Except one transaction that has more by itself."""
    harness = TransactionsHarness(
        limits=TransactionLimits(participants_max=4, step_participants_max=3)
    )
    written: list[list[Participant]] = [[A0], [A0, B0], [A0], [A0, A1, B0, GROUP], [A0]]
    for number, participants in enumerate(written):
        name = f"id-{number}"
        harness.add(harness.init(name), *participants, transactional_id=name)
    assert [len(harness.tick(after_ms=TIMEOUT_MS)) for _ in range(5)] == [2, 1, 1, 1, 0]


@pytest.mark.parametrize("back_ms", [TIMEOUT_MS, 10 * TIMEOUT_MS])
def test_a_clock_that_went_far_back_lets_no_transaction_wait_for_it(back_ms: int) -> None:
    """The age is not known then, and a definite abort does no harm."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    assert harness.tick(after_ms=1 - TIMEOUT_MS) == ()
    assert harness.tick(after_ms=TIMEOUT_MS - 1 - back_ms) == (("app", key),)


def test_an_inquiry_after_the_clock_went_far_back_is_answered_for_good() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.now_ms -= TIMEOUT_MS
    (answer,) = harness.inquire((key, A0))
    assert answer.outcome is InquiryOutcome.ABORTED


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "commit", "abort", "init", "tick"]),
            st.integers(0, 3 * TIMEOUT_MS // 2),
            st.integers(0, TIMEOUT_MS // 2),
        ),
        max_size=30,
    )
)
def test_a_sweep_with_an_old_clock_never_aborts_what_began_after_it(
    steps: list[tuple[str, int, int]],
) -> None:
    """Kafka's race: a sweep that has looked at its clock, or at the state, some time ago."""
    harness = TransactionsHarness()
    key = harness.init()
    began_ms: dict[TransactionKey, int] = {}
    number = 1
    for step, passes_ms, late_ms in steps:
        harness.now_ms += passes_ms
        if step == "add":
            harness.add(key, A0)
            began_ms.setdefault(key, harness.now_ms)
        elif step == "init":
            number += 1
            key = harness.init(number=number)
        elif step == "tick":
            looked_ms = harness.now_ms - late_ms
            for _, late in harness.run(harness.machine.tick(looked_ms)):
                assert late == key
                assert looked_ms - began_ms[late] >= TIMEOUT_MS
                key = after(key)
        else:
            key = harness.commit(key) if step == "commit" else harness.abort(key)
