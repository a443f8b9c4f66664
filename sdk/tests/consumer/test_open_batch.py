"""How fetched batches become columns."""

import pytest

import semel_common.record_batches.batches
from aiosemel import BatchPlace, ConsumerOptions, TopicPartition
from aiosemel._consumer.fetched_batch import open_batch
from aiosemel.errors import CorruptMessageError, InvalidConfigError, MessageTooLargeError
from semel.common.v1.records_pb2 import Codec, RecordBatch, Records
from semel_common.record_batches.batches import Columns, checksum, encode_records, seal
from semel_common.record_batches.compression import decompress
from semel_runtime.testing.payloads import header_bomb

P0 = TopicPartition("orders", 0)


def fetched(records: Records, record_count: int) -> RecordBatch:
    batch = RecordBatch(
        base_offset=100, record_count=record_count, payload=records.SerializeToString()
    )
    batch.crc32c = checksum(batch, batch.payload)
    return batch


def test_records_that_compaction_has_left_keep_their_offsets() -> None:
    batch = fetched(Records(values=[b"b", b"d"], offset_deltas=[1, 3]), record_count=5)
    records, size_bytes = open_batch(ConsumerOptions())(P0, batch)
    offsets_and_values = [(record.offset, record.value) for record in records.records()]
    assert offsets_and_values == [(101, b"b"), (103, b"d")]
    assert size_bytes == len(batch.payload)


def test_the_size_of_a_compressed_batch_is_what_it_is_once_it_is_opened() -> None:
    columns = Columns(values=[b"x" * 1_000], keys=None, timestamps_ms=[1], headers={})
    batch = seal(
        columns,
        producer_id=0,
        producer_epoch=0,
        base_sequence=0,
        transactional=False,
        codec=Codec.CODEC_ZSTD,
    )
    assert len(batch.payload) < 100
    assert open_batch(ConsumerOptions())(P0, batch).size_bytes == len(encode_records(columns))


@pytest.mark.parametrize("check_crcs", [True, False])
def test_a_damaged_batch_is_named(check_crcs: bool) -> None:
    batch = fetched(Records(values=[b"a"]), record_count=1)
    batch.record_count = 2
    with pytest.raises(CorruptMessageError, match="orders-0, offset 100: ") as raised:
        open_batch(ConsumerOptions(check_crcs=check_crcs))(P0, batch)
    assert raised.value.details == {
        "topic": "orders",
        "partition": "0",
        "offset": "100",
        "next_offset": "102",
    }
    assert "seek to offset 102, or name orders:0:100 in skip_batches" in raised.value.message


def test_a_batch_that_would_fill_the_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object, **_options: object) -> bytes:
        raise MessageTooLargeError("over the limit")

    monkeypatch.setattr(semel_common.record_batches.batches, decompress.__name__, fails)
    with pytest.raises(MessageTooLargeError, match="orders-0, offset 100: "):
        open_batch(ConsumerOptions())(P0, fetched(Records(values=[b"a"]), record_count=1))


def test_only_the_batch_that_is_named_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    bomb = header_bomb()
    bomb.base_offset = 100
    opened = open_batch(ConsumerOptions(skip_batches=[("orders", 0, 100)]))
    assert len(opened(P0, bomb).records) == 0
    assert "batch orders:0:100 skipped" in caplog.text
    bomb.base_offset = 101
    with pytest.raises(MessageTooLargeError, match="name orders:0:101 in skip_batches"):
        opened(P0, bomb)


def test_a_named_batch_that_can_be_opened_is_read() -> None:
    opened = open_batch(ConsumerOptions(skip_batches=[("orders", 0, 100)]))
    assert len(opened(P0, fetched(Records(values=[b"a"]), record_count=1)).records) == 1


def test_a_batch_is_opened_up_to_the_size_that_the_options_say() -> None:
    batch = fetched(Records(values=[b"x" * 1_000]), record_count=1)
    size_bytes = len(batch.payload)
    opened = open_batch(ConsumerOptions(opened_batch_max_bytes=size_bytes))
    assert len(opened(P0, batch).records) == 1
    with pytest.raises(MessageTooLargeError, match=f"{size_bytes} bytes"):
        open_batch(ConsumerOptions(opened_batch_max_bytes=size_bytes - 1))(P0, batch)


@pytest.mark.parametrize("place", [("orders", 0), ("orders", 0, -1), ("orders", "0", 1), "a:0:1"])
def test_a_batch_that_is_not_named_by_its_place_is_refused(place: tuple[str, int, int]) -> None:
    with pytest.raises(InvalidConfigError, match=r"named by \(topic, partition, offset\)"):
        ConsumerOptions(skip_batches=[place])


@pytest.mark.parametrize("text", ["orders", "orders:0", "orders:x:1", ":0:1", "orders:0:-1"])
def test_a_text_that_names_no_batch_is_refused(text: str) -> None:
    assert str(BatchPlace.parse("orders:0:42")) == "orders:0:42"
    with pytest.raises(InvalidConfigError, match="TOPIC:PARTITION:OFFSET"):
        BatchPlace.parse(text)
