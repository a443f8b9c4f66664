"""The states of transactions in messages."""

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_coordinator.transactions.machine import TransactionState

TO_WIRE = {
    TransactionState.EMPTY: wire.TRANSACTION_STATE_EMPTY,
    TransactionState.ONGOING: wire.TRANSACTION_STATE_ONGOING,
    TransactionState.PREPARED: wire.TRANSACTION_STATE_PREPARED,
    TransactionState.PREPARE_COMMIT: wire.TRANSACTION_STATE_PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT: wire.TRANSACTION_STATE_PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT: wire.TRANSACTION_STATE_COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT: wire.TRANSACTION_STATE_COMPLETE_ABORT,
}
FROM_WIRE: dict[int, TransactionState] = {number: state for state, number in TO_WIRE.items()}
