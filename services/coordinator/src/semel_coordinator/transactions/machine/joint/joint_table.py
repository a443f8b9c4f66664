"""What each call about a joint transaction is answered, as data.

A call names a version, an owner and a run. The stored state of the transactional id decides which
row applies; earlier rows come first. A committed version is answered as committed before the run is
checked: a client that redoes it only needs to hear that it is done. The owner is checked before
that: otherwise an id in use for other work would drop all of that as repeats.

The coordinator notes every abort, even if it finds nothing to end: its repeat, however late, ends
nothing then. It also notes the writers of an aborted version: a late or repeated join is one of an
attempt that is over, and opens no other one, nor has a writer in it (see `Joint.was_aborted`).
"""

from enum import StrEnum
from typing import NamedTuple, assert_never

from semel_common.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    JointOwnerMismatchError,
    ProducerFencedError,
    SemelError,
    TransactionAbortableError,
)
from semel_coordinator.transactions.machine.joint.joint_entities import JointName
from semel_coordinator.transactions.machine.joint.joint_state import Joint
from semel_coordinator.transactions.machine.state.transitions import AbortReason, Outcome


class JointRow(StrEnum):
    """The relation of a call to the stored state of its transactional id."""

    NEW_ID = "the id is new"
    OTHER_OWNER = "the id has another owner"
    FORMER_OWNER = "the id has another owner, and the run was seen before"
    COMMITTED = "the version, or a later one, is committed"
    SUPERSEDED = "a newer run was seen"
    NEW_RUN = "the run was never seen"
    OPEN = "the version is open"
    OTHER_OPEN = "another version is open"
    IDLE = "no version is open"


class JointAnswer(StrEnum):
    """What a call is answered."""

    DECIDE = "does it"
    OPEN_ANEW = "fences older writers, and opens the version"
    COMMIT_EMPTY = "commits if it names no writer, else TRANSACTION_ABORTABLE"
    COMMIT_NEW = "commits if it names no writer, else INVALID_PRODUCER_ID_MAPPING"
    ALREADY_COMMITTED = "already committed"
    ABORT_EMPTY = "fences older writers, and notes that the version is aborted"
    NOTE = "notes that the version is aborted"
    NOT_OPEN = "TRANSACTION_ABORTABLE"
    CONCURRENT_TRANSACTIONS = "CONCURRENT_TRANSACTIONS"
    PRODUCER_FENCED = "PRODUCER_FENCED"
    OWNER_MISMATCH = "JOINT_OWNER_MISMATCH"


class JointCell(NamedTuple):
    """One row of the table."""

    join: JointAnswer
    reset: JointAnswer
    """JoinTxn with reset."""
    keep_alive: JointAnswer
    commit: JointAnswer
    abort: JointAnswer


_A = JointAnswer

