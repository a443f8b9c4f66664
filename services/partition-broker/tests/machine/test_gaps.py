"""Where a log may lack batches: the records that say so, and how batches follow one another."""

import pytest
from msgspec.structs import replace

from semel_broker.machine import compaction
from semel_broker.machine.log.gaps import NO_GAPS, first_break, gaps_above, is_allowed, with_gap
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.records import (
    LogCompacted,
    LogEndMoved,
    LogStartMoved,
    LogState,
    LogTakenOver,
    OffsetRange,
)
from semel_runtime.journal.contract import StoredBatch

STATE = LogState(
    log_id=1,
    topic_id="id-orders",
    topic="orders",
    partition=0,
    leader_epoch=0,
    leader_id=1,
    log_start_offset=0,
    log_end_offset=10,
    gaps_known=True,
)


def at(base_offset: int, count: int = 1) -> StoredBatch:
    return StoredBatch(
        partition=1,
        base_offset=base_offset,
        record_count=count,
        max_timestamp_ms=0,
        header=b"",
        payload=b"",
    )


def test_ranges_that_touch_are_one() -> None:
    gaps = with_gap(with_gap(with_gap(NO_GAPS, 8, 9), 1, 3), 3, 5)
    assert gaps == (OffsetRange(1, 5), OffsetRange(8, 9))
    assert with_gap(gaps, 2, 20) == (OffsetRange(1, 20),)
    assert with_gap(gaps, 6, 6) == gaps
    assert gaps_above(gaps, 5) == (OffsetRange(8, 9),)
    assert gaps_above(gaps, 4) == gaps


def test_a_gap_is_allowed_within_one_range() -> None:
    gaps = with_gap(with_gap(NO_GAPS, 1, 3), 4, 6)
    assert is_allowed(gaps, 1, 3)
    assert not is_allowed(gaps, 1, 5)
    assert not is_allowed(NO_GAPS, 1, 2)


@pytest.mark.parametrize(
    ("offset", "batches", "number"),
    [
        (0, [at(0), at(1, 2), at(3)], None),
        (2, [at(1, 2), at(3)], None),
        (0, [at(1)], 0),
        (0, [at(0), at(2)], 1),
        (3, [at(1, 2)], 0),
        (0, [at(0, 2), at(1)], 1),
        (5, [at(5), at(8)], None),
    ],
)
def test_batches_follow_one_another(
    offset: int, batches: list[StoredBatch], number: int | None
) -> None:
    assert first_break(with_gap(NO_GAPS, 6, 8), offset, batches) == number


def test_what_takes_batches_out_of_a_log_says_where() -> None:
    log = PartitionLog(STATE)
    assert log.gaps == NO_GAPS
    (thinned,) = compaction.thinned(log, 4)
    assert list(compaction.thinned(log, 0)) == []
    log.identify(thinned)
    assert list(compaction.thinned(log, 4)) == []
    log.replay(LogEndMoved(log_id=1, log_end_offset=100))
    assert list(log.gaps) == [OffsetRange(0, 4), OffsetRange(10, 100)]
    log.replay(LogStartMoved(log_id=1, log_start_offset=4))
    assert list(log.gaps) == [OffsetRange(10, 100)]
    log.replay(
        LogTakenOver(log_id=1, log_start_offset=0, log_end_offset=9, gaps=(OffsetRange(2, 3),))
    )
    assert list(log.gaps) == [OffsetRange(2, 3)]


def test_a_pass_of_an_earlier_release_said_at_its_end_how_far_it_went() -> None:
    log = PartitionLog(STATE)
    log.replay(LogCompacted(log_id=1, upto=6, records_left=1, size_bytes_left=1))
    assert log.gaps == (OffsetRange(0, 6),)


def test_gaps_are_believed_where_an_earlier_release_did_not_write_them_down() -> None:
    log = PartitionLog(replace(STATE, gaps_known=False))
    assert log.gaps == (OffsetRange(0, 10),)
    assert (log.state().gaps, log.state().gaps_known) == (log.gaps, True)


def test_a_new_leader_changes_no_gap() -> None:
    log = PartitionLog(STATE)
    log.identify(replace(STATE, gaps=(OffsetRange(0, 4),)))
    log.identify(replace(STATE, leader_epoch=1))
    assert log.gaps == (OffsetRange(0, 4),)
