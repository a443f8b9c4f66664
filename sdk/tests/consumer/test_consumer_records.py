"""Batches of columns, and the records in them."""

from dataclasses import replace

from aiosemel import ColumnBatch, ConsumerRecord, TopicPartition


def batch(*, keys: list[bytes | None] | None) -> ColumnBatch:
    return ColumnBatch(
        topic_partition=TopicPartition("orders", 1),
        offsets=range(10, 14),
        values=[b"a", None, b"", b"d"],
        keys=keys,
        timestamps_ms=[1, 2, 3, 4],
        headers={1: (("h", None),), 3: (("h", b"1"), ("h", b"2"))},
    )


def test_a_record_has_the_fields_of_its_row() -> None:
    record = batch(keys=[None, b"k", None, b""]).record(1)
    assert record == ConsumerRecord(
        topic="orders",
        partition=1,
        offset=11,
        timestamp_ms=2,
        key=b"k",
        value=None,
        headers=(("h", None),),
    )


def test_all_records_are_the_same_as_each_by_itself() -> None:
    for keys in (None, [None, b"k", b"", b"l"]):
        whole = batch(keys=keys)
        assert whole.records() == [whole.record(i) for i in range(len(whole))]


def test_a_part_of_a_batch_has_the_producer_of_the_whole() -> None:
    whole = replace(batch(keys=None), producer_id=7, producer_epoch=3, is_transactional=True)
    part = whole.between(11, 13)
    assert (part.producer_id, part.producer_epoch, part.is_transactional) == (7, 3, True)


def test_the_records_between_two_offsets_are_those_from_the_first_to_before_the_second() -> None:
    whole = batch(keys=None)
    assert list(whole.between(11, 13).offsets) == [11, 12]
    assert whole.between(0, 99) is whole
    assert not whole.between(14, 99)
    assert not whole.between(12, 11)


def test_a_slice_keeps_rows_together_with_their_headers() -> None:
    for keys in (None, [None, b"k", b"", b"l"]):
        whole = batch(keys=keys)
        assert whole.slice(1, 4).records() == whole.records()[1:]
        assert whole.slice(2, 3).records() == whole.records()[2:3]


def test_a_slice_of_everything_copies_nothing() -> None:
    whole = batch(keys=None)
    assert whole.slice(0, 4) is whole
