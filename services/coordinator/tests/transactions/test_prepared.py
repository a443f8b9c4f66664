"""Prepared transactions: the promise, the clients that may complete, limits, and answers."""

import pytest
from transactions_harness import A0, A1, B0, GROUP, TIMEOUT_MS, TransactionsHarness, after
from transactions_situations import ongoing, prepared

from semel_common.errors import (
    ConcurrentTransactionsError,
    InvalidTxnStateError,
    ProducerFencedError,
    SemelError,
    ThrottlingQuotaExceededError,
)
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    InquiryOutcome,
    KnownOutcome,
    ListFilter,
    OutcomeAnswer,
    TransactionKey,
    TransactionLimits,
    TransactionName,
    TransactionState,
)
from semel_coordinator.transactions.machine.inquiry import NEVER_TIMES_OUT_MS

HOUR_MS = 3_600_000


# -- what is promised ---------------------------------------------------------------------------


def decided_of(harness: TransactionsHarness, key: TransactionKey) -> DecidedTransaction:
    (found,) = (marker for marker in harness.machine.markers.pending() if marker.key == key)
    return found


def outcome_of(harness: TransactionsHarness, key: TransactionKey) -> OutcomeAnswer:
    name = TransactionName(
        transactional_id="app", producer_id=key.producer_id, producer_epoch=key.producer_epoch
    )
    return harness.run(harness.machine.get_transaction_outcome(name, now_ms=harness.now_ms))


def test_a_prepared_transaction_never_times_out() -> None:
    """C-095: only ongoing ones do."""
    harness = TransactionsHarness()
    key = prepared(harness)
    for _ in range(3):
        assert harness.tick(after_ms=1_000 * HOUR_MS) == ()
        (answer,) = harness.inquire((key, A0))
        assert answer.outcome is InquiryOutcome.ONGOING
        assert answer.time_left_ms == NEVER_TIMES_OUT_MS
        assert not harness.records
        harness.restart()
    assert harness.states() == [TransactionState.PREPARED, TransactionState.EMPTY]


def test_an_inquiry_of_a_stranger_changes_nothing_of_what_was_prepared() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    assert harness.inquire((key, B0))[0].outcome is InquiryOutcome.ONGOING
    harness.complete_prepared(key)
    assert harness.inquire((key, B0))[0].outcome is InquiryOutcome.ABORTED


def test_exactly_the_named_participants_commit() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0, A1)
    harness.prepare(key, [A0, GROUP])
    harness.complete_prepared(key)
    decided = decided_of(harness, key)
    assert list(decided.committing) == [A0, GROUP]
    assert list(decided.aborting) == [A1]
    assert decided.traceparent == "of completion"


def test_an_abort_tells_all_that_were_named_or_registered() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0, A1)
    harness.prepare(key, [A0, GROUP])
    harness.init(instance="two")
    decided = decided_of(harness, key)
    assert decided.state is TransactionState.PREPARE_ABORT
    assert list(decided.aborting) == [A0, GROUP, A1]
    assert decided.traceparent == "of prepare"


def test_one_without_participants_is_complete_at_once() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.prepare(key)
    harness.complete_prepared(key)
    assert harness.machine.markers.pending() == []
    assert harness.machine.markers.is_complete(key)
    assert harness.states() == [TransactionState.EMPTY]


def test_the_next_transaction_is_left_alone_by_a_completion() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    harness.add(after(key), A0, A1)
    harness.complete_prepared(key)
    assert harness.states() == [TransactionState.PREPARE_COMMIT, TransactionState.ONGOING]
    harness.commit(after(key))
    assert list(decided_of(harness, after(key)).committing) == [A0, A1]


def test_a_successor_that_keeps_what_is_prepared_is_told_all_of_it() -> None:
    harness = TransactionsHarness()
    first = prepared(harness)
    harness.now_ms += 5
    second = harness.prepare(after(first), [A1])
    second = after(second, -1)
    key = harness.init(instance="two", keep_prepared=True)
    third = after(harness.prepare(key, [B0]), -1)
    assert [each.key for each in harness.run(harness.machine.prepared_before(key))] == [
        first,
        second,
    ]
    again = harness.init(instance="two", keep_prepared=True)
    assert again == key
    harness.complete_prepared(first, commit=False)
    assert [each.key for each in harness.run(harness.machine.prepared_before(key))] == [second]
    successor = harness.init(instance="three", keep_prepared=True)
    (kept, latest) = harness.run(harness.machine.prepared_before(successor))
    assert (kept.key, latest.key) == (second, third)
    assert kept.prepared_ms == harness.now_ms
    assert kept.start_ms == harness.now_ms


