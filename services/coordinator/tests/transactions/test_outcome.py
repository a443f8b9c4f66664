"""GetTransactionOutcome: the last 256 outcomes of an id are known, and nothing is ever guessed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transactions_harness import A0, TIMEOUT_MS, TransactionsHarness, after

from semel_common.errors import (
    InvalidProducerIdMappingError,
    NotCoordinatorError,
    TransactionalIdNotFoundError,
)
from semel_common.ids import partition_for_id, producer_id_of
from semel_coordinator.transactions.machine import (
    AbortReason,
    KnownOutcome,
    OutcomeAnswer,
    TransactionName,
)
from semel_coordinator.transactions.machine.state.entities import OUTCOMES_KEPT, Producer


def ask(
    harness: TransactionsHarness,
    epoch: int,
    *,
    transactional_id: str | None = "app",
    producer_id: int | None = None,
) -> OutcomeAnswer:
    name = TransactionName(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch
    )
    return harness.run(harness.machine.get_transaction_outcome(name, now_ms=harness.now_ms))


def test_a_committed_transaction_is_committed_before_and_after_its_markers() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key, [A0])
    answer = ask(harness, 0)
    assert (answer.outcome, answer.is_complete) == (KnownOutcome.COMMITTED, False)
    assert (answer.transactional_id, answer.producer_id) == ("app", key.producer_id)
    assert (answer.current_epoch, answer.reason) == (1, None)
    harness.complete(key)
    assert ask(harness, 0).is_complete


def test_every_reason_of_an_abort_is_told_however_many_come_after() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.abort(key, [A0])
    harness.add(after(key), A0)
    harness.tick(after_ms=TIMEOUT_MS)
    assert harness.init(instance="two") == after(key, 3)
    for epoch in range(3, 10):
        harness.commit(after(key, epoch))
    reasons = [ask(harness, epoch).reason for epoch in range(4)]
    assert reasons == [AbortReason.CLIENT, AbortReason.TIMED_OUT, AbortReason.FENCED, None]
    assert {ask(harness, epoch).outcome for epoch in range(3)} == {KnownOutcome.ABORTED}


def test_the_current_transaction_is_ongoing_with_the_time_that_it_has_left() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    assert ask(harness, 0).time_left_ms == TIMEOUT_MS
    harness.add(key, A0)
    harness.now_ms += TIMEOUT_MS - 1
    answer = ask(harness, 0)
    assert (answer.outcome, answer.time_left_ms) == (KnownOutcome.ONGOING, 1)
    harness.now_ms += 10
    assert ask(harness, 0).time_left_ms == 0


def test_an_answer_without_an_outcome_goes_through_a_commit() -> None:
    """A deposed owner may know less than there is."""
    harness = TransactionsHarness()
    key = harness.init()
    for epoch in (0, 1):
        ask(harness, epoch)
        assert harness.verified
    harness.commit(key)
    ask(harness, 0)
    assert not harness.verified


def test_an_epoch_without_an_owner_was_never_given() -> None:
    harness = TransactionsHarness()
    harness.init()
    answer = ask(harness, 1)
    assert (answer.outcome, answer.current_epoch) == (KnownOutcome.NEVER_GIVEN, 0)


def test_the_last_256_outcomes_are_known_and_older_ones_are_not_guessed() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    for epoch in range(OUTCOMES_KEPT + 1):
        end = harness.commit if epoch % 3 == 0 else harness.abort
        end(after(key, epoch))
    assert ask(harness, 0).outcome is KnownOutcome.TOO_OLD_TO_KNOW
    for epoch in range(1, OUTCOMES_KEPT + 1):
        expected = KnownOutcome.ABORTED if epoch % 3 else KnownOutcome.COMMITTED
        assert ask(harness, epoch).outcome is expected


def test_outcomes_are_kept_through_restarts_and_snapshots() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    for epoch in range(300):
        end = harness.commit if epoch % 2 else harness.abort
        end(after(key, epoch))
    before = [ask(harness, epoch) for epoch in range(301)]
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    harness.machine = restored
    assert [ask(harness, epoch) for epoch in range(301)] == before
    harness.restart()
    assert [ask(harness, epoch) for epoch in range(301)] == before


def test_a_producer_that_only_commits_keeps_no_reasons() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    for epoch in range(300):
        harness.commit(after(key, epoch))
    assert len(harness.journal[-1]) < 100
    harness.abort(after(key, 300))
    assert len(harness.journal[-1]) < 100


@settings(max_examples=50)
@given(st.lists(st.none() | st.sampled_from(AbortReason), max_size=OUTCOMES_KEPT + 20))
def test_bitmaps_say_what_a_list_would_say(decisions: list[AbortReason | None]) -> None:
    producer = Producer(producer_id=1, transactional_id="app", producer_epoch=0, last_update_ms=0)
    for number, reason in enumerate(decisions):
        producer = producer.decided(reason, number)
    forgotten = max(0, len(decisions) - OUTCOMES_KEPT)
    for epoch in range(forgotten):
        assert producer.outcome_of(epoch) is None
        assert producer.reason_of(epoch) is None
    for epoch in range(forgotten, len(decisions)):
        assert producer.reason_of(epoch) == decisions[epoch]
        assert (producer.outcome_of(epoch) == "COMMITTED") == (decisions[epoch] is None)
    assert producer.outcome_of(len(decisions)) is None
    assert producer.outcomes.bit_length() <= OUTCOMES_KEPT
    assert producer.abort_reasons.bit_length() <= 4 * OUTCOMES_KEPT


def test_a_record_of_before_reasons_were_kept_still_knows_the_last_one() -> None:
    producer = Producer(
        producer_id=1,
        transactional_id="app",
        producer_epoch=2,
        outcomes=0,
        outcomes_known=2,
        abort_reason=AbortReason.FENCED,
        last_update_ms=0,
    )
    assert (producer.reason_of(1), producer.reason_of(0)) == (AbortReason.FENCED, None)


def test_a_producer_id_alone_is_enough() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.commit(key)
    answer = ask(harness, 0, transactional_id=None, producer_id=key.producer_id)
    assert (answer.outcome, answer.transactional_id) == (KnownOutcome.COMMITTED, "app")


def test_a_producer_id_that_is_not_known_any_more_is_too_old_and_an_invented_one_never_given() -> (
    None
):
    """An idempotent producer's id was given, and has no transactions."""
    harness = TransactionsHarness()
    given_id = harness.run(harness.machine.give_producer_id()).producer_id
    answer = ask(harness, 0, transactional_id=None, producer_id=given_id)
    assert answer == OutcomeAnswer(outcome=KnownOutcome.TOO_OLD_TO_KNOW, producer_id=given_id)
    answer = ask(harness, 0, transactional_id=None, producer_id=given_id + 1)
    assert answer.outcome is KnownOutcome.NEVER_GIVEN


