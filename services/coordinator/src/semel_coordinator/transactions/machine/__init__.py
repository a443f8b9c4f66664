"""The pure half of the transaction coordinator: everything that decides, and nothing that waits."""

from semel_coordinator.transactions.machine.expiry import FenceAnswer, FenceInquiry
from semel_coordinator.transactions.machine.history.ended_transaction import (
    EndedParticipant,
    EndedTransaction,
)
from semel_coordinator.transactions.machine.history.history_queries import (
    HistoryFilter,
    HistoryPosition,
)
from semel_coordinator.transactions.machine.init_producer_id import InitProducerId
from semel_coordinator.transactions.machine.inquiry import Inquiry, InquiryAnswer, InquiryOutcome
from semel_coordinator.transactions.machine.joint.ending import EndJointTxn
from semel_coordinator.transactions.machine.joint.joining import JoinTxn
from semel_coordinator.transactions.machine.joint.joint_entities import (
    NO_VERSION,
    AbortedWriter,
    JointDescription,
    JointEnd,
    JointEnded,
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointName,
    JointPoolGrown,
    JointPoolShrunk,
    JointRecord,
    JointWriter,
    JointWritersJoined,
    TimedOutVersion,
)
from semel_coordinator.transactions.machine.listings import (
    ListFilter,
    ListPosition,
    TransactionListing,
)
from semel_coordinator.transactions.machine.outcome import (
    KnownOutcome,
    OutcomeAnswer,
    TransactionName,
)
from semel_coordinator.transactions.machine.queries import (
    TransactionalIdDescription,
    TransactionDescription,
)
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    OngoingTransaction,
    PreparedTransaction,
    Producer,
    TransactionalId,
    TransactionKey,
    in_order,
)
from semel_coordinator.transactions.machine.state.limits import HistoryLimits, TransactionLimits
from semel_coordinator.transactions.machine.state.people import Client, Operator
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
    EndedTransactionsKept,
    ParticipantsAdded,
    ProducerIdsGiven,
    TransactionalIdExpired,
    TransactionCompleted,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionLogTakenOver,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transitions import (
    AbortReason,
    Outcome,
    TransactionState,
)
from semel_coordinator.transactions.machine.timeouts import TimedOut
from semel_coordinator.transactions.machine.transactions_machine import TransactionsMachine

__all__ = [
    "NO_VERSION",
    "AbortReason",
    "AbortedWriter",
    "Client",
    "CoordinatorEpoch",
    "DecidedTransaction",
    "EndJointTxn",
    "EndedParticipant",
    "EndedTransaction",
    "EndedTransactionsKept",
    "FenceAnswer",
    "FenceInquiry",
    "HistoryFilter",
    "HistoryLimits",
    "HistoryPosition",
    "InitProducerId",
    "Inquiry",
    "InquiryAnswer",
    "InquiryOutcome",
    "JoinTxn",
    "JointDescription",
    "JointEnd",
    "JointEnded",
    "JointEndsKept",
    "JointId",
    "JointIdExpired",
    "JointKeptAlive",
    "JointName",
    "JointPoolGrown",
    "JointPoolShrunk",
    "JointRecord",
    "JointWriter",
    "JointWritersJoined",
    "KnownOutcome",
    "ListFilter",
    "ListPosition",
    "OngoingTransaction",
    "Operator",
    "Outcome",
    "OutcomeAnswer",
    "ParticipantsAdded",
    "PreparedTransaction",
    "Producer",
    "ProducerIdsGiven",
    "TimedOut",
    "TimedOutVersion",
    "TransactionCompleted",
    "TransactionDescription",
    "TransactionKey",
    "TransactionLimits",
    "TransactionListing",
    "TransactionLogForgotten",
    "TransactionLogHandedOver",
    "TransactionLogServed",
    "TransactionLogTakenOver",
    "TransactionName",
    "TransactionState",
    "TransactionalId",
    "TransactionalIdDescription",
    "TransactionalIdExpired",
    "TransactionsMachine",
    "TransactionsRecord",
    "in_order",
]