def test_a_call_of_the_same_instance_aborts_what_it_prepared_unless_it_asks_to_keep_it() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    harness.init(number=2, keep_prepared=True)
    assert harness.inquire((key, A0))[0].outcome is InquiryOutcome.ONGOING
    harness.init(number=3)
    assert harness.inquire((key, A0))[0].outcome is InquiryOutcome.ABORTED
    assert decided_of(harness, key).reason == "CLIENT"


def test_any_epoch_of_the_instance_in_charge_may_complete() -> None:
    """Its transactions may have gone on while the request was on its way."""
    harness = TransactionsHarness()
    key = prepared(harness)
    current = harness.init(instance="two", keep_prepared=True)
    harness.commit(harness.commit(current, [A0]), [A0])
    with pytest.raises(ProducerFencedError, match="fenced by a newer"):
        harness.complete_prepared(key, current.producer_epoch - 1)
    with pytest.raises(ProducerFencedError, match="never given out"):
        harness.complete_prepared(key, current.producer_epoch + 3)
    harness.complete_prepared(key, current.producer_epoch)


def test_the_reason_of_an_older_abort_is_not_told_of_the_last_epoch() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    harness.add(after(key), A0)
    harness.tick(after_ms=TIMEOUT_MS)
    harness.complete_prepared(key, commit=False)
    with pytest.raises(SemelError) as caught:
        harness.commit(after(key))
    assert caught.value.details["reason"] == "TIMED_OUT"


def test_a_decision_that_comes_late_waits_for_its_own_markers() -> None:
    """Decided after a later one: what is incomplete is still told by epochs, the oldest first."""
    harness = TransactionsHarness()
    key = prepared(harness)
    harness.commit(after(key), [A0])
    harness.complete_prepared(key)
    assert not harness.machine.markers.is_complete_below(key.producer_id, 1)
    assert harness.states() == [
        *(TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_COMMIT),
        TransactionState.EMPTY,
    ]
    harness.complete(key)
    assert harness.machine.markers.is_complete_below(key.producer_id, 1)
    assert not harness.machine.markers.is_complete_below(key.producer_id, 2)


def test_an_outcome_that_is_older_than_the_kept_ones_can_still_be_decided() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    current = after(key)
    for _ in range(300):
        current = harness.commit(current)
    harness.complete_prepared(key, current.producer_epoch)
    assert decided_of(harness, key).state is TransactionState.PREPARE_COMMIT
    producer = harness.machine._state.producers[key.producer_id]
    assert producer.outcomes < 1 << 256


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("epochs", [1, 257, 300])
def test_a_repeated_completion_is_recognised_however_much_has_ended_since(
    epochs: int, *, commit: bool
) -> None:
    """Before its markers are written, and after."""
    harness = TransactionsHarness()
    key = prepared(harness)
    current = after(key)
    for _ in range(epochs):
        current = harness.commit(current, [])
    harness.complete_prepared(key, current.producer_epoch, commit=commit)
    for _ in range(300):
        current = harness.commit(current, [])
    outcome = "COMMITTED" if commit else "ABORTED"
    for is_complete in (False, True):
        for _ in range(2):
            harness.complete_prepared(key, current.producer_epoch, commit=commit)
            assert not harness.records
            with pytest.raises(InvalidTxnStateError) as refused:
                harness.complete_prepared(key, current.producer_epoch, commit=not commit)
            assert refused.value.details == {"outcome": outcome}
            answer = outcome_of(harness, key)
            assert (answer.outcome, answer.is_complete) == (outcome, is_complete)
            harness.restart()
        harness.complete(key)


