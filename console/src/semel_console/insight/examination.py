"""The examination of a cluster: asks for the answers that the doctor's checks read."""

import time
from dataclasses import dataclass

from aiosemel import Admin, TransactionListing, TransactionOrder, TransactionState
from semel_console.insight import doctor_checks
from semel_console.insight.doctor_checks import Finding, Thresholds

_OPEN_MAX = 1_000
_BUSY = (
    TransactionState.PREPARED,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
)
"""The states of transactions that wait for their owners, or for markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The result of an examination."""

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]
    """Parts that the examination left out, each with the reason."""


async def examine(admin: Admin, limits: Thresholds, *, ids_max: int | None = None) -> Examined:
    """Look for everything that `semel doctor` names; raises SemelError if coordinators are away.

    The examination looks at ``ids_max`` transactional ids beside those with a decided or prepared
    transaction; None: at all.
    """
    opened = await admin.operators.list_open_transactions(limit=_OPEN_MAX)
    listed = await admin.list_transactions(limit=ids_max)
    is_cut = ids_max is not None and len(listed) >= ids_max
    if is_cut:
        busy = await admin.list_transactions(
            states=_BUSY, order=TransactionOrder.OLDEST_FIRST, limit=ids_max
        )
        listed = tuple({_key(each): each for each in (*listed, *busy)}.values())
    described = await admin.describe_cluster()
    moving = await admin.moves.list_partition_reassignments()
    now_ms = time.time_ns() // 1_000_000
    remarks = []
    if opened.truncated:
        remarks.append(f"more than {_OPEN_MAX} transactions are open: looked at the oldest")
    if is_cut:
        remarks.append(
            f"there are more than {ids_max:,} transactional ids: looked for duels and churn among"
            " the first; `semel doctor` looks at all"
        )
    return Examined(
        findings=(
            *doctor_checks.unreachable(opened),
            *doctor_checks.full_disks(described),
            *doctor_checks.waiting_moves(moving, opened),
            *doctor_checks.stuck(opened.transactions, limits),
            *doctor_checks.late_markers(listed, limits, now_ms),
            *doctor_checks.prepared_for_long(listed, limits, now_ms),
            *doctor_checks.nearly_timed_out(opened.transactions, limits),
            *doctor_checks.duels(listed),
            *doctor_checks.churn(listed, limits, now_ms),
        ),
        remarks=tuple(remarks),
    )


def _key(entry: TransactionListing) -> tuple[str, int, TransactionState]:
    """Return the name of an entry: an id has one for each of its prepared transactions."""
    return entry.transactional_id, entry.producer_epoch, entry.state
