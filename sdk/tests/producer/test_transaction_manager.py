"""What answers, failures and ends make of a transaction."""

from collections.abc import Callable

import pytest
from manager_harness import P0, P1, G, manager_in

from aiosemel import TransactionOutcome
from aiosemel._producer.transactions.end_requests import EndTxn
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import Call, State
from aiosemel.errors import (
    ApplicationRecoverableError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTransactionTimeoutError,
    InvalidTxnStateError,
    ProducerFencedError,
    RequestTimedOutError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel_common.ids import GroupId, TopicPartition

# -- init ------------------------------------------------------------------------------------------


def test_a_repeated_init_has_the_same_number() -> None:
    manager = TransactionManager("orders")
    assert (manager.init_transactions(), manager.init_transactions()) == (1, 1)


def test_init_twice_is_illegal_c013() -> None:
    with pytest.raises(IllegalStateError, match="READY"):
        manager_in(State.READY).init_transactions()


def test_an_init_that_failed_ends_the_producer() -> None:
    manager = manager_in(State.INITIALIZING)
    manager.init_failed(InvalidTransactionTimeoutError("too long"))
    with pytest.raises(ApplicationRecoverableError, match="too long") as refused:
        manager.init_transactions()
    assert isinstance(refused.value.__cause__, InvalidTransactionTimeoutError)


# -- participants ----------------------------------------------------------------------------------


def test_a_participant_is_registered_once_in_each_transaction() -> None:
    manager = manager_in(State.READY)
    manager.begin_transaction()
    assert [manager.sent(P0), manager.sent(P0), manager.sent(P1)] == [True, False, True]
    manager.abort()
    manager.ended(7, 4)
    manager.begin_transaction()
    assert manager.sent(P0)


def test_a_commit_names_the_acknowledging_participants() -> None:
    manager = manager_in(State.IN_TRANSACTION)
    for participant in (P1, G):
        manager.sent(participant)
        manager.acknowledged(participant)
    manager.commit()
    assert manager.end_commit() == EndTxn(
        producer_id=7, producer_epoch=3, commit=True, participants=(P0, P1, G)
    )


@pytest.mark.parametrize(("late", "name"), [(P1, "t-1"), (G, "g")])
def test_a_send_without_acknowledgement_makes_the_transaction_abortable(
    late: TopicPartition | GroupId, name: str
) -> None:
    manager = manager_in(State.IN_TRANSACTION)
    manager.sent(late)
    manager.commit()
    with pytest.raises(TransactionAbortedError, match=f"not acknowledged: {name}"):
        manager.end_commit()
    assert manager.state is State.ABORTABLE_ERROR
    assert not manager.end_sent


def test_a_second_send_needs_another_acknowledgement() -> None:
    manager = manager_in(State.IN_TRANSACTION)
    manager.sent(P0)
    manager.commit()
    with pytest.raises(TransactionAbortedError):
        manager.end_commit()


def test_an_abort_names_all_that_were_sent_to() -> None:
    manager = manager_in(State.IN_TRANSACTION)
    manager.sent(P1)
    end = manager.abort()
    assert end is not None
    assert (end.commit, end.participants) == (False, (P0, P1))


@pytest.mark.parametrize("state", [State.READY, State.ABORTABLE_ERROR])
def test_nothing_is_sent_but_in_an_open_transaction(state: State) -> None:
    with pytest.raises(AssertionError):
        manager_in(state).sent(P1)


def test_nothing_is_sent_after_the_end() -> None:
    manager = manager_in(State.COMMITTING_TRANSACTION)
    manager.end_commit()
    with pytest.raises(AssertionError, match="after"):
        manager.sent(P1)


def test_offset_commits_are_counted_for_each_group_and_transaction() -> None:
    manager = manager_in(State.IN_TRANSACTION)
    assert [manager.send_offsets(g) for g in ("g", "g", "h")] == [0, 1, 0]
    manager.abort()
    manager.ended(7, 4)
    manager.begin_transaction()
    assert manager.send_offsets("g") == 0


# -- ends without a request ------------------------------------------------------------------------


def test_a_commit_of_nothing_is_local_and_keeps_the_epoch() -> None:
    manager = manager_in(State.READY)
    manager.begin_transaction()
    manager.commit()
    assert manager.end_commit() is None
    assert (manager.state, manager.producer_epoch) == (State.READY, 3)
    assert manager.outcome is TransactionOutcome.COMMITTED


def test_an_abort_of_nothing_is_local_c191() -> None:
    manager = manager_in(State.READY)
    manager.begin_transaction()
    assert manager.abort() is None
    assert (manager.state, manager.producer_epoch) == (State.READY, 3)
    assert manager.outcome is TransactionOutcome.ABORTED


# -- answers of EndTxn -----------------------------------------------------------------------------


def committing() -> TransactionManager:
    manager = manager_in(State.COMMITTING_TRANSACTION)
    assert manager.end_commit() is not None
    assert manager.outcome is TransactionOutcome.UNKNOWN
    return manager


def test_the_answer_brings_the_next_epoch_c203() -> None:
    manager = committing()
    manager.ended(7, 4)
    assert (manager.state, manager.producer_id, manager.producer_epoch) == (State.READY, 7, 4)
    assert manager.outcome is TransactionOutcome.COMMITTED
    assert not manager.end_sent


def test_an_abort_is_definite_before_it_is_answered() -> None:
    manager = manager_in(State.ABORTING_TRANSACTION)
    assert manager.outcome is TransactionOutcome.ABORTED
    manager.ended(7, 4)
    assert (manager.state, manager.producer_epoch) == (State.READY, 4)
    assert manager.outcome is TransactionOutcome.ABORTED


def test_a_repeated_abort_sends_the_same_request() -> None:
    manager = manager_in(State.IN_TRANSACTION)
    assert manager.abort() == manager.abort()


def test_a_repeated_commit_sends_the_same_request() -> None:
    manager = manager_in(State.COMMITTING_TRANSACTION)
    first = manager.end_commit()
    unknown = manager.commit_failed(RequestTimedOutError("no answer"))
    assert isinstance(unknown, TransactionOutcomeUnknownError)
    assert (unknown.transactional_id, unknown.producer_id, unknown.producer_epoch) == (
        "orders",
        7,
        3,
    )
    assert unknown.can_ask_again
    manager.commit()
    assert manager.end_commit() == first


@pytest.mark.parametrize(
    ("error", "raised", "outcome", "state"),
    [
        # Definite: an outcome is in the details.
        (
            InvalidTxnStateError("x", outcome="COMMITTED", next_epoch=4),
            None,
            TransactionOutcome.COMMITTED,
            State.READY,
        ),
        (
            ProducerFencedError("x", outcome="COMMITTED"),
            None,
            TransactionOutcome.COMMITTED,
            State.FATAL_ERROR,
        ),
        (
            ProducerFencedError("x", outcome="COMMITTED", next_epoch=4),
            None,
            TransactionOutcome.COMMITTED,
            State.FATAL_ERROR,
        ),
        (
            TransactionAbortableError("x", outcome="ABORTED", reason="TIMED_OUT", next_epoch=4),
            TransactionAbortedError,
            TransactionOutcome.ABORTED,
            State.ABORTABLE_ERROR,
        ),
        (
            TransactionAbortableError("x", next_epoch=4),
            TransactionAbortedError,
            TransactionOutcome.ABORTED,
            State.ABORTABLE_ERROR,
        ),
        (
            InvalidTxnStateError("x", outcome="ABORTED"),
            TransactionAbortedError,
            TransactionOutcome.ABORTED,
            State.FATAL_ERROR,
        ),
        (
            ProducerFencedError("x", outcome="ABORTED"),
            TransactionAbortedError,
            TransactionOutcome.ABORTED,
            State.FATAL_ERROR,
        ),
        # Anything else says nothing about the outcome.
        (
            ProducerFencedError("x"),
            TransactionOutcomeUnknownError,
            TransactionOutcome.UNKNOWN,
            State.FATAL_ERROR,
        ),
        (
            InvalidProducerIdMappingError("x"),
            TransactionOutcomeUnknownError,
            TransactionOutcome.UNKNOWN,
            State.FATAL_ERROR,
        ),
        (
            RequestTimedOutError("x"),
            TransactionOutcomeUnknownError,
            TransactionOutcome.UNKNOWN,
            State.COMMITTING_TRANSACTION,
        ),
    ],
)
def test_a_commit_has_three_outcomes(
    error: SemelError,
    raised: type[SemelError] | None,
    outcome: TransactionOutcome,
    state: State,
) -> None:
    manager = committing()
    result = manager.commit_failed(error)
    assert type(result) is (raised or type(None))
    assert (manager.outcome, manager.state) == (outcome, state)
    if isinstance(result, TransactionOutcomeUnknownError):
        assert result.can_ask_again == (state is State.COMMITTING_TRANSACTION)
    if result is not None:
        assert result.__cause__ is error


def test_an_abort_that_the_coordinator_made_is_taken_over_without_a_request() -> None:
    manager = committing()
    manager.commit_failed(TransactionAbortableError("TIMED_OUT", outcome="ABORTED", next_epoch=4))
    assert manager.abort() is None
    assert (manager.state, manager.producer_epoch) == (State.READY, 4)


def test_a_next_epoch_that_is_no_number_is_none() -> None:
    manager = committing()
    manager.commit_failed(TransactionAbortableError("x", outcome="ABORTED", next_epoch="soon"))
    assert manager.state is State.FATAL_ERROR


def test_an_abort_that_is_refused_ends_the_producer_c199() -> None:
    manager = manager_in(State.ABORTING_TRANSACTION)
    manager.abort_failed(TransactionAbortableError("x"))
    with pytest.raises(ApplicationRecoverableError, match="this producer can only be closed: x"):
        manager.abort()


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ProducerFencedError("x"), InvalidProducerIdMappingError("x")])
def test_only_another_owner_is_fatal(error: SemelError) -> None:
    manager = manager_in(State.IN_TRANSACTION)
    manager.failed(error, 3)
    assert manager.state is State.FATAL_ERROR
    with pytest.raises(type(error), match="begin_transaction"):
        manager.begin_transaction()


