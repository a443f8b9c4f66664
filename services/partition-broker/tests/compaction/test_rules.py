"""The records that a pass keeps and removes, rule by rule."""

import pytest
from compaction_harness import DAMAGE, OPENED_MAX_BYTES, RETENTION_MS, Log, Reader, Write, state_of

from semel.common.v1.records_pb2 import Codec
from semel_broker.storage.stored_batches import read_batch
from semel_common.record_batches.batches import check_crc


@pytest.fixture
def log() -> Log:
    return Log()


def values(log: Log) -> list[bytes | None]:
    """Return the committed values that are left."""
    return [record.value for record in log.committed()]


def offsets(log: Log) -> list[int]:
    """Return the base offsets of the batches that are left."""
    return [batch.base_offset for batch in log.batches()]


# -- records --------------------------------------------------------------------------------------


def test_of_each_key_the_newest_record_stays_at_its_offset(log: Log) -> None:
    log.append(Write(b"a", b"1"), Write(b"b", b"1"), Write(b"a", b"2"))
    log.append(Write(b"b", b"2"))
    log.append(Write(b"c", b"1"))

    log.compact()

    assert [(each.offset, each.key, each.value) for each in log.committed()] == [
        (2, b"a", b"2"),
        (3, b"b", b"2"),
        (4, b"c", b"1"),
    ]
    assert offsets(log) == [0, 3, 4]
    assert [batch.record_count for batch in log.batches()] == [3, 1, 1]
    assert log.records_left == 3


def test_the_rest_of_a_batch_keeps_time_headers_codec_and_producer(log: Log) -> None:
    log.append(
        Write(b"a", b"1"), Write(b"b", None), Write(b"", b""), codec=Codec.CODEC_ZSTD, producer_id=1
    )
    log.end(1, commit=True)
    log.append(Write(b"b", b"2"))
    before = {each.offset: each for each in log.committed()}

    log.compact()

    batch = read_batch(log.batches()[0])
    check_crc(batch, batch.payload)
    assert batch.codec == Codec.CODEC_ZSTD
    assert (batch.producer_id, batch.transactional, batch.record_count) == (1, True, 3)
    assert batch.max_timestamp_ms == log.batches()[0].max_timestamp_ms == before[2].timestamp_ms
    assert log.committed() == [before[0], before[2], before[4]]


def test_the_time_of_a_batch_is_that_of_the_newest_record_left(log: Log) -> None:
    log.append(Write(b"a", b"1"), Write(b"b", b"1"))
    log.append(Write(b"b", b"2"))

    log.compact()

    assert [batch.max_timestamp_ms for batch in log.batches()] == [1_000_000, 1_000_000]


def test_a_log_without_anything_to_take_stays_as_it_is(log: Log) -> None:
    log.append(Write(b"a", b"1"))
    log.append(Write(b"b", b"1"), producer_id=1)
    log.end(1, commit=True)

    log.compact()

    assert log.store == log.original


def test_records_without_a_key_are_nobodys_newest(log: Log) -> None:
    log.append(Write(None, b"1"), Write(b"a", b"1"))
    log.append(Write(None, b"2"))

    log.compact()

    assert values(log) == [b"1"]
    assert offsets(log) == [0]


def test_an_empty_key_is_a_key(log: Log) -> None:
    log.append(Write(b"", b"1"))
    log.append(Write(b"", b"2"))

    log.compact()

    assert values(log) == [b"2"]


# -- transactions ----------------------------------------------------------------------------------


def test_c165_aborted_records_go_first_and_replace_nothing(log: Log) -> None:
    log.append(Write(b"a", b"1"))
    log.append(Write(b"a", b"aborted"), producer_id=1)
    marker = log.end(1, commit=False)

    log.compact()

    assert values(log) == [b"1"]
    assert offsets(log) == [0, marker]


def test_c165_the_marker_goes_when_it_has_outlived_its_records_long_enough(log: Log) -> None:
    log.append(Write(b"a", b"aborted"), producer_id=1)
    marker = log.end(1, commit=False)

    log.compact()
    log.now_ms += RETENTION_MS - 1
    log.compact()
    assert offsets(log) == [marker]
    log.now_ms += 1
    log.compact()
    assert offsets(log) == []


def test_a_marker_stays_while_a_record_of_its_transaction_does(log: Log) -> None:
    log.append(Write(b"a", b"1"), Write(b"b", b"1"), producer_id=1)
    marker = log.end(1, commit=True)
    for _ in range(3):
        log.compact()
        log.now_ms += RETENTION_MS
    assert offsets(log) == [0, marker]

    log.append(Write(b"a", b"2"), Write(b"b", b"2"))
    log.compact()
    assert offsets(log) == [marker, marker + 1]
    log.now_ms += RETENTION_MS
    log.compact()
    assert offsets(log) == [marker + 1]


