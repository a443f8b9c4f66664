"""Where batches of a log may be missing: everywhere else they follow one another. Pure.

Theory of operation. Offsets are given densely, so the store has a batch for each of them, from the
start of a log to its end. Two things take batches out of the midst of a log: compaction, and a
recovery, after which the log goes on far above. Both are written down before they happen. A reader
that meets a gap in any other place has met damage.

An earlier release did not write this down. What it has left is known to be unknown
(`LogState.gaps_known`): there a gap is believed.
"""

from collections.abc import Iterable, Iterator, Sequence

from semel_broker.machine.records import OffsetRange
from semel_runtime.journal.contract import StoredBatch

Gaps = tuple[OffsetRange, ...]
"""Ascending, and none touches the next one."""

NO_GAPS: Gaps = ()


def with_gap(gaps: Gaps, start_offset: int, end_offset: int) -> Gaps:
    """Return gaps with one more range in which batches may be missing."""
    if start_offset >= end_offset:
        return gaps
    return tuple(_merged(sorted((*gaps, OffsetRange(start_offset, end_offset)))))


def gaps_above(gaps: Gaps, offset: int) -> Gaps:
    """Return what matters of gaps above the start of a log."""
    if not gaps or gaps[0].end_offset > offset:
        return gaps
    return tuple(gap for gap in gaps if gap.end_offset > offset)


def is_allowed(gaps: Gaps, start_offset: int, end_offset: int) -> bool:
    """Whether all batches between two offsets may be missing."""
    return any(gap.start_offset <= start_offset and end_offset <= gap.end_offset for gap in gaps)


def first_break(gaps: Gaps, offset: int, batches: Sequence[StoredBatch]) -> int | None:
    """Return the number of the first batch that does not follow; None: all of them do.

    The first one holds `offset`, or begins there; each other one begins where the one before it
    ends. Between them may be gaps that are allowed.
    """
    at = offset
    for number, batch in enumerate(batches):
        begins = batch.base_offset
        if begins > at and not is_allowed(gaps, at, begins):
            return number
        if begins < at and (number or begins + batch.record_count <= at):
            return number
        at = begins + batch.record_count
    return None


def _merged(gaps: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    """Yield ascending ranges, those in one that touch one another."""
    last: OffsetRange | None = None
    for gap in gaps:
        if last is None:
            last = gap
        elif gap.start_offset <= last.end_offset:
            last = OffsetRange(last.start_offset, max(last.end_offset, gap.end_offset))
        else:
            yield last
            last = gap
    if last is not None:
        yield last