def test_a_failure_while_the_commit_waits_makes_it_fail_c196() -> None:
    manager = manager_in(State.COMMITTING_TRANSACTION)
    manager.failed(RequestTimedOutError("expired"), 3)
    with pytest.raises(TransactionAbortedError, match="expired"):
        manager.end_commit()
    end = manager.abort()
    assert end is not None
    assert not end.commit


def test_a_fatal_failure_while_the_commit_waits_makes_it_fail() -> None:
    manager = manager_in(State.COMMITTING_TRANSACTION)
    manager.failed(ProducerFencedError("fenced"), 3)
    with pytest.raises(TransactionAbortedError, match="fenced"):
        manager.end_commit()


@pytest.mark.parametrize("call", [TransactionManager.commit, TransactionManager.prepare])
def test_a_fatal_failure_before_the_end_was_sent_is_a_definite_abort(
    call: Callable[[TransactionManager], None],
) -> None:
    manager = manager_in(State.FATAL_ERROR)
    assert manager.outcome is TransactionOutcome.ABORTED
    with pytest.raises(TransactionAbortedError, match="transaction 3 of orders") as raised:
        call(manager)
    assert isinstance(raised.value.__cause__, ProducerFencedError)


def test_a_commit_that_ended_aborted_stays_so() -> None:
    manager = committing()
    manager.commit_failed(ProducerFencedError("x", outcome="ABORTED"))
    with pytest.raises(TransactionAbortedError):
        manager.commit()


