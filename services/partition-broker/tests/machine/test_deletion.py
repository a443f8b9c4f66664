"""Deletion at the start of a log: by age, by size, by DeleteRecords; never an open transaction."""

import pytest
from broker_harness import (
    OTHER,
    PLAIN,
    BrokerHarness,
    at,
    entities,
    header,
)

from semel_broker.machine.log.segments import BATCH_OVERHEAD_BYTES
from semel_broker.machine.values import DeletePosition
from semel_common.errors import (
    InvalidRequestError,
    MessageTooLargeError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    SemelError,
)

BATCH_BYTES = 1_024 - BATCH_OVERHEAD_BYTES
"""A batch of this payload takes 1,024 bytes."""


@pytest.fixture
def broker() -> BrokerHarness:
    """A broker whose topic deletes in steps of single batches, and keeps everything."""
    harness = BrokerHarness()
    harness.configure(segment_bytes=1_024, retention_ms=-1)
    return harness


def fill(broker: BrokerHarness, count: int, *, every_ms: int = 0) -> None:
    """Append batches of one record and 1,024 bytes."""
    for _ in range(count):
        broker.produce(header(producer_id=PLAIN, size_bytes=BATCH_BYTES))
        broker.now_ms += every_ms


# -- by age ----------------------------------------------------------------------------------------


def test_what_is_older_than_retention_ms_goes(broker: BrokerHarness) -> None:
    broker.configure(retention_ms=1_000)
    fill(broker, 5, every_ms=400)
    broker.retain()
    assert broker.start_offset == 3
    broker.now_ms += 200
    broker.retain()
    assert broker.start_offset == 3, "exactly as old as allowed is kept"
    broker.now_ms += 1
    broker.retain()
    assert broker.start_offset == 4


def test_the_last_segment_goes_too_and_the_log_goes_on_at_its_end(broker: BrokerHarness) -> None:
    broker.configure(retention_ms=1_000)
    fill(broker, 3)
    broker.now_ms += 1_001
    broker.retain()
    assert (broker.start_offset, broker.end_offset) == (3, 3)
    fill(broker, 1)
    broker.retain()
    assert (broker.start_offset, broker.end_offset) == (3, 4)


def test_a_segment_is_as_old_as_its_last_append(broker: BrokerHarness) -> None:
    broker.configure(retention_ms=1_000, segment_bytes=1 << 20, segment_ms=600)
    fill(broker, 4, every_ms=300)
    broker.retain()
    assert broker.start_offset == 0, "offsets 0 and 1 are one segment, of which 1 is too young"
    broker.now_ms += 200
    broker.retain()
    assert broker.start_offset == 2


def test_a_clock_that_goes_back_makes_nothing_older(broker: BrokerHarness) -> None:
    broker.configure(retention_ms=1_000, segment_bytes=1 << 20)
    fill(broker, 1)
    broker.now_ms -= 900
    fill(broker, 1)
    broker.now_ms += 1_500
    broker.retain()
    assert broker.start_offset == 0


def test_by_default_a_week_is_kept() -> None:
    broker = BrokerHarness()
    fill(broker, 1)
    broker.now_ms += 7 * 86_400_000
    broker.retain()
    assert broker.start_offset == 0
    broker.now_ms += 1
    broker.retain()
    assert broker.start_offset == 1


# -- by size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention_bytes", "start"), [(-1, 0), (0, 5), (1_024, 4), (3_000, 2), (5_120, 0)]
)
def test_at_least_retention_bytes_are_kept(
    broker: BrokerHarness, retention_bytes: int, start: int
) -> None:
    fill(broker, 5)
    broker.configure(retention_bytes=retention_bytes)
    broker.retain()
    assert broker.start_offset == start


def test_markers_take_room_too(broker: BrokerHarness) -> None:
    broker.configure(retention_bytes=0, segment_bytes=1 << 20)
    broker.append(producer_id=OTHER)
    broker.commit(producer_id=OTHER)
    (log,) = [log for log in broker.machine._logs if log.log_id == 0]
    assert log.segments.total_bytes == 2 * BATCH_OVERHEAD_BYTES
    broker.retain()
    assert (log.segments.total_bytes, broker.start_offset) == (0, 2)


# -- what stays ------------------------------------------------------------------------------------


def test_nothing_that_is_open_is_cut(broker: BrokerHarness) -> None:
    broker.configure(retention_bytes=0)
    fill(broker, 2)
    broker.produce(header(producer_id=OTHER, size_bytes=BATCH_BYTES))
    fill(broker, 2)
    broker.retain()
    assert broker.start_offset == broker.last_stable_offset == 2
    broker.commit(producer_id=OTHER)
    broker.retain()
    assert broker.start_offset == broker.end_offset == 6


def test_a_topic_that_is_only_compacted_keeps_its_records(broker: BrokerHarness) -> None:
    broker.configure(retention_bytes=0, cleanup_policy="compact")
    fill(broker, 2)
    broker.retain()
    assert broker.start_offset == 0
    with pytest.raises(PolicyViolationError, match="policy is compact"):
        broker.delete_records(1)
    broker.configure(cleanup_policy="compact,delete")
    broker.retain()
    assert broker.start_offset == 2