def test_the_last_64_completions_are_kept() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(incomplete_transactions_max=70))
    current = harness.init()
    keys = []
    for _ in range(70):
        keys.append(current)
        current = harness.prepare(current, [A0])
        harness.complete_prepared(keys[-1], commit=len(keys) % 2 == 0)
    for _ in range(300):
        current = harness.commit(current, [])
    known = [KnownOutcome.ABORTED, KnownOutcome.COMMITTED]
    expected = [KnownOutcome.TOO_OLD_TO_KNOW] * 6 + known * 32
    assert [outcome_of(harness, key).outcome for key in keys] == expected
    with pytest.raises(InvalidTxnStateError, match="too old to know"):
        harness.complete_prepared(keys[5], commit=True)


# -- limits -------------------------------------------------------------------------------------


def test_no_more_than_so_many_are_prepared_for_one_id() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(prepared_transactions_max=2))
    key = harness.init()
    current = harness.prepare(harness.prepare(key))
    with pytest.raises(ThrottlingQuotaExceededError, match="2 transactions are prepared"):
        harness.prepare(current)
    harness.complete_prepared(key)
    harness.prepare(current)


def test_nothing_is_prepared_while_too_many_of_an_id_wait_for_their_markers() -> None:
    """Preparing and completing is no way around the bound of commits."""
    harness = TransactionsHarness(limits=TransactionLimits(incomplete_transactions_max=2))
    first = harness.init()
    second = harness.prepare(first, [A0])
    third = harness.prepare(second, [A0])
    harness.complete_prepared(first)
    fourth = harness.prepare(third, [A0])
    harness.complete_prepared(second)
    harness.complete_prepared(third)
    with pytest.raises(ConcurrentTransactionsError, match="3 transactions wait"):
        harness.prepare(fourth, [A0])
    harness.add(fourth, A0)
    with pytest.raises(ConcurrentTransactionsError):
        harness.prepare(fourth)
    harness.complete(first, second)
    fifth = harness.prepare(fourth)
    harness.complete_prepared(fourth)
    assert harness.prepare(fifth) == after(fifth), "it has no participants, so no markers"


def test_what_there_is_no_room_for_cannot_be_prepared() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(all_participants_max=2))
    key = harness.init()
    harness.add(key, A0)
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.prepare(key, [A0, A1, B0])
    harness.prepare(key, [A0, A1])
    assert harness.machine._state.participant_count == 2
    harness.complete_prepared(key)
    assert harness.machine._state.participant_count == 2


# -- questions ----------------------------------------------------------------------------------


def test_a_list_names_each_prepared_transaction_and_the_current_one() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    harness.prepare(after(key))
    harness.add(after(key, 2), A0)
    harness.init("idle")

    def listed(*states: TransactionState) -> list[tuple[int, str]]:
        found = harness.listed(ListFilter(states=frozenset(states)))
        assert all(each.transactional_id == "app" for each in found)
        return [(each.producer_epoch, each.state.value) for each in found]

    assert listed(TransactionState.PREPARED) == [(0, "Prepared"), (1, "Prepared")]
    assert listed(TransactionState.ONGOING) == [(2, "Ongoing")]
    assert listed(TransactionState.PREPARED, TransactionState.ONGOING) == [
        *((0, "Prepared"), (1, "Prepared"), (2, "Ongoing")),
    ]


def test_a_description_says_since_when_it_is_prepared() -> None:
    harness = TransactionsHarness()
    key = ongoing(harness)
    harness.now_ms += 7
    harness.prepare(key, [A0, B0])
    (described,) = harness.run(harness.machine.queries.describe_transactions(["app"]))
    transaction, current = described.transactions
    assert transaction.state is TransactionState.PREPARED
    assert transaction.prepared_ms == transaction.start_ms + 7 == harness.now_ms
    assert list(transaction.participants) == [A0, B0]
    assert current.prepared_ms == 0


def test_replay_asserts_that_only_an_open_transaction_is_prepared() -> None:
    harness = TransactionsHarness()
    key = prepared(harness)
    record = harness.machine._state.prepared[key]
    with pytest.raises(AssertionError, match="from Prepared to Prepared"):
        harness.machine.replay(99, record)
    harness.complete_prepared(key)
    with pytest.raises(AssertionError, match="from PrepareCommit to Prepared"):
        harness.machine.replay(99, record)