def test_names_that_do_not_belong_together_are_refused() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    with pytest.raises(TransactionalIdNotFoundError, match="'other'"):
        ask(harness, 0, transactional_id="other")
    elsewhere = producer_id_of((partition_for_id("app", 10) + 1) % 10, 1)
    with pytest.raises(InvalidProducerIdMappingError, match="none of 'app'"):
        ask(harness, 0, producer_id=elsewhere)
    same_partition = next(
        name
        for name in (f"app-{n}" for n in range(1_000))
        if partition_for_id(name, 10) == partition_for_id("app", 10)
    )
    with pytest.raises(InvalidProducerIdMappingError, match="none of"):
        ask(harness, 0, transactional_id=same_partition, producer_id=key.producer_id)
    assert ask(harness, 0, producer_id=key.producer_id).outcome is KnownOutcome.ONGOING


def test_another_coordinators_transactions_are_not_answered() -> None:
    harness = TransactionsHarness(instance_id=0, coordinators=2)
    with pytest.raises(NotCoordinatorError):
        ask(harness, 0, transactional_id=None, producer_id=producer_id_of(1, 1))
    theirs = next(name for name in ("a", "b", "c", "d") if partition_for_id(name, 10) % 2)
    with pytest.raises(NotCoordinatorError):
        ask(harness, 0, transactional_id=theirs)


def test_a_prepared_transaction_is_neither_committed_nor_aborted_until_it_is_completed() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.prepare(key, [A0])
    harness.commit(after(key), [A0])
    answer = ask(harness, 0)
    assert (answer.outcome, answer.reason) == (KnownOutcome.PREPARED, None)
    assert harness.verified
    harness.complete_prepared(key, commit=False)
    answer = ask(harness, 0)
    assert (answer.outcome, answer.reason) == (KnownOutcome.ABORTED, AbortReason.OPERATOR)
    assert ask(harness, 1).outcome is KnownOutcome.COMMITTED
