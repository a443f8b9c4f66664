"""How fetched batches become columns."""

import pytest

import semel_common.batches
from aiosemel._open_batch import open_batch
from aiosemel.errors import CorruptMessageError, MessageTooLargeError
from aiosemel.offsets import TopicPartition
from semel.common.v1.records_pb2 import Codec, RecordBatch, Records
from semel_common.batches import Columns, checksum, encode_records, seal
from semel_common.compression import decompress

P0 = TopicPartition("orders", 0)


def fetched(records: Records, record_count: int) -> RecordBatch:
    batch = RecordBatch(
        base_offset=100, record_count=record_count, payload=records.SerializeToString()
    )
    batch.crc32c = checksum(batch, batch.payload)
    return batch


def test_records_that_compaction_has_left_keep_their_offsets() -> None:
    batch = fetched(Records(values=[b"b", b"d"], offset_deltas=[1, 3]), record_count=5)
    records, size_bytes = open_batch(check_crcs=True)(P0, batch)
    offsets_and_values = [(each.offset, each.value) for each in records.records()]
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
    assert open_batch(check_crcs=True)(P0, batch).size_bytes == len(encode_records(columns))


@pytest.mark.parametrize("check_crcs", [True, False])
def test_a_damaged_batch_is_named(check_crcs: bool) -> None:
    batch = fetched(Records(values=[b"a"]), record_count=1)
    batch.record_count = 2
    with pytest.raises(CorruptMessageError, match="orders-0, offset 100: ") as raised:
        open_batch(check_crcs=check_crcs)(P0, batch)
    assert raised.value.details == {"topic": "orders", "partition": "0", "offset": "100"}


def test_a_batch_that_would_fill_the_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object, **_options: object) -> bytes:
        raise MessageTooLargeError("over the limit")

    monkeypatch.setattr(semel_common.batches, decompress.__name__, fails)
    with pytest.raises(MessageTooLargeError, match="orders-0, offset 100: "):
        open_batch(check_crcs=True)(P0, fetched(Records(values=[b"a"]), record_count=1))