def test_a_fatal_error_that_tells_no_outcome_is_no_abort() -> None:
    manager = committing()
    manager.commit_failed(ProducerFencedError("x"))
    with pytest.raises(ProducerFencedError):
        manager.commit()


def test_a_failure_while_aborting_changes_nothing_c194() -> None:
    manager = manager_in(State.ABORTING_TRANSACTION)
    manager.failed(InvalidProducerEpochError("late"), 3)
    assert manager.state is State.ABORTING_TRANSACTION


def test_a_failure_of_an_epoch_that_ended_changes_nothing() -> None:
    manager = manager_in(State.IN_TRANSACTION)
    manager.failed(InvalidProducerEpochError("late"), 2)
    assert manager.state is State.IN_TRANSACTION


def test_a_failure_after_the_commit_was_sent_changes_nothing() -> None:
    manager = committing()
    manager.failed(ProducerFencedError("late"), 3)
    assert manager.state is State.COMMITTING_TRANSACTION


def test_a_commit_can_be_withdrawn_before_it_is_sent() -> None:
    manager = manager_in(State.COMMITTING_TRANSACTION)
    manager.withdraw()
    assert manager.state is State.IN_TRANSACTION


def test_a_commit_that_was_sent_cannot_be_withdrawn() -> None:
    with pytest.raises(AssertionError, match="withdrawn"):
        committing().withdraw()


def test_withdrawing_a_commit_that_failed_changes_nothing() -> None:
    manager = manager_in(State.ABORTABLE_ERROR)
    manager.withdraw()
    assert manager.state is State.ABORTABLE_ERROR


def test_the_kept_error_is_the_cause_of_later_ones() -> None:
    manager = manager_in(State.ABORTABLE_ERROR)
    with pytest.raises(TransactionAbortableError) as refused:
        manager.check(Call.SEND)
    assert isinstance(refused.value.__cause__, InvalidProducerEpochError)