def test_segments_survive_a_restart(broker: BrokerHarness) -> None:
    fill(broker, 5, every_ms=10)
    broker.delete_records(2)
    for machine in (broker.replayed(), broker.restored()):
        assert entities(machine) == broker.entities()
        broker.machine = machine
        (log,) = [log for log in machine._logs if log.log_id == 0]
        assert [segment.base_offset for segment in log.segments] == [2, 3, 4]
        assert log.segments.total_bytes == 3 * 1_024


# -- DeleteRecords ---------------------------------------------------------------------------------


def test_records_below_an_offset_are_deleted_and_the_rest_is_read_on(
    broker: BrokerHarness,
) -> None:
    fill(broker, 5)
    deleted = broker.delete_records(3)
    assert (deleted.log_start_offset, deleted.deleted_offsets) == (3, 3)
    with pytest.raises(OffsetOutOfRangeError) as caught:
        broker.plan(2)
    assert caught.value.details == {"log_start_offset": "3", "high_watermark": "5"}
    assert broker.plan(3).log_start_offset == 3


def test_deleting_again_changes_nothing(broker: BrokerHarness) -> None:
    fill(broker, 5)
    broker.delete_records(3)
    entries = len(broker.journal)
    for before in (0, 2, 3):
        assert broker.delete_records(before).deleted_offsets == 0
    assert len(broker.journal) == entries


def test_a_deletion_in_the_middle_of_a_batch_keeps_the_rest_of_it(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=10)
    broker.delete_records(4)
    assert broker.plan(4).log_start_offset == 4


def test_a_dry_run_says_what_would_be_and_changes_nothing(broker: BrokerHarness) -> None:
    fill(broker, 5)
    assert broker.delete_records(None, dry=True).deleted_offsets == 5
    assert broker.start_offset == 0


def test_where_nothing_is_open_it_is_not_named_as_the_cause(broker: BrokerHarness) -> None:
    fill(broker, 2)
    with pytest.raises(OffsetOutOfRangeError, match=r"^offset 3 is past the high watermark 2$"):
        broker.delete_records(3)


def test_past_the_last_stable_offset_nothing_is_deleted(broker: BrokerHarness) -> None:
    fill(broker, 2)
    broker.append(producer_id=OTHER)
    with pytest.raises(OffsetOutOfRangeError, match="stable offset 2: open transactions") as caught:
        broker.delete_records(3)
    assert caught.value.details == {
        "log_start_offset": "0",
        "last_stable_offset": "2",
        "high_watermark": "3",
    }
    assert broker.delete_records(None).log_start_offset == 2


def test_each_partition_is_answered_for_itself(broker: BrokerHarness) -> None:
    fill(broker, 1)
    with pytest.raises(NotLeaderOrFollowerError):
        broker.delete_records(0, name=at(2))
    positions = [broker_position(0), broker_position(0)]
    answers = broker.run(broker.machine.log_starts.delete_records(positions))
    assert [isinstance(answer, InvalidRequestError) for answer in answers] == [False, True]


def test_a_repeat_of_a_deleted_record_is_still_a_repeat(broker: BrokerHarness) -> None:
    broker.append(producer_id=OTHER)
    broker.commit(producer_id=OTHER)
    broker.delete_records(None)
    assert broker.append(producer_id=OTHER) == 0
    assert broker.end_offset == 2


# -- the size of batches ---------------------------------------------------------------------------


def test_how_large_a_batch_may_be_is_its_topics_to_say(broker: BrokerHarness) -> None:
    large = header(producer_id=PLAIN, size_bytes=1_048_589)
    with pytest.raises(MessageTooLargeError) as caught:
        broker.produce(large)
    assert caught.value.details == {"message_max_bytes": "1048588", "size_bytes": "1048589"}
    broker.configure(max_message_bytes=1_048_589)
    broker.produce(large)
    broker.configure(max_message_bytes=2_000)
    with pytest.raises(MessageTooLargeError, match="payload of 2001 bytes is over 2000"):
        broker.produce(header(producer_id=PLAIN, size_bytes=2_001))


def test_a_repeat_is_one_also_when_its_topic_takes_no_such_batch_any_more(
    broker: BrokerHarness,
) -> None:
    large = header(producer_id=OTHER, transactional=False, size_bytes=2_001)
    stored = broker.produce(large)
    broker.configure(max_message_bytes=2_000)
    assert broker.produce(large).base_offset == stored.base_offset
    assert broker.end_offset == 1


def broker_position(before: int) -> DeletePosition:
    return DeletePosition(at(), before)


def test_options_of_a_topic_hold_after_a_restart(broker: BrokerHarness) -> None:
    broker.configure(max_message_bytes=2_000)
    for machine in (broker.replayed(), broker.restored()):
        broker.machine = machine
        with pytest.raises(SemelError, match="over 2000"):
            broker.produce(header(producer_id=PLAIN, size_bytes=2_001))
