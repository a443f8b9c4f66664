"""The records of the transaction coordinator: facts, each keyed by its subject.

Four of them are the entities themselves, whole. Participants are written as they come, so that
a registration writes only what is new.
"""

from msgspec import Struct

from semel_common.ids import Participant, producer_id_counter_of
from semel_coordinator.transactions.machine.history.audit_trail import AuditNoted
from semel_coordinator.transactions.machine.joint.joint_entities import JointRecord
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    PreparedTransaction,
    Producer,
    TransactionalId,
)
from semel_coordinator.transactions.machine.state.transitions import TransactionState


class CoordinatorEpoch(Struct, frozen=True, kw_only=True):
    """The coordinator epoch of a transaction-log partition, from this record on."""

    partition: int
    coordinator_epoch: int


class ProducerIdsGiven(Struct, frozen=True, kw_only=True):
    """A transaction-log partition has given out the ids with the counters ``start`` + 1 to here."""

    partition: int
    count: int
    """The counter of the last producer id."""
    start: int = 0
    """0: the first producer id was given out by a release whose counters all began at 1."""

    def includes(self, producer_id: int) -> bool:
        """Whether a producer id of the partition was given out."""
        return self.start < producer_id_counter_of(producer_id) <= self.count


class ParticipantsAdded(Struct, frozen=True, kw_only=True):
    """A transaction is ongoing, and these participants are known now, besides those before."""

    producer_id: int
    producer_epoch: int
    start_ms: int
    traceparent: str
    participants: tuple[Participant, ...]


class TransactionCompleted(Struct, frozen=True, kw_only=True):
    """All markers of a transaction are acknowledged: only its outcome is remembered."""

    producer_id: int
    producer_epoch: int
    state: TransactionState
    """COMPLETE_COMMIT or COMPLETE_ABORT."""
    completed_ms: int = 0
    """0: not known."""
    acknowledged_before_ms: tuple[int, ...] = ()
    """Of each of the first participants, in their order, how long before that its marker was
    acknowledged, in milliseconds; none: that of all at once."""


class EndedTransactionsKept(Struct, frozen=True, kw_only=True):
    """A part of the history of a transaction-log partition; in snapshots only."""

    partition: int
    committed: bool
    """Whether they are the committed ones, or the aborted ones."""
    first_number: int
    """Of the first one, among all of its kind."""
    packed: tuple[bytes, ...]
    """Each an ``EndedTransaction``, in the order in which they were completed."""
    coordinator_epoch: int = 0
    """That of the partition, which an older release reads in place of all this."""


class TransactionalIdExpired(Struct, frozen=True, kw_only=True):
    """A transactional id was idle for so long that it is forgotten, with its producer."""

    transactional_id: str
    producer_id: int
    """Never given out again: ``ProducerIdsGiven`` stays."""


# -- partitions that move -------------------------------------------------------------------------


class TransactionLogHandedOver(Struct, frozen=True, kw_only=True):
    """A partition's transactions are served here no more, as long as it is led under this epoch."""

    partition: int
    leader_epoch: int


class TransactionLogTakenOver(Struct, frozen=True, kw_only=True):
    """The leader of a partition handed over this state; it is not served yet."""

    partition: int
    leader_epoch: int
    """Of that leader."""
    whole: bool
    """Whether it is all of it."""


class TransactionLogServed(Struct, frozen=True, kw_only=True):
    """A partition's transactions are served here from now on, or again."""

    partition: int
    coordinator_epoch: int
    """Above every epoch that any producer used before."""


class TransactionLogForgotten(Struct, frozen=True, kw_only=True):
    """Nothing is known of a partition's transactions any more."""

    partition: int
    partition_count: int
    """Of the transaction log: it says which transactional ids belong to the partition."""


MoveRecord = (
    TransactionLogHandedOver
    | TransactionLogTakenOver
    | TransactionLogServed
    | TransactionLogForgotten
)
"""What changes which partitions are served."""

TransactionsRecord = (
    ParticipantsAdded
    | DecidedTransaction
    | PreparedTransaction
    | Producer
    | TransactionCompleted
    | EndedTransactionsKept
    | AuditNoted
    | TransactionalId
    | TransactionalIdExpired
    | ProducerIdsGiven
    | CoordinatorEpoch
    | JointRecord
    | MoveRecord
)
