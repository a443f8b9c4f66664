"""DescribeTransactions and ListTransactions: what operators ask."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from semel_common.errors import SemelError, TransactionalIdNotFoundError
from semel_coordinator.transactions.machine.entities import (
    NOBODY,
    DecidedTransaction,
    OngoingTransaction,
    ParticipantSet,
    PreparedTransaction,
    Producer,
    TransactionKey,
    in_order,
)
from semel_coordinator.transactions.machine.state import TransactionsState
from semel_coordinator.transactions.machine.states import AbortReason, TransactionState


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
    """Of the last 256, those that a new producer instance has aborted."""


class ListFilter(Struct, frozen=True, kw_only=True):
    """What a list is about. Everything that is given must fit."""

    states: frozenset[TransactionState] = frozenset()
    """Empty: all."""
    producer_ids: frozenset[int] = frozenset()
    """Empty: all."""
    running_longer_than_ms: int | None = None
    matches: Callable[[str], bool] | None = None
    """True for transactional ids that are wanted; None: all."""


def described(state: TransactionsState, transactional_id: str) -> TransactionalIdDescription:
    """Describe a transactional id of this instance."""
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


def candidates(state: TransactionsState, wanted: ListFilter) -> Sequence[int]:
    """Return the producer ids that a list may name: no more of them than the filter forces."""
    if wanted.producer_ids:
        return [each for each in sorted(wanted.producer_ids) if each in state.producers]
    busy_only = wanted.running_longer_than_ms is not None or (
        wanted.states and TransactionState.EMPTY not in wanted.states
    )
    if not busy_only:
        return list(state.producers)
    return list(
        dict.fromkeys(
            (*state.ongoing, *(key.producer_id for key in (*state.prepared, *state.decided)))
        )
    )


def listed(
    state: TransactionsState, producer_ids: Iterable[int], wanted: ListFilter, *, now_ms: int
) -> list[TransactionListing]:
    """List those of the producers that the filter wants, in the order given."""
    found = (
        listing
        for each in producer_ids
        if each in state.producers
        for listing in _listings(state, state.producers[each])
    )
    return [each for each in found if _is_wanted(each, wanted, now_ms)]


def _listings(state: TransactionsState, producer: Producer) -> Iterator[TransactionListing]:
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


def _is_wanted(listing: TransactionListing, wanted: ListFilter, now_ms: int) -> bool:
    if wanted.states and listing.state not in wanted.states:
        return False
    if wanted.running_longer_than_ms is not None and (
        listing.state is TransactionState.EMPTY
        or now_ms - listing.start_ms <= wanted.running_longer_than_ms
    ):
        return False
    return wanted.matches is None or wanted.matches(listing.transactional_id)
