"""How transactions stand, in numbers: what operators watch."""

from collections.abc import Mapping

from msgspec import Struct

from semel_coordinator.transactions.machine.state import TransactionsState
from semel_coordinator.transactions.machine.states import TransactionState


class Standing(Struct, frozen=True, kw_only=True):
    """The transactions of one coordinator that are not complete."""

    counts: Mapping[TransactionState, int]
    oldest_ms: Mapping[TransactionState, int]
    """When the oldest of each state began (the prepared: when they were prepared)."""
    late: int
    """Of the ongoing ones: those whose time is over, and that are not aborted yet."""
    open_joint_transactions: int
    transactional_ids: int


def standing(state: TransactionsState, *, now_ms: int) -> Standing:
    """Count; takes as long as there are transactions."""
    starts: dict[TransactionState, list[int]] = {
        TransactionState.ONGOING: [each.start_ms for each in state.ongoing.values()],
        TransactionState.PREPARED: [each.prepared_ms for each in state.prepared.values()],
        TransactionState.PREPARE_COMMIT: [],
        TransactionState.PREPARE_ABORT: [],
    }
    for decided in state.decided.values():
        starts[decided.state].append(decided.start_ms)
    return Standing(
        counts={each: len(those) for each, those in starts.items()},
        oldest_ms={each: min(those) for each, those in starts.items() if those},
        late=_late(state, now_ms),
        open_joint_transactions=len(state.joints.open),
        transactional_ids=len(state.transactional_ids) + len(state.joints.by_id),
    )


def _late(state: TransactionsState, now_ms: int) -> int:
    late = 0
    for ongoing in state.ongoing.values():
        owner = state.transactional_ids.get(state.producers[ongoing.producer_id].transactional_id)
        # A writer of a joint transaction has the time-out of that, and no id of its own.
        if owner is not None and ongoing.is_timed_out(owner.timeout_ms, now_ms):
            late += 1
    return late
