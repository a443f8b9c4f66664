"""Transaction managers in every state."""

from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import State
from aiosemel.errors import InvalidProducerEpochError, ProducerFencedError
from semel_common.ids import GroupId, TopicPartition

P0, P1, G = TopicPartition("t", 0), TopicPartition("t", 1), GroupId("g")


def manager_in(state: State) -> TransactionManager:
    """Return a manager that has come to a state, in a transaction that has sent something."""
    manager = TransactionManager("orders")
    if state is State.UNINITIALIZED:
        return manager
    manager.init_transactions()
    if state is State.INITIALIZING:
        return manager
    manager.initialized(7, 3)
    if state is State.READY:
        return manager
    manager.begin_transaction()
    manager.sent(P0)
    manager.acknowledged(P0)
    match state:
        case State.PREPARING_TRANSACTION:
            manager.prepare()
        case State.COMMITTING_TRANSACTION:
            manager.commit()
        case State.ABORTING_TRANSACTION:
            manager.abort()
        case State.ABORTABLE_ERROR:
            manager.failed(InvalidProducerEpochError("old"), 3)
        case State.FATAL_ERROR:
            manager.failed(ProducerFencedError("fenced"), 3)
        case _:
            assert state is State.IN_TRANSACTION
    assert manager.state is state
    return manager
