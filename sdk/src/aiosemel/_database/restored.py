"""Where a group goes on in a log, when database, log and committed offset are compared.

Pure: the module ``input_positions`` collects the offsets.
"""

from dataclasses import dataclass
from typing import Protocol

from aiosemel._consumer.partition_state import OffsetReset
from aiosemel.errors import (
    DatabaseAheadError,
    DatabaseBehindError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiosemel.types.after_restore import AfterRestore


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnesses:
    """The three views of one log. Offsets are those of the next record to read."""

    stored: int | None
    """The position in the database; None: it has none."""
    committed: int | None
    """The group's committed offset; None: it has none."""
    begin: int
    """Where the log begins."""
    end: int
    """Where the log ends for readers of committed records."""
    is_other_log: bool
    """Whether the last record that the database processed is another one in the log."""


def _ways_on(reprocess: str, skip: str) -> str:
    return (
        f"Go on with after_restore=AfterRestore.REPROCESS ({reprocess}) or"
        f" after_restore=AfterRestore.SKIP ({skip})"
    )


class Rules(Protocol):
    """The rules for a position that is missing, or does not fit."""

    @property
    def reset(self) -> OffsetReset:
        """Where a new group begins."""
        ...

    @property
    def after_restore(self) -> AfterRestore:
        """What to do after a restore."""
        ...

    @property
    def repeats_outputs(self) -> bool:
        """Whether reading records again sends to topics a second time."""
        ...


def starting_point(what: str, known: Witnesses, rules: Rules) -> int:
    """Return the offset at which to go on.

    ``what`` names group and partition, for errors. Raises DatabaseBehindError, DatabaseAheadError,
    and NoOffsetForPartitionError for a new group whose policy names no start.
    """
    if known.stored is None:
        return _first(what, known, rules)
    if known.is_other_log or known.stored > known.end:
        return _after_lost_log(what, known, known.stored, rules)
    lost = max(0, known.begin - known.stored)
    again = max(0, (known.committed or 0) - known.stored)
    if not lost and not (again and rules.repeats_outputs):
        return known.stored
    match rules.after_restore:
        case AfterRestore.STOP if lost and not again:
            raise OffsetOutOfRangeError(
                f"the database goes on at offset {known.stored} for {what}, and the log begins at"
                f" {known.begin}: {lost} offsets were deleted before they were processed. "
                + _ways_on("at the beginning of the log", "there, too")
            )
        case AfterRestore.STOP:
            raise DatabaseBehindError(
                f"the database is {again} offsets behind the committed offset of {what}: it has"
                f" {known.stored}, the group {known.committed}, so the database went back to a"
                f" backup{f'; the log begins at {known.begin}' if lost else ''}. "
                + _ways_on("reads these records again", "leaves them out")
            )
        case AfterRestore.REPROCESS:
            return max(known.stored, known.begin)
        case AfterRestore.SKIP:
            return max(known.stored, known.begin, known.committed or 0)


def _first(what: str, known: Witnesses, rules: Rules) -> int:
    """Return where a log begins that the database does not know."""
    if known.committed is not None and known.committed > known.begin:
        match rules.after_restore:
            case AfterRestore.STOP:
                raise DatabaseBehindError(
                    f"the database has no position for {what}, and the group has committed offset"
                    f" {known.committed}: the database is a new one, or went back to a backup. "
                    + _ways_on("begins at the start of the log", "begins at that offset")
                )
            case AfterRestore.SKIP:
                return known.committed
            case AfterRestore.REPROCESS:
                return known.begin
    match rules.reset:
        case OffsetReset.EARLIEST:
            return known.begin
        case OffsetReset.LATEST:
            return known.end
        case OffsetReset.NONE:
            raise NoOffsetForPartitionError(
                f"the database has no position for {what}, and auto_offset_reset is none"
            )


def _after_lost_log(what: str, known: Witnesses, stored: int, rules: Rules) -> int:
    """Return where to go on in a log that lacks what the database has processed."""
    match rules.after_restore:
        case AfterRestore.SKIP:
            return known.end
        case AfterRestore.REPROCESS:
            return known.begin
        case AfterRestore.STOP:
            cause = (
                "the log has another record there"
                if known.is_other_log
                else f"the log ends at {known.end}"
            )
            raise DatabaseAheadError(
                f"the database has processed {what} up to offset {stored}, and {cause}: the"
                " cluster went back to a backup. "
                + _ways_on("reads the whole log again", "goes on at the end of the log")
            )
