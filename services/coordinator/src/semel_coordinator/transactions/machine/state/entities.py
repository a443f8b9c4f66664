"""What the transaction coordinator keeps, as immutable values.

A transactional id names its owner; its producer has the current epoch and the outcomes of the last
ones; transactions are those of its epochs that are not complete. The three change at different
times, so that a decision does not write fields that only InitProducerId changes.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from semel_common.ids import Participant
from semel_coordinator.transactions.machine.state.people import Client, Operator
from semel_coordinator.transactions.machine.state.transitions import (
    REASON_NUMBERS,
    AbortReason,
    Outcome,
    TransactionState,
)

OUTCOMES_KEPT = 256
"""How many of a producer's last outcomes are kept; older ones are never guessed."""
COMPLETED_KEPT = 64
"""How many outcomes of prepared transactions are kept besides, however old their epochs are."""
SUPERSEDED_KEPT = 16
"""How many superseded producer instances of a transactional id are remembered."""

_PARTICIPANT_BYTES = 16
"""What one takes in a record besides its name: a number, and what stands around both."""
_OUTCOMES_MASK = (1 << OUTCOMES_KEPT) - 1
_REASON_BITS = 4
_REASON_MASK = (1 << _REASON_BITS) - 1
_REASONS_MASK = (1 << _REASON_BITS * OUTCOMES_KEPT) - 1
_REASONS = {number: reason for reason, number in REASON_NUMBERS.items()}


class TransactionKey(NamedTuple):
    """Names a transaction, everywhere in the cluster."""

    producer_id: int
    producer_epoch: int


ParticipantSet: TypeAlias = AbstractSet[Participant]
"""Participants in a fixed order, each once; what `in_order` makes."""


def in_order(participants: Iterable[Participant]) -> ParticipantSet:
    """Make a set that iterates in the order given."""
    return dict.fromkeys(participants).keys()


NOBODY: ParticipantSet = in_order(())


def size_bytes_of(participants: Iterable[Participant]) -> int:
    """Return how many bytes these take in a record, at the most."""
    return sum(len(participant[0].encode()) + _PARTICIPANT_BYTES for participant in participants)


