"""DescribeTransactions and ListTransactions: what operators ask."""

from collections.abc import Iterable

from msgspec import Struct

from semel_common.errors import NotCoordinatorError, SemelError, TransactionalIdNotFoundError
from semel_coordinator.transactions.machine.gauges import Standing, standing
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointDescription,
    JointWriter,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.listings import (
    ListCandidates,
    ListFilter,
    ListPosition,
    TransactionListing,
    candidates,
    listed,
    names_of,
    open_candidates,
    open_positions,
)
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import (
    NOBODY,
    DecidedTransaction,
    OngoingTransaction,
    ParticipantSet,
    PreparedTransaction,
    Producer,
    TransactionKey,
    in_order,
)
from semel_coordinator.transactions.machine.state.people import Client
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, TransactionState
from semel_runtime.machine import Result


class TransactionDescription(Struct, frozen=True, kw_only=True):
    """One transaction that is not complete."""

    producer_id: int
    producer_epoch: int
    state: TransactionState
    start_ms: int = 0
    """0: it has no participant."""
    participants: ParticipantSet
    reason: AbortReason | None = None
    traceparent: str = ""
    prepared_ms: int = 0
    """0: it is not prepared."""
    decided_ms: int = 0
    """0: it is not decided, or the time is not known."""

    @property
    def key(self) -> TransactionKey:
        """Its name."""
        return TransactionKey(self.producer_id, self.producer_epoch)


class TransactionalIdDescription(Struct, frozen=True, kw_only=True):
    """A transactional id with its transactions, or why it is not there."""

    transactional_id: str
    error: SemelError | None = None
    producer_id: int = 0
    producer_epoch: int = 0
    timeout_ms: int = 0
    transactions: tuple[TransactionDescription, ...] = ()
    """The decided and prepared ones, and the current one; the oldest first."""
    client: Client | None = None
    """The producer object in charge; of an id of joint transactions none."""
    joint: JointDescription | None = None
    """Of an id of joint transactions; `transactions` then are those of all its writers."""


class TransactionQueries:
    """A part of the transactions' machine, over its state."""

    def __init__(self, state: TransactionsState, ownership: Ownership) -> None:
        """Answer for the state as it is at each call."""
        self._state = state
        self._ownership = ownership

    def standing(self, *, now_ms: int) -> Standing:
        """Return how transactions stand now, durable or not: for people, not for clients."""
        return standing(self._state, self._ownership, now_ms=now_ms)

    def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> Result[tuple[TransactionalIdDescription, ...], TransactionsRecord]:
        """Describe transactional ids; of each that cannot be described, say why."""
        return Result(tuple(self._describe(name) for name in transactional_ids))

    def list_candidates(
        self, wanted: ListFilter, *, open_only: bool = False
    ) -> Result[ListCandidates, TransactionsRecord]:
        """Return the ids that a list may name, for the three calls below, in pieces."""
        found = open_candidates if open_only else candidates
        return Result(found(self._state, wanted))

    def names_of(self, producer_ids: Iterable[int]) -> Result[list[str], TransactionsRecord]:
        """Return the transactional ids of producers; one may be there twice."""
        return Result(names_of(self._state, producer_ids))

    def open_positions(
        self, names: Iterable[str]
    ) -> Result[list[ListPosition], TransactionsRecord]:
        """Return the positions of the transactions of some transactional ids."""
        served = filter(self._ownership.serves_id, names)
        return Result(open_positions(self._state, served))

    def list_transactions(
        self, names: Iterable[str], wanted: ListFilter, *, now_ms: int
    ) -> Result[list[TransactionListing], TransactionsRecord]:
        """List those of the transactional ids that the filter wants."""
        served = filter(self._ownership.serves_id, names)
        return Result(listed(self._state, served, wanted, now_ms=now_ms))

    def _describe(self, transactional_id: str) -> TransactionalIdDescription:
        try:
            self._ownership.partition_for(transactional_id)
        except NotCoordinatorError as error:
            return TransactionalIdDescription(transactional_id=transactional_id, error=error)
        return _described(self._state, transactional_id)


def _described(state: TransactionsState, transactional_id: str) -> TransactionalIdDescription:
    """Describe a transactional id of this instance."""
    joint = state.joints.by_id.get(transactional_id)
    if joint is not None:
        return _describe_joint(state, joint)
    known = state.transactional_ids.get(transactional_id)
    if known is None:
        return TransactionalIdDescription(
            transactional_id=transactional_id,
            error=TransactionalIdNotFoundError(f"no transactional id {transactional_id!r}"),
        )
    producer = state.producers[known.producer_id]
    ongoing = state.ongoing.get(known.producer_id)
    before = [_describe_decided(each) for each in state.incomplete_of(known.producer_id)]
    before += [_describe_prepared(each) for each in state.prepared_of(known.producer_id)]
    before.sort(key=lambda each: each.producer_epoch)
    return TransactionalIdDescription(
        transactional_id=transactional_id,
        producer_id=known.producer_id,
        producer_epoch=producer.producer_epoch,
        timeout_ms=known.timeout_ms,
        transactions=(*before, _describe_current(producer, ongoing)),
        client=known.client,
    )


def _describe_prepared(prepared: PreparedTransaction) -> TransactionDescription:
    return TransactionDescription(
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        state=TransactionState.PREPARED,
        start_ms=prepared.start_ms,
        participants=prepared.participants,
        traceparent=prepared.traceparent,
        prepared_ms=prepared.prepared_ms,
    )


def _describe_decided(decided: DecidedTransaction) -> TransactionDescription:
    return TransactionDescription(
        producer_id=decided.producer_id,
        producer_epoch=decided.producer_epoch,
        state=decided.state,
        start_ms=decided.start_ms,
        participants=decided.participants,
        reason=decided.reason,
        traceparent=decided.traceparent,
        decided_ms=decided.decided_ms,
    )


def _describe_current(
    producer: Producer, ongoing: OngoingTransaction | None
) -> TransactionDescription:
    if ongoing is None:
        return TransactionDescription(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            state=TransactionState.EMPTY,
            participants=NOBODY,
        )
    return TransactionDescription(
        producer_id=ongoing.producer_id,
        producer_epoch=ongoing.producer_epoch,
        state=TransactionState.ONGOING,
        start_ms=ongoing.start_ms,
        # A copy: the ongoing transaction grows while the answer waits for the disk.
        participants=in_order(ongoing.participants),
        traceparent=ongoing.traceparent,
    )


def _describe_joint(state: TransactionsState, joint: Joint) -> TransactionalIdDescription:
    decided = [each for producer_id in joint.pool for each in state.incomplete_of(producer_id)]
    live = [state.producers[each] for each in joint.live]
    current = (_describe_current(each, state.ongoing.get(each.producer_id)) for each in live)
    return TransactionalIdDescription(
        transactional_id=joint.known.transactional_id,
        timeout_ms=joint.known.timeout_ms,
        transactions=(*map(_describe_decided, decided), *current),
        joint=JointDescription(
            known=joint.known,
            kept_alive_ms=joint.kept_alive_ms,
            writers=tuple(
                JointWriter(
                    writer=writer,
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                )
                for writer, each in zip(joint.writers, live, strict=True)
            ),
        ),
    )
