"""States of transactions, groups and instances, as badges. No I/O."""

from collections.abc import Iterable

from aiosemel import GroupState, Participants, TransactionState
from semel_console.insight.texts import duration_text
from semel_console.views import places
from semel_console.views.blocks import NOTHING, Cell, Tone, badge, cell, link

_TRANSACTION_TONES = {
    TransactionState.ONGOING: Tone.WARN,
    TransactionState.PREPARED: Tone.WARN,
    TransactionState.PREPARE_COMMIT: Tone.GOOD,
    TransactionState.PREPARE_ABORT: Tone.BAD,
    TransactionState.COMPLETE_COMMIT: Tone.GOOD,
    TransactionState.COMPLETE_ABORT: Tone.BAD,
}
_GROUP_TONES = {GroupState.STABLE: Tone.GOOD, GroupState.RECONCILING: Tone.WARN}


def transaction_state(state: TransactionState) -> Cell:
    """Return the state of a transaction."""
    return badge(state.value, _TRANSACTION_TONES.get(state, Tone.PLAIN))


def group_state(state: GroupState) -> Cell:
    """Return the state of a group."""
    return badge(state.value, _GROUP_TONES.get(state, Tone.PLAIN))


def age(since_ms: int | None, now_ms: int, *, of_ms: int | None = None) -> Cell:
    """Return how long ago a time was; with a bar, if it is some part of ``of_ms``."""
    if not since_ms:
        return NOTHING
    passed_ms = max(0, now_ms - since_ms)
    share = min(1.0, passed_ms / of_ms) if of_ms else None
    return Cell(text=duration_text(passed_ms), share=share)


def participants(wrote: Participants) -> Iterable[Cell]:
    """Return what a transaction wrote to, each with its page."""
    yield from (link(str(at), places.partition(at)) for at in wrote.partitions)
    yield from (link(f"group {each}", places.group(each)) for each in wrote.group_ids)


def seen(count: int | None) -> Cell:
    """Return a count that asks for attention unless it is zero."""
    return cell(count, Tone.WARN if count else Tone.PLAIN)
