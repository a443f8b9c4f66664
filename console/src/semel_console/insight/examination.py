"""The examination of a cluster: asks for the answers that the doctor's checks read."""

import asyncio
import time
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from typing import TypeVar

from aiosemel import (
    Admin,
    OpenTransactions,
    TransactionListing,
    TransactionOrder,
    TransactionState,
)
from aiosemel.errors import IncompleteListError, RetriableError, SemelError
from semel_console.insight import doctor_checks
from semel_console.insight.doctor_checks import Finding, Thresholds

T = TypeVar("T")

_OPEN_MAX = 1_000
_NOTHING_OPEN = OpenTransactions(transactions=(), truncated=False, unreachable=())
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
    transaction; None: at all. If some of the coordinators are away, it says what it left out.
    """
    described = await admin.describe_cluster()
    async with asyncio.TaskGroup() as tasks:
        opening = tasks.create_task(
            _told(admin.operators.list_open_transactions(limit=_OPEN_MAX), _NOTHING_OPEN)
        )
        listing = tasks.create_task(_listed(admin, ids_max))
        moving = tasks.create_task(_told(admin.moves.list_partition_reassignments(), {}))
    opened, opening_error = opening.result()
    listed, listing_error = listing.result()
    moves, moving_error = moving.result()
    left_out = {
        "open transactions": opening_error,
        "some transactional ids" if listed else "transactional ids": listing_error,
        "moves of partitions": moving_error,
    }
    errors = _some(left_out.values())
    is_cut = ids_max is not None and len(listed) >= ids_max
    now_ms = time.time_ns() // 1_000_000
    remarks = [f"{name} are left out: {error.message}" for name, error in left_out.items() if error]
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
            *doctor_checks.silent_coordinators(described, errors),
            *doctor_checks.full_disks(described),
            *doctor_checks.waiting_moves(moves, opened),
            *doctor_checks.stuck(opened.transactions, limits),
            *doctor_checks.late_markers(listed, limits, now_ms),
            *doctor_checks.prepared_for_long(listed, limits, now_ms),
            *doctor_checks.nearly_timed_out(opened.transactions, limits),
            *doctor_checks.duels(listed),
            *doctor_checks.churn(listed, limits, now_ms),
        ),
        remarks=tuple(remarks),
    )


def _some(errors: Collection[SemelError | None]) -> list[SemelError]:
    """Return the errors of coordinators that are away; raises others, and one if all are."""
    found = [each for each in errors if each is not None]
    knows_nothing = len(found) == len(errors)
    causes: list[SemelError] = []
    for error in found:
        if isinstance(error, IncompleteListError):
            causes += error.errors.values()
        elif knows_nothing or not isinstance(error, RetriableError):
            raise error
        else:
            causes.append(error)
    return causes


async def _told(asked: Awaitable[T], nothing: T) -> tuple[T, SemelError | None]:
    """Return an answer and None; else its part, or nothing, and the reason why."""
    try:
        return await asked, None
    except IncompleteListError as error:
        return error.partial, error
    except SemelError as error:
        return nothing, error


async def _listed(
    admin: Admin, ids_max: int | None
) -> tuple[tuple[TransactionListing, ...], SemelError | None]:
    """Return some transactional ids, and all with a decided or prepared transaction."""
    listed, error = await _told(admin.list_transactions(limit=ids_max), ())
    if ids_max is None or len(listed) < ids_max:
        return listed, error
    busy, busy_error = await _told(
        admin.list_transactions(states=_BUSY, order=TransactionOrder.OLDEST_FIRST, limit=ids_max),
        (),
    )
    return tuple({_key(each): each for each in (*listed, *busy)}.values()), error or busy_error


def _key(entry: TransactionListing) -> tuple[str, int, TransactionState]:
    """Return the name of an entry: an id has one for each of its prepared transactions."""
    return entry.transactional_id, entry.producer_epoch, entry.state
