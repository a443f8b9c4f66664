"""The pure half of the transaction coordinator: everything that decides, and nothing that waits."""

from semel_coordinator.transactions.machine.expiry import FenceAnswer, FenceInquiry
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
from semel_coordinator.transactions.machine.outcome import (
    KnownOutcome,
    OutcomeAnswer,
    TransactionName,
)
from semel_coordinator.transactions.machine.queries import (
    ListFilter,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionListing,
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
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import (
    CoordinatorEpoch,
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
    "CoordinatorEpoch",
    "DecidedTransaction",
    "EndJointTxn",
    "FenceAnswer",
    "FenceInquiry",
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
    "OngoingTransaction",
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