def test_nothing_at_or_above_the_last_stable_offset_counts(log: Log) -> None:
    log.append(Write(b"a", b"1"))
    log.append(Write(b"a", b"open"), producer_id=1)
    log.append(Write(b"a", b"2"))
    log.append(Write(b"a", b"3"))

    log.compact()

    assert log.store == log.original
    assert log.compacted_upto == 1


def test_a_key_that_reads_as_a_marker_does_no_harm(log: Log) -> None:
    log.append(Write(b"\x00\x00\x00\x01", b"1"), producer_id=1)
    marker = log.end(1, commit=True)
    log.append(Write(b"\x00\x00\x00\x01", b"2"))

    log.compact()

    assert offsets(log) == [marker, marker + 1]


# -- tombstones ------------------------------------------------------------------------------------


def test_a_tombstone_stays_for_its_time_after_what_it_deletes_has_gone(log: Log) -> None:
    log.append(Write(b"a", b"1"))
    log.append(Write(b"a", None))
    log.now_ms += 10 * RETENTION_MS  # Its age does not matter.

    log.compact()
    assert values(log) == [None]
    log.now_ms += RETENTION_MS - 1
    log.compact()
    assert values(log) == [None]
    log.now_ms += 1
    log.compact()
    assert offsets(log) == []


def test_a_tombstone_takes_no_neighbour_with_it(log: Log) -> None:
    log.append(Write(b"a", None), Write(b"b", b"1"))
    log.compact()
    log.now_ms += RETENTION_MS

    log.compact()

    assert values(log) == [b"1"]
    assert read_batch(log.batches()[0]).delete_horizon_ms == 0


def test_a_reader_that_saw_a_value_learns_of_its_deletion(log: Log) -> None:
    log.append(Write(b"a", b"1"))
    log.append(Write(b"b", b"1"))
    log.append(Write(b"a", None))
    reader = Reader(0, started_ms=log.now_ms, judges_for_itself=False)
    reader.read(log)
    for _ in range(2):
        log.compact()
        log.now_ms += RETENTION_MS - 1

    while reader.read(log):
        pass

    assert state_of(reader.records) == {b"b": b"1"}


# -- what cannot be opened -------------------------------------------------------------------------


def test_a_batch_too_large_to_be_opened_stays_and_so_do_tombstones_above_it(log: Log) -> None:
    log.append(Write(b"b", None))
    large = bytes(OPENED_MAX_BYTES)
    log.append(Write(b"a", large), codec=Codec.CODEC_ZSTD)
    log.append(Write(b"a", None))
    for _ in range(3):
        log.compact()
        log.now_ms += RETENTION_MS

    assert values(log) == [large, None]
    assert state_of(log.committed()) == {}


def test_a_damaged_batch_is_left_as_it_is_and_not_sealed_again(log: Log) -> None:
    damaged = log.append(Write(b"a", b"1"), damaged=True)
    log.append(Write(b"a", b"2"))

    log.compact()

    assert log.store[damaged].payload == DAMAGE
    assert log.store == log.original


def test_the_marker_of_a_transaction_that_cannot_be_opened_stays(log: Log) -> None:
    log.append(Write(b"a", bytes(OPENED_MAX_BYTES)), producer_id=1, codec=Codec.CODEC_ZSTD)
    log.end(1, commit=True)
    for _ in range(3):
        log.compact()
        log.now_ms += RETENTION_MS

    assert log.store == log.original


# -- passes ----------------------------------------------------------------------------------------


def test_with_little_memory_a_pass_ends_early_and_the_next_goes_on_from_there(log: Log) -> None:
    for value in (b"1", b"2"):
        for key in (b"a", b"b", b"c"):
            log.append(Write(key, value))

    log.compact(keys_max=2)
    assert log.compacted_upto == 2
    for _ in range(4):
        log.compact(keys_max=2)

    assert log.compacted_upto == 6
    assert values(log) == [b"2", b"2", b"2"]


def test_a_pass_that_was_killed_has_lost_nothing_and_is_made_again(log: Log) -> None:
    for value in (b"1", b"2", b"3"):
        log.append(Write(b"a", value), Write(b"b", value))

    log.compact(steps_max=1, step=1)
    assert values(log) == [b"2", b"2", b"3", b"3"]
    assert log.compacted_upto == 0
    log.compact()

    assert values(log) == [b"3", b"3"]
