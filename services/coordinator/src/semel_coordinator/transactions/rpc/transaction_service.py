"""The RPCs of transactions, each with the object that answers it.

No RPC decides anything. Each one checks every field before the machine sees it, and answers when
its answer is durable.
"""

from dataclasses import dataclass

from semel_common.wire import methods
from semel_coordinator.transactions.rpc.add_offsets_to_txn import GroupAdder
from semel_coordinator.transactions.rpc.add_partitions_to_txn import PartitionAdder
from semel_coordinator.transactions.rpc.complete_prepared_txn import PreparedCompleter
from semel_coordinator.transactions.rpc.end_txn import TransactionEnder
from semel_coordinator.transactions.rpc.hand_over_transactions import TransactionsGiver
from semel_coordinator.transactions.rpc.init_producer_id import ProducerIdGiver
from semel_coordinator.transactions.rpc.inquire_transactions import TransactionInquirer
from semel_coordinator.transactions.rpc.joint.end_joint_txn import JointEnder
from semel_coordinator.transactions.rpc.joint.join_txn import TransactionJoiner
from semel_coordinator.transactions.rpc.joint.keep_alive_txn import TransactionKeeper
from semel_coordinator.transactions.rpc.operators.abort_transaction import TransactionAborter
from semel_coordinator.transactions.rpc.operators.describe_transactions import TransactionDescriber
from semel_coordinator.transactions.rpc.operators.fence_producer import ProducerFencer
from semel_coordinator.transactions.rpc.operators.get_transaction_outcome import OutcomeTeller
from semel_coordinator.transactions.rpc.operators.list_audit import AuditLister
from semel_coordinator.transactions.rpc.operators.list_transaction_history import HistoryLister
from semel_coordinator.transactions.rpc.operators.list_transactions import TransactionLister
from semel_coordinator.transactions.rpc.prepare_txn import TransactionPreparer
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Handlers


@dataclass(frozen=True, slots=True)
class TransactionService:
    """Everything that answers calls about transactions."""

    parts: ServiceParts
    giver: TransactionsGiver

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        parts = self.parts
        describer = TransactionDescriber(parts)
        handlers.add(methods.INIT_PRODUCER_ID, ProducerIdGiver(parts).init_producer_id)
        handlers.add(methods.ADD_PARTITIONS_TO_TXN, PartitionAdder(parts).add_partitions_to_txn)
        handlers.add(methods.ADD_OFFSETS_TO_TXN, GroupAdder(parts).add_offsets_to_txn)
        handlers.add(methods.END_TXN, TransactionEnder(parts).end_txn)
        handlers.add(methods.PREPARE_TXN, TransactionPreparer(parts).prepare_txn)
        handlers.add(methods.COMPLETE_PREPARED_TXN, PreparedCompleter(parts).complete_prepared_txn)
        handlers.add(methods.INQUIRE_TRANSACTIONS, TransactionInquirer(parts).inquire_transactions)
        handlers.add(methods.DESCRIBE_TRANSACTIONS, describer.describe_transactions, is_list=True)
        lister = TransactionLister(parts)
        handlers.add(methods.LIST_TRANSACTIONS, lister.list_transactions, is_list=True)
        history = HistoryLister(parts)
        handlers.add(
            methods.LIST_TRANSACTION_HISTORY, history.list_transaction_history, is_list=True
        )
        handlers.add(methods.LIST_AUDIT, AuditLister(parts).list_audit, is_list=True)
        handlers.add(methods.GET_TRANSACTION_OUTCOME, OutcomeTeller(parts).get_transaction_outcome)
        handlers.add(methods.ABORT_TRANSACTION, TransactionAborter(parts).abort_transaction)
        handlers.add(methods.FENCE_PRODUCER, ProducerFencer(parts).fence_producer)
        handlers.add(methods.JOIN_TXN, TransactionJoiner(parts).join_txn)
        handlers.add(methods.KEEP_ALIVE_TXN, TransactionKeeper(parts).keep_alive_txn)
        handlers.add(methods.END_JOINT_TXN, JointEnder(parts).end_joint_txn)
        handlers.add(methods.HAND_OVER_TRANSACTIONS, self.giver.hand_over_transactions)
