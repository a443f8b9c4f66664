"""DescribeTransactions and ListTransactions: what operators ask."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from semel_common.errors import NotCoordinatorError, SemelError, TransactionalIdNotFoundError
from semel_coordinator.transactions.machine.gauges import Standing, standing
from semel_coordinator.transactions.machine.joint.joint_entities import (
    JointDescription,
    JointWriter,
)
from semel_coordinator.transactions.machine.joint.joint_state import Joint
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
    joint: JointDescription | None = None
    """Of an id of joint transactions; `transactions` then are those of all its writers."""


class TransactionListing(Struct, frozen=True, kw_only=True):
    """A transactional id in a list, with its current transaction or with a prepared one."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    start_ms: int
    incomplete_transactions: int
    timeout_ms: int
    last_update_ms: int
    fenced_transactions: int
    """The aborts among its last 256 transactions that a new producer instance caused."""
    joint_writers: int = 0


class ListFilter(Struct, frozen=True, kw_only=True):
    """What a list is about. Everything that is given must fit."""

    states: frozenset[TransactionState] = frozenset()
    """Empty: all."""
    producer_ids: frozenset[int] = frozenset()
    """Empty: all."""
    running_longer_than_ms: int | None = None
    matches: Callable[[str], bool] | None = None
    """True for transactional ids that are wanted; None: all."""


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

    def list_candidates(self, wanted: ListFilter) -> Result[Sequence[str], TransactionsRecord]:
        """Return the transactional ids to be given to `list_transactions`, in pieces."""
        return Result(_candidates(self._state, wanted))

    def list_transactions(
        self, names: Iterable[str], wanted: ListFilter, *, now_ms: int
    ) -> Result[list[TransactionListing], TransactionsRecord]:
        """List those of the transactional ids that the filter wants."""
        served = filter(self._ownership.serves_id, names)
        return Result(_listed(self._state, served, wanted, now_ms=now_ms))

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
    )


def _candidates(state: TransactionsState, wanted: ListFilter) -> Sequence[str]:
    """Return the transactional ids that a list may name: no more than the filter forces."""
    if wanted.producer_ids:
        return _names_of(state, sorted(wanted.producer_ids))
    busy_only = wanted.running_longer_than_ms is not None or (
        wanted.states and TransactionState.EMPTY not in wanted.states
    )
    if not busy_only:
        return [*state.transactional_ids, *state.joints.by_id]
    undecided = (*state.prepared, *state.decided)
    busy = (*state.ongoing, *(key.producer_id for key in undecided))
    return list(dict.fromkeys((*_names_of(state, busy), *state.joints.open)))


def _names_of(state: TransactionsState, producer_ids: Iterable[int]) -> list[str]:
    producers = (state.producers.get(each) for each in producer_ids)
    return list(
        dict.fromkeys(producer.transactional_id for producer in producers if producer is not None)
    )


def _listed(
    state: TransactionsState, names: Iterable[str], wanted: ListFilter, *, now_ms: int
) -> list[TransactionListing]:
    """List those of the transactional ids that the filter wants, in the order given."""
    found = (
        listing for name in names if state.is_known(name) for listing in _listings(state, name)
    )
    return [each for each in found if _is_wanted(each, wanted, now_ms)]


def _listings(state: TransactionsState, name: str) -> Iterator[TransactionListing]:
    joint = state.joints.by_id.get(name)
    if joint is not None:
        yield _joint_listing(state, joint)
        return
    producer = state.producers[state.transactional_ids[name].producer_id]
    for prepared in state.prepared_of(producer.producer_id):
        yield TransactionListing(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=prepared.producer_epoch,
            state=TransactionState.PREPARED,
            start_ms=prepared.start_ms,
            incomplete_transactions=state.incomplete_count(producer.producer_id),
            timeout_ms=state.transactional_ids[producer.transactional_id].timeout_ms,
            last_update_ms=producer.last_update_ms,
            fenced_transactions=producer.count_of(AbortReason.FENCED),
        )
    yield _listing(state, producer)


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


def _listing(state: TransactionsState, producer: Producer) -> TransactionListing:
    transaction_state, start_ms = TransactionState.EMPTY, 0
    ongoing = state.ongoing.get(producer.producer_id)
    if ongoing is not None:
        transaction_state, start_ms = TransactionState.ONGOING, ongoing.start_ms
    else:
        for decided in state.incomplete_of(producer.producer_id):
            transaction_state, start_ms = decided.state, decided.start_ms
    return TransactionListing(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        state=transaction_state,
        start_ms=start_ms,
        incomplete_transactions=state.incomplete_count(producer.producer_id),
        timeout_ms=state.transactional_ids[producer.transactional_id].timeout_ms,
        last_update_ms=producer.last_update_ms,
        fenced_transactions=producer.count_of(AbortReason.FENCED),
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


def _joint_listing(state: TransactionsState, joint: Joint) -> TransactionListing:
    incomplete = [each for producer_id in joint.pool for each in state.incomplete_of(producer_id)]
    transaction_state, start_ms = TransactionState.EMPTY, 0
    if joint.is_open:
        transaction_state, start_ms = TransactionState.ONGOING, joint.known.start_ms
    elif incomplete:
        transaction_state, start_ms = incomplete[-1].state, incomplete[-1].start_ms
    return TransactionListing(
        transactional_id=joint.known.transactional_id,
        producer_id=0,
        producer_epoch=0,
        state=transaction_state,
        start_ms=start_ms,
        incomplete_transactions=len(incomplete),
        timeout_ms=joint.known.timeout_ms,
        last_update_ms=joint.known.last_update_ms,
        fenced_transactions=0,
        joint_writers=len(joint.live),
    )


def _is_wanted(listing: TransactionListing, wanted: ListFilter, now_ms: int) -> bool:
    if wanted.states and listing.state not in wanted.states:
        return False
    if wanted.running_longer_than_ms is not None and (
        listing.state is TransactionState.EMPTY
        or now_ms - listing.start_ms <= wanted.running_longer_than_ms
    ):
        return False
    return wanted.matches is None or wanted.matches(listing.transactional_id)