JOINT_TABLE: dict[JointRow, JointCell] = {
    # After an id was forgotten, it is unknown whether its writers were committed.
    JointRow.NEW_ID: JointCell(
        _A.OPEN_ANEW, _A.OPEN_ANEW, _A.NOT_OPEN, _A.COMMIT_NEW, _A.ABORT_EMPTY
    ),
    JointRow.OTHER_OWNER: JointCell(
        _A.OWNER_MISMATCH, _A.OPEN_ANEW, _A.OWNER_MISMATCH, _A.OWNER_MISMATCH, _A.OWNER_MISMATCH
    ),
    # A delayed join of the owner before must not take the id back.
    JointRow.FORMER_OWNER: JointCell(
        _A.OWNER_MISMATCH,
        _A.PRODUCER_FENCED,
        _A.OWNER_MISMATCH,
        _A.OWNER_MISMATCH,
        _A.OWNER_MISMATCH,
    ),
    JointRow.COMMITTED: JointCell(
        _A.ALREADY_COMMITTED,
        _A.ALREADY_COMMITTED,
        _A.ALREADY_COMMITTED,
        _A.ALREADY_COMMITTED,
        _A.ALREADY_COMMITTED,
    ),
    JointRow.SUPERSEDED: JointCell(
        _A.PRODUCER_FENCED,
        _A.PRODUCER_FENCED,
        _A.PRODUCER_FENCED,
        _A.PRODUCER_FENCED,
        _A.PRODUCER_FENCED,
    ),
    JointRow.NEW_RUN: JointCell(
        _A.OPEN_ANEW, _A.OPEN_ANEW, _A.NOT_OPEN, _A.COMMIT_EMPTY, _A.ABORT_EMPTY
    ),
    JointRow.OPEN: JointCell(_A.DECIDE, _A.DECIDE, _A.DECIDE, _A.DECIDE, _A.DECIDE),
    JointRow.OTHER_OPEN: JointCell(
        _A.CONCURRENT_TRANSACTIONS,
        _A.CONCURRENT_TRANSACTIONS,
        _A.NOT_OPEN,
        _A.CONCURRENT_TRANSACTIONS,
        _A.NOTE,
    ),
    JointRow.IDLE: JointCell(
        _A.OPEN_ANEW, _A.OPEN_ANEW, _A.NOT_OPEN, _A.COMMIT_EMPTY, _A.ABORT_EMPTY
    ),
}
"""What JoinTxn, KeepAliveTxn and EndJointTxn are answered."""


def row_of(joint: Joint | None, name: JointName) -> JointRow:
    """Return the row of a call."""
    if joint is None:
        return JointRow.NEW_ID
    known = joint.known
    was_seen = name.run == known.run or name.run in known.superseded
    if name.owner != known.owner:
        return JointRow.FORMER_OWNER if was_seen else JointRow.OTHER_OWNER
    if name.txn_version <= known.committed_version:
        return JointRow.COMMITTED
    if not was_seen:
        return JointRow.NEW_RUN
    if name.run != known.run:
        return JointRow.SUPERSEDED
    if not joint.is_open:
        return JointRow.IDLE
    return JointRow.OPEN if name.txn_version == known.open_version else JointRow.OTHER_OPEN


def refused(
    joint: Joint | None,
    name: JointName,
    answer: JointAnswer,
    *,
    reason: AbortReason | None = None,
) -> SemelError:
    """Make the error of an answer that is one; `reason`: why the version is not open, if known."""
    what = f"{name.transactional_id!r}: version {name.txn_version} of run {name.run!r}"
    match answer:
        case JointAnswer.PRODUCER_FENCED:
            # It never committed, and never will: its row is looked at after COMMITTED.
            return ProducerFencedError(
                f"{what} is fenced by a newer run",
                outcome=Outcome.ABORTED.value,
                reason=AbortReason.FENCED.value,
            )
        case JointAnswer.NOT_OPEN | JointAnswer.COMMIT_EMPTY:
            why = "" if reason is None else f" ({reason})"
            facts = {} if reason is None else {"reason": reason.value}
            return TransactionAbortableError(
                f"{what} is not open{why}: its writers are aborted, or were never there",
                outcome=Outcome.ABORTED.value,
                **facts,
            )
        case JointAnswer.COMMIT_NEW:
            return InvalidProducerIdMappingError(f"{name.transactional_id!r} is not known")
        case JointAnswer.CONCURRENT_TRANSACTIONS:
            assert joint is not None
            return ConcurrentTransactionsError(
                f"{what} has to wait: version {joint.known.open_version} is open"
            )
        case JointAnswer.OWNER_MISMATCH:
            assert joint is not None
            return JointOwnerMismatchError(
                f"{name.transactional_id!r} belongs to the owner {joint.known.owner!r}, not to"
                f" {name.owner!r}",
                owner=joint.known.owner,
            )
        case (
            JointAnswer.DECIDE
            | JointAnswer.OPEN_ANEW
            | JointAnswer.ALREADY_COMMITTED
            | JointAnswer.ABORT_EMPTY
            | JointAnswer.NOTE
        ):
            raise AssertionError(f"{answer} is no error")
        case _:
            assert_never(answer)
