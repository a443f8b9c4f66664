"""The entries of ListTransactions, their order, and the position of each. Pure.

An id has one entry for its current transaction and one for each that is prepared. The service makes
a list in pieces, with other calls between them: the functions here take some transactional ids at a
time, and only `candidates` copies the names of all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.state.entities import Producer
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason, TransactionState

_NUMBER_MAX = (1 << 63) - 1


class ListPosition(NamedTuple):
    """Where an entry stands among those of all coordinators, in either order of a list."""

    start_ms: int
    """0: the entry has no transaction that has begun."""
    producer_epoch: int
    transactional_id: str

    def __str__(self) -> str:
        """Return a text that `parsed` takes."""
        return f"{self.start_ms}-{self.producer_epoch}-{self.transactional_id}"

    @classmethod
    def parsed(cls, text: str) -> "ListPosition | None":
        """Return the position of a text; None of a text that no position has."""
        start, _, rest = text.partition("-")
        epoch, _, transactional_id = rest.partition("-")
        if not transactional_id or not all(
            each.isascii() and each.isdigit() and len(each) <= len(str(_NUMBER_MAX))
            for each in (start, epoch)
        ):
            return None
        found = cls(int(start), int(epoch), transactional_id)
        return found if str(found) == text else None

    @property
    def by_id(self) -> tuple[str, int]:
        """Its place in a list by transactional id."""
        return self.transactional_id, self.producer_epoch

    @property
    def by_age(self) -> tuple[int, str, int]:
        """Its place in a list of which the oldest transaction is the first."""
        return self.start_ms or _NUMBER_MAX, self.transactional_id, self.producer_epoch


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

    @property
    def position(self) -> ListPosition:
        """Where it stands."""
        return ListPosition(self.start_ms, self.producer_epoch, self.transactional_id)


class ListFilter(Struct, frozen=True, kw_only=True):
    """What a list is about. Everything that is given must fit."""

    states: frozenset[TransactionState] = frozenset()
    """Empty: all."""
    producer_ids: frozenset[int] = frozenset()
    """Empty: all."""
    running_longer_than_ms: int | None = None

    @property
    def has_idle(self) -> bool:
        """Whether an id without a transaction may be wanted."""
        return self.running_longer_than_ms is None and (
            not self.states or TransactionState.EMPTY in self.states
        )


class ListCandidates(NamedTuple):
    """The ids that a list may name: no more than its filter forces."""

    names: Sequence[str]
    producer_ids: Sequence[int]
    """`names_of` finds their transactional ids, in pieces; an id may be there twice."""


def candidates(state: TransactionsState, wanted: ListFilter) -> ListCandidates:
    """Return the ids that the whole list may name."""
    if wanted.producer_ids or not wanted.has_idle:
        return open_candidates(state, wanted)
    return ListCandidates([*state.transactional_ids, *state.joints.by_id], ())


def open_candidates(state: TransactionsState, wanted: ListFilter) -> ListCandidates:
    """Return the ids with a transaction, as far as the list may name them."""
    if wanted.producer_ids:
        return ListCandidates((), sorted(wanted.producer_ids))
    undecided = (*state.prepared, *state.decided)
    busy = (*state.ongoing, *(key.producer_id for key in undecided))
    return ListCandidates([*state.joints.open], busy)


def names_of(state: TransactionsState, producer_ids: Iterable[int]) -> list[str]:
    """Return the transactional ids of the producers that are known; one may be there twice."""
    producers = map(state.producers.get, producer_ids)
    return [producer.transactional_id for producer in producers if producer is not None]


def listed(
    state: TransactionsState, names: Iterable[str], wanted: ListFilter, *, now_ms: int
) -> list[TransactionListing]:
    """List those of the transactional ids that the filter wants, in the order given."""
    known = (name for name in names if state.is_known(name))
    found = (listing for name in known for listing in _listings(state, name))
    return [each for each in found if _is_wanted(each, wanted, now_ms)]


def open_positions(state: TransactionsState, names: Iterable[str]) -> list[ListPosition]:
    """Return the positions of the transactions of some ids, at a fifth of the cost of entries."""
    found: list[ListPosition] = []
    for name in names:
        known = state.transactional_ids.get(name)
        if known is not None:
            producer = state.producers[known.producer_id]
            if producer.prepared:
                found += (each.position for each in _prepared_listings(state, producer))
            start_ms = _current(state, producer).start_ms
            found.append(ListPosition(start_ms, producer.producer_epoch, name))
        elif name in state.joints.by_id:
            found.append(_joint_listing(state, state.joints.by_id[name]).position)
    return [position for position in found if position.start_ms]


class _Current(NamedTuple):
    """The current transaction of a producer, or its last one that is decided and not complete."""

    state: TransactionState
    start_ms: int


def _current(state: TransactionsState, producer: Producer) -> _Current:
    ongoing = state.ongoing.get(producer.producer_id)
    if ongoing is not None:
        return _Current(TransactionState.ONGOING, ongoing.start_ms)
    found = _Current(TransactionState.EMPTY, 0)
    for decided in state.incomplete_of(producer.producer_id):
        found = _Current(decided.state, decided.start_ms)
    return found


def _listings(state: TransactionsState, name: str) -> Iterator[TransactionListing]:
    joint = state.joints.by_id.get(name)
    if joint is not None:
        yield _joint_listing(state, joint)
        return
    producer = state.producers[state.transactional_ids[name].producer_id]
    yield from _prepared_listings(state, producer)
    yield _listing(state, producer)


def _prepared_listings(
    state: TransactionsState, producer: Producer
) -> Iterator[TransactionListing]:
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


def _listing(state: TransactionsState, producer: Producer) -> TransactionListing:
    current = _current(state, producer)
    return TransactionListing(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        state=current.state,
        start_ms=current.start_ms,
        incomplete_transactions=state.incomplete_count(producer.producer_id),
        timeout_ms=state.transactional_ids[producer.transactional_id].timeout_ms,
        last_update_ms=producer.last_update_ms,
        fenced_transactions=producer.count_of(AbortReason.FENCED),
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
    return wanted.running_longer_than_ms is None or (
        listing.state is not TransactionState.EMPTY
        and now_ms - listing.start_ms > wanted.running_longer_than_ms
    )