class TransactionalId(Struct, frozen=True, kw_only=True):
    """The producer of a transactional id."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    instance_id: str
    """Of the producer object in charge."""
    init_number: int
    """Of its last InitProducerId."""
    init_epoch: int
    """The epoch that this InitProducerId was answered."""
    superseded: tuple[str, ...] = ()
    """Instances that were in charge before; the latest first."""
    principal: str = ""
    """Who made the id, for which principal it counts; empty: for none."""
    client_address: str = ""
    """From where the producer object in charge has called; empty: not known."""
    client_principal: str = ""
    """As whom it has called; empty: not known."""

    @property
    def client(self) -> Client:
        """The producer object in charge."""
        return Client(self.instance_id, self.client_address, self.client_principal)


class CompletedEpoch(NamedTuple):
    """How a prepared transaction ended."""

    producer_epoch: int
    outcome: Outcome


class Producer(Struct, frozen=True, kw_only=True):
    """Where the producer of a transactional id stands."""

    producer_id: int
    transactional_id: str
    producer_epoch: int
    """The current epoch. It is undecided, and every epoch before it is decided or prepared."""
    outcomes: int = 0
    """One bit for each epoch before the current one, the latest lowest: 1 is committed."""
    outcomes_known: int = 0
    abort_reason: AbortReason | None = None
    """Of the last epoch that was aborted."""
    last_update_ms: int
    abort_reasons: int = 0
    """Four bits for each epoch before the current one, the latest lowest; as in REASON_NUMBERS, and
    0 of a committed one. So a producer that only commits keeps nothing."""
    prepared: tuple[int, ...] = ()
    """Epochs before the current one that nothing is decided about; the oldest first."""
    completed: tuple[CompletedEpoch, ...] = ()
    """The epochs that were prepared, and were decided last; the latest last."""

    def outcome_of(self, producer_epoch: int) -> Outcome | None:
        """Return how an epoch ended; None if it is undecided, or too old to know."""
        age = self.producer_epoch - 1 - producer_epoch
        if producer_epoch in self.prepared:
            return None
        if not 0 <= age < self.outcomes_known:
            return dict(self.completed).get(producer_epoch)
        return Outcome.COMMITTED if self.outcomes >> age & 1 else Outcome.ABORTED

    def reason_of(self, producer_epoch: int) -> AbortReason | None:
        """Return why an epoch was aborted; None if it was not, or if that is not known any more."""
        if self.outcome_of(producer_epoch) is not Outcome.ABORTED:
            return None
        age = self.producer_epoch - 1 - producer_epoch
        if age == 0:
            return self.abort_reason
        return _REASONS.get(self.abort_reasons >> _REASON_BITS * age & _REASON_MASK)

    def count_of(self, reason: AbortReason) -> int:
        """Return how many of the last epochs were aborted for a reason."""
        digits = f"{self.abort_reasons:x}"
        return digits.count(f"{REASON_NUMBERS[reason]:x}")

    def decided(self, reason: AbortReason | None, now_ms: int) -> "Producer":
        """Return the producer after the current epoch was aborted for a reason, or committed."""
        return Producer(
            producer_id=self.producer_id,
            transactional_id=self.transactional_id,
            producer_epoch=self.producer_epoch + 1,
            outcomes=(self.outcomes << 1 | (reason is None)) & _OUTCOMES_MASK,
            outcomes_known=min(self.outcomes_known + 1, OUTCOMES_KEPT),
            abort_reason=reason or self.abort_reason,
            last_update_ms=now_ms,
            abort_reasons=(
                self.abort_reasons << _REASON_BITS
                | (0 if reason is None else REASON_NUMBERS[reason])
            )
            & _REASONS_MASK,
            prepared=self.prepared,
            completed=self.completed,
        )

    def with_prepared(self, now_ms: int) -> "Producer":
        """Return the producer after the current epoch was prepared."""
        return replace(
            self,
            producer_epoch=self.producer_epoch + 1,
            outcomes=self.outcomes << 1 & _OUTCOMES_MASK,
            outcomes_known=min(self.outcomes_known + 1, OUTCOMES_KEPT),
            last_update_ms=now_ms,
            abort_reasons=self.abort_reasons << _REASON_BITS & _REASONS_MASK,
            prepared=(*self.prepared, self.producer_epoch),
        )

    def with_completed(
        self, producer_epoch: int, reason: AbortReason | None, now_ms: int
    ) -> "Producer":
        """Return the producer after a prepared epoch was aborted for a reason, or committed."""
        age = self.producer_epoch - 1 - producer_epoch
        number = 0 if reason is None else REASON_NUMBERS[reason]
        outcome = Outcome.COMMITTED if reason is None else Outcome.ABORTED
        bit = min(age, OUTCOMES_KEPT)  # Masked out: too old to be kept.
        return replace(
            self,
            outcomes=(self.outcomes | (reason is None) << bit) & _OUTCOMES_MASK,
            abort_reasons=(self.abort_reasons | number << _REASON_BITS * bit) & _REASONS_MASK,
            # Whose reason it is must be told of the last epoch only.
            abort_reason=reason if reason is not None and age == 0 else self.abort_reason,
            last_update_ms=now_ms,
            prepared=tuple(each for each in self.prepared if each != producer_epoch),
            completed=(*self.completed, CompletedEpoch(producer_epoch, outcome))[-COMPLETED_KEPT:],
        )

    def raised(self, producer_epoch: int, now_ms: int) -> "Producer":
        """Return the producer at a current epoch far above; how those below ended is forgotten.

        The one just below was never given out. What is prepared stays so.
        """
        return replace(
            self,
            producer_epoch=producer_epoch,
            outcomes=0,
            outcomes_known=1,
            abort_reason=AbortReason.FENCED,
            last_update_ms=now_ms,
            abort_reasons=REASON_NUMBERS[AbortReason.FENCED],
        )


class OngoingTransaction(Struct, frozen=True, kw_only=True):
    """The transaction of a producer's current epoch, once a participant is known.

    The one value here that grows: replay alone adds participants, so that registering one more
    costs the same however many there are.
    """

    producer_id: int
    producer_epoch: int
    start_ms: int
    """When the coordinator heard of the first participant."""
    traceparent: str
    participants: dict[Participant, None]
    """In the order of their registration."""

    def is_timed_out(self, timeout_ms: int, now_ms: int) -> bool:
        """Whether its time is over; also if the clock went far back: its age is not known then."""
        return abs(now_ms - self.start_ms) >= timeout_ms


class DecidedTransaction(Struct, frozen=True, kw_only=True):
    """A transaction whose outcome is fixed, and whose markers are not all acknowledged."""

    producer_id: int
    producer_epoch: int
    state: TransactionState
    """PREPARE_COMMIT or PREPARE_ABORT."""
    start_ms: int
    """As of the ongoing one; of one that was never registered: when it was decided."""
    committing: ParticipantSet
    """The participants that get a COMMIT marker."""
    aborting: ParticipantSet
    """The participants that get an ABORT marker."""
    reason: AbortReason | None
    """Why it was aborted."""
    traceparent: str
    decided_ms: int = 0
    """0: not known."""
    prepared_ms: int = 0
    """0: it was not prepared."""
    operator: Operator | None = None
    """The person who decided it in its producer's place."""
    client: Client | None = None
    """The program that wrote it; None: the one in charge of its transactional id. Replay notes it
    as soon as the id has another one, so that no decision has to."""
    txn_version: int | None = None
    """Of a writer of a joint transaction; replay notes it."""

    @property
    def key(self) -> TransactionKey:
        """Its name."""
        return TransactionKey(self.producer_id, self.producer_epoch)

    @property
    def participant_count(self) -> int:
        """How many get a marker."""
        return len(self.committing) + len(self.aborting)

    @property
    def participants(self) -> ParticipantSet:
        """All that get a marker."""
        return in_order((*self.committing, *self.aborting))


class PreparedTransaction(Struct, frozen=True, kw_only=True):
    """A transaction that can be committed or aborted, whenever its owner says so."""

    producer_id: int
    producer_epoch: int
    start_ms: int
    """As of the ongoing one; of one that was never registered: when it was prepared."""
    prepared_ms: int
    committing: ParticipantSet
    """The participants that get a COMMIT marker if it is committed."""
    aborting: ParticipantSet
    """The participants that get an ABORT marker in any case: registered, and then not named."""
    traceparent: str
    client: Client | None = None
    """As of the decided one."""

    @property
    def key(self) -> TransactionKey:
        """Its name."""
        return TransactionKey(self.producer_id, self.producer_epoch)

    @property
    def participants(self) -> ParticipantSet:
        """All that get a marker."""
        return in_order((*self.committing, *self.aborting))
