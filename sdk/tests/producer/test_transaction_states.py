"""Every state of the transaction manager with every call."""

from collections.abc import Callable

import pytest
from manager_harness import manager_in

from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import (
    TRANSITIONS,
    Call,
    Event,
    State,
)
from aiosemel.errors import (
    IllegalStateError,
    ProducerFencedError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
)

CALLS: dict[Call, Callable[[TransactionManager], object]] = {
    Call.INIT_TRANSACTIONS: TransactionManager.init_transactions,
    Call.BEGIN_TRANSACTION: TransactionManager.begin_transaction,
    Call.SEND: lambda manager: manager.check(Call.SEND),
    Call.SEND_OFFSETS: lambda manager: manager.send_offsets("g"),
    Call.COMMIT: TransactionManager.commit,
    Call.ABORT: TransactionManager.abort,
    Call.PREPARE: TransactionManager.prepare,
    Call.COMPLETE_PREPARED: TransactionManager.complete_prepared,
}

# What a call does in a state: the state after it, or the error that it raises.
ILLEGAL = IllegalStateError
EXPECTED: dict[State, tuple[State | type[SemelError], ...]] = {
    # init_transactions, begin_transaction, send, send_offsets, commit, abort, prepare, complete
    State.UNINITIALIZED: (State.INITIALIZING, *(ILLEGAL,) * 7),
    State.INITIALIZING: (State.INITIALIZING, *(ILLEGAL,) * 7),
    State.READY: (ILLEGAL, State.IN_TRANSACTION, *(ILLEGAL,) * 5, State.READY),
    State.IN_TRANSACTION: (
        ILLEGAL,
        ILLEGAL,
        State.IN_TRANSACTION,
        State.IN_TRANSACTION,
        State.COMMITTING_TRANSACTION,
        State.ABORTING_TRANSACTION,
        State.PREPARING_TRANSACTION,
        State.IN_TRANSACTION,
    ),
    State.PREPARING_TRANSACTION: (
        *(ILLEGAL,) * 5,
        State.ABORTING_TRANSACTION,
        State.PREPARING_TRANSACTION,
        State.PREPARING_TRANSACTION,
    ),
    State.COMMITTING_TRANSACTION: (
        *(ILLEGAL,) * 4,
        State.COMMITTING_TRANSACTION,
        ILLEGAL,
        ILLEGAL,
        State.COMMITTING_TRANSACTION,
    ),
    State.ABORTING_TRANSACTION: (
        *(ILLEGAL,) * 5,
        State.ABORTING_TRANSACTION,
        ILLEGAL,
        State.ABORTING_TRANSACTION,
    ),
    State.ABORTABLE_ERROR: (
        *(TransactionAbortableError,) * 4,
        TransactionAbortedError,
        State.ABORTING_TRANSACTION,
        TransactionAbortedError,
        State.ABORTABLE_ERROR,
    ),
    State.FATAL_ERROR: (
        *(ProducerFencedError,) * 4,
        TransactionAbortedError,
        ProducerFencedError,
        TransactionAbortedError,
        ProducerFencedError,
    ),
}


@pytest.mark.parametrize("call", Call)
@pytest.mark.parametrize("state", State)
def test_every_call_in_every_state_moves_or_is_refused(state: State, call: Call) -> None:
    manager = manager_in(state)
    expected = EXPECTED[state][list(Call).index(call)]
    if isinstance(expected, State):
        CALLS[call](manager)
        assert manager.state is expected
    else:
        with pytest.raises(expected) as refused:
            CALLS[call](manager)
        assert type(refused.value) is expected
        assert manager.state is state, "a refused call changed something (C-206)"


@pytest.mark.parametrize("state", State)
def test_a_refused_call_names_the_state(state: State) -> None:
    illegal = [call for call in Call if EXPECTED[state][list(Call).index(call)] is ILLEGAL]
    for call in illegal:
        with pytest.raises(IllegalStateError, match=f"{call}.*{state}"):
            CALLS[call](manager_in(state))


def test_nothing_leads_out_of_the_fatal_state() -> None:
    assert TRANSITIONS[State.FATAL_ERROR] == {}


def test_every_state_can_be_reached() -> None:
    reached = {state for steps in TRANSITIONS.values() for state in steps.values()}
    assert reached == set(State)


def test_an_outdated_producer_asks_with_another_number() -> None:
    manager = TransactionManager("orders")
    assert manager.init_transactions() == 1
    outdated = [manager.is_outdated]
    manager.initialized(7, 3)
    manager.outdated()
    outdated.append(manager.is_outdated)
    assert manager.init_transactions() == 2
    assert manager.init_transactions() == 2
    manager.initialized(7, 4)
    assert [*outdated, manager.is_outdated] == [False, True, False]


@pytest.mark.parametrize("event", Event)
def test_an_event_out_of_order_is_a_defect(event: Event) -> None:
    with pytest.raises(AssertionError, match="UNINITIALIZED"):
        TransactionManager("orders")._move(event)
