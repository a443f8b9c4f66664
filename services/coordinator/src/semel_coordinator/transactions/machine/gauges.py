"""How transactions stand, in numbers: what operators watch."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import OngoingTransaction
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import TransactionState


class Standing(Struct, frozen=True, kw_only=True):
    """The transactions of one coordinator that are not complete."""

    counts: Mapping[TransactionState, int]
    oldest_ms: Mapping[TransactionState, int]
    """When the oldest of each state began (the prepared: when they were prepared)."""
    late: int
    """Of the ongoing ones: those whose time is over, and that are not aborted yet."""
    open_joint_transactions: int
    transactional_ids: int


def standing(state: TransactionsState, ownership: Ownership, *, now_ms: int) -> Standing:
    """Count what is served; takes as long as there are transactions."""
    serves = ownership.serves
    ongoing = [each for each in state.ongoing.values() if serves(each.producer_id)]
    prepared = [each for each in state.prepared.values() if serves(each.producer_id)]
    names = filter(ownership.serves_id, (*state.transactional_ids, *state.joints.by_id))
    starts: dict[TransactionState, list[int]] = {
        TransactionState.ONGOING: [each.start_ms for each in ongoing],
        TransactionState.PREPARED: [each.prepared_ms for each in prepared],
        TransactionState.PREPARE_COMMIT: [],
        TransactionState.PREPARE_ABORT: [],
    }
    for decided in state.decided.values():
        if serves(decided.producer_id):
            starts[decided.state].append(decided.start_ms)
    return Standing(
        counts={each: len(those) for each, those in starts.items()},
        oldest_ms={each: min(those) for each, those in starts.items() if those},
        late=_late(state, ongoing, now_ms),
        open_joint_transactions=sum(map(ownership.serves_id, state.joints.open)),
        transactional_ids=sum(1 for _ in names),
    )


def _late(state: TransactionsState, open_ones: Iterable[OngoingTransaction], now_ms: int) -> int:
    late = 0
    for ongoing in open_ones:
        owner = state.transactional_ids.get(state.producers[ongoing.producer_id].transactional_id)
        # A writer of a joint transaction has the time-out of that, and no id of its own.
        if owner is not None and ongoing.is_timed_out(owner.timeout_ms, now_ms):
            late += 1
    return late
