"""Record batches: what goes in comes out, and damage is found."""

import contextlib
import sys

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from semel.common.v1.records_pb2 import (
    Codec,
    RecordBatch,
    RecordColumns,
    RecordHeaders,
    Records,
)
from semel_common.errors import CorruptMessageError, MessageTooLargeError
from semel_common.record_batches import batches
from semel_common.record_batches.batches import (
    Columns,
    check_crc,
    control_batch,
    decode_records,
    encode_records,
    seal,
)
from semel_common.record_batches.compression import compress, decompress
from semel_common.record_batches.payload_limits import HEADERS_PER_RECORD_MAX
from semel_common.record_batches.sequence_numbers import next_sequence
from semel_common.wire.messages.message_scan import ScanError, check_message
from semel_common.wire.messages.wire_format import varint

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ITEM = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), ITEM), max_size=3).map(tuple)


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    """Draw columns with and without keys, headers, absent and empty items."""
    count = draw(st.integers(1, 20))
    column = st.lists(ITEM, min_size=count, max_size=count)
    positions = st.integers(0, count - 1)
    return Columns(
        values=draw(column),
        keys=draw(st.none() | column),
        timestamps_ms=draw(st.lists(st.integers(0, 1 << 50), min_size=count, max_size=count)),
        headers=draw(st.dictionaries(positions, HEADERS, max_size=3)),
    )


def sealed(content: Columns, codec: Codec.ValueType = Codec.CODEC_UNSPECIFIED) -> RecordBatch:
    """Seal columns as a producer would."""
    return seal(
        content,
        producer_id=7,
        producer_epoch=3,
        base_sequence=5,
        transactional=True,
        codec=codec,
    )


@given(columns(), st.sampled_from([Codec.CODEC_UNSPECIFIED, Codec.CODEC_ZSTD]))
def test_columns_come_out_of_a_batch_as_they_went_in(
    content: Columns, codec: Codec.ValueType
) -> None:
    batch = sealed(content, codec)
    check_crc(batch, batch.payload)
    opened = decode_records(batch)
    assert list(opened.values) == list(content.values)
    # A column of nothing but absent keys is the same as no column.
    all_absent = [None] * len(content.values)
    assert list(opened.keys or all_absent) == list(content.keys or all_absent)
    assert list(opened.timestamps_ms) == list(content.timestamps_ms)
    assert opened.headers == content.headers


@given(columns(), st.data())
def test_one_flipped_bit_anywhere_in_the_payload_is_found(
    content: Columns, data: st.DataObject
) -> None:
    batch = sealed(content)
    position = data.draw(st.integers(0, len(batch.payload) - 1))
    damaged = bytearray(batch.payload)
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    batch.payload = bytes(damaged)
    with pytest.raises(CorruptMessageError, match="CRC-32C"):
        check_crc(batch, batch.payload)


@pytest.mark.parametrize(
    "change",
    [
        {"record_count": 9},
        {"producer_id": 8},
        {"producer_epoch": 4},
        {"base_sequence": 6},
        {"transactional": False},
        {"control": True},
        {"codec": Codec.CODEC_ZSTD},
        {"max_timestamp_ms": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_crc_covers_every_header_field_but_the_offset(change: dict[str, int]) -> None:
    batch = sealed(Columns(values=[b"x"], keys=None, timestamps_ms=[5], headers={}))
    batch.base_offset = 4711
    check_crc(batch, batch.payload)
    batch.MergeFrom(RecordBatch(**change))  # type: ignore[arg-type]  # one field each
    if change == {"transactional": False}:
        batch.transactional = False
    with pytest.raises(CorruptMessageError):
        check_crc(batch, batch.payload)


def test_a_payload_with_fewer_records_than_its_header_says_is_refused() -> None:
    batch = sealed(Columns(values=[b"x"], keys=None, timestamps_ms=[5], headers={}))
    batch.record_count = 2
    with pytest.raises(CorruptMessageError, match="says 2 records and holds 1"):
        decode_records(batch)


@pytest.mark.parametrize("codec", [Codec.CODEC_UNSPECIFIED, Codec.CODEC_ZSTD])
def test_a_payload_that_is_no_message_is_refused(codec: Codec.ValueType) -> None:
    batch = RecordBatch(base_offset=12, record_count=1, codec=codec, payload=b"\xff\xff\xff")
    with pytest.raises(CorruptMessageError, match="at offset 12"):
        decode_records(batch)


@pytest.mark.parametrize(
    ("records", "wrong"),
    [
        (Records(values=[b"a", b"b"], keys=[b"k"]), "2 records and 1 keys"),
        (Records(values=[b"a", b"b"], timestamp_deltas_ms=[1]), "2 records and 1 timestamps"),
        (Records(values=[b"a", b"b"], absent_values=[0, 2]), "absent values at 0 to 2"),
        (Records(values=[b"a", b"b"], absent_values=[-1]), "absent values at -1 to -1"),
        (Records(values=[b"a", b"b"], absent_keys=[7]), "absent keys at 7 to 7"),
        (Records(values=[b"a", b"b"], headers=[RecordHeaders(position=2)]), "headers at 2 to 2"),
        (
            Records(
                values=[b"a", b"b"], base_timestamp_ms=(1 << 63) - 1, timestamp_deltas_ms=[0, 1]
            ),
            "timestamps from 9223372036854775807 to 9223372036854775808",
        ),
        (Records(values=[b"a", b"b"], offset_deltas=[0]), "says 1 records and holds 2"),
        (Records(values=[b"a", b"b"], offset_deltas=[0, 2]), "do not rise within them"),
        (Records(values=[b"a", b"b"], offset_deltas=[-1, 1]), "do not rise within them"),
        (Records(values=[b"a", b"b"], offset_deltas=[1, 1]), "do not rise within them"),
    ],
    ids=[
        "fewer keys",
        "fewer times",
        "absent behind",
        "absent before",
        "absent key",
        "header",
        "late",
        "fewer offsets",
        "offset behind",
        "offset before",
        "offset twice",
    ],
)
def test_columns_that_do_not_fit_one_another_are_refused(records: Records, wrong: str) -> None:
    batch = RecordBatch(record_count=2, payload=records.SerializeToString())
    with pytest.raises(CorruptMessageError, match=wrong):
        decode_records(batch)


def test_what_compaction_has_left_keeps_its_offsets() -> None:
    left = Columns(
        values=[b"b", b"d"],
        keys=[b"kb", b"kd"],
        timestamps_ms=[6, 8],
        headers={},
        offset_deltas=[1, 3],
    )
    batch = RecordBatch(base_offset=100, record_count=5, payload=encode_records(left))
    opened = decode_records(batch)
    assert opened == left
    assert list(opened.offsets(batch.base_offset)) == [101, 103]


def test_offsets_of_a_batch_as_it_was_sent_are_dense() -> None:
    sent = Columns(values=[b"a", b"b"], keys=None, timestamps_ms=[5, 5], headers={})
    assert decode_records(sealed(sent)).offsets(7) == range(7, 9)


def test_a_payload_that_grows_past_the_limit_is_refused_and_named() -> None:
    content = Columns(values=[bytes(1 << 20)], keys=None, timestamps_ms=[5], headers={})
    batch = sealed(content, Codec.CODEC_ZSTD)
    batch.base_offset = 12
    assert len(batch.payload) < 1_000
    with pytest.raises(MessageTooLargeError, match=r"batch at offset 12: .* over 1048576 bytes"):
        decode_records(batch, payload_max_bytes=1 << 20)
    assert decode_records(batch, payload_max_bytes=(1 << 20) + 100).values == content.values


def test_a_marker_is_a_control_batch_of_one_record() -> None:
    marker = control_batch(
        producer_id=7, producer_epoch=3, committed=True, coordinator_epoch=2, timestamp_ms=9
    )
    check_crc(marker, marker.payload)
    assert (marker.control, marker.transactional, marker.record_count) == (True, True, 1)


def test_sequences_wrap_from_the_highest_to_zero() -> None:
    """C-212."""
    assert next_sequence(2_147_483_647, 1) == 0
    assert next_sequence(2_147_483_646, 5) == 3
    assert next_sequence(0, 4) == 4


def test_headers_past_the_bounds_are_refused_before_they_become_objects() -> None:
    many = tuple(("", None) for _ in range(HEADERS_PER_RECORD_MAX + 1))
    batch = sealed(Columns(values=[b"x"], keys=None, timestamps_ms=[5], headers={0: many}))
    with pytest.raises(MessageTooLargeError, match="more than 1024 headers of one record"):
        decode_records(batch)
    kept = Columns(values=[b"x"], keys=None, timestamps_ms=[5], headers={0: many[1:]})
    assert decode_records(sealed(kept)).headers == kept.headers


def test_headers_of_all_records_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "HEADERS_MAX", 3)
    two = (("a", b""), ("b", b""))
    content = Columns(values=[b"", b""], keys=None, timestamps_ms=[5, 5], headers={0: two, 1: two})
    with pytest.raises(MessageTooLargeError, match="more than 3 headers of all records"):
        decode_records(sealed(content))


def test_a_batch_of_1400_bytes_with_seven_million_headers_costs_little() -> None:
    headers = b"\x08\x00" + b"\x12\x00" * 7_000_000
    payload = b"\x1a\x01x\x3a" + varint(len(headers)) + headers
    batch = RecordBatch(
        record_count=1, codec=Codec.CODEC_ZSTD, payload=compress(payload, Codec.CODEC_ZSTD)
    )
    assert len(batch.payload) < 1_400
    with pytest.raises(MessageTooLargeError, match="more than 1024 headers"):
        decode_records(batch)


@pytest.mark.parametrize("field", [b"\x1a\x00", b"\x0a\x00", b"\x3a\x00", b"\x10\x00", b"\x7a\x00"])
def test_more_fields_than_the_header_explains_are_refused_by_a_scan(field: bytes) -> None:
    batch = RecordBatch(record_count=2, payload=field * 1_000_000)
    with pytest.raises(CorruptMessageError, match="says 2 records and has more than 80 elements"):
        decode_records(batch)


def test_more_headers_than_records_are_refused() -> None:
    records = Records(values=[b"a"], headers=[RecordHeaders(), RecordHeaders()])
    batch = RecordBatch(record_count=1, payload=records.SerializeToString())
    with pytest.raises(CorruptMessageError, match="1 records and headers of 2"):
        decode_records(batch)


def _frame(content: bytes, **options: int) -> bytes:
    named = {getattr(zstd.CompressionParameter, name): value for name, value in options.items()}
    return zstd.compress(content, options=named)


@pytest.mark.parametrize(
    ("payload", "wrong"),
    [
        (_frame(b"a") + _frame(b"b"), "behind its zstd frame"),
        (b"\x50\x2a\x4d\x18\x02\x00\x00\x00xx" + _frame(b"a"), "behind its zstd frame"),
        (_frame(b"a" * 100)[:-3], "ends within its zstd frame"),
        (_frame(b"a") + b"x", "behind its zstd frame"),
        (b"no frame", "does not begin with a zstd frame"),
        (bytes.fromhex("28b52ffd21050109000061"), "zstd dictionary"),
        (b"", "does not begin with a zstd frame"),
    ],
    ids=["two frames", "skippable", "cut", "bytes behind", "no frame", "dictionary", "empty"],
)
def test_a_payload_is_one_whole_zstd_frame(payload: bytes, wrong: str) -> None:
    with pytest.raises(CorruptMessageError, match=wrong):
        decompress(payload, Codec.CODEC_ZSTD)


@pytest.mark.parametrize("declares", [0, 1])
def test_a_frame_is_held_to_its_limit_whether_it_declares_its_size_or_not(declares: int) -> None:
    payload = _frame(bytes(1_001), content_size_flag=declares)
    with pytest.raises(MessageTooLargeError, match="1000 bytes"):
        decompress(payload, Codec.CODEC_ZSTD, size_max_bytes=1_000)
    assert decompress(payload, Codec.CODEC_ZSTD, size_max_bytes=1_001) == bytes(1_001)


def test_a_window_that_no_payload_needs_is_refused() -> None:
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    payload = compressor.compress(b"a", zstd.ZstdCompressor.FLUSH_BLOCK) + compressor.flush()
    with pytest.raises(zstd.ZstdError):
        decompress(payload, Codec.CODEC_ZSTD, size_max_bytes=1_000)


@given(st.binary(max_size=40), st.integers(0, 5))
def test_a_scan_never_takes_a_message_that_has_more_fields(message: bytes, fields_max: int) -> None:
    """What the parser takes is scanned to the same end; nothing else raises."""
    try:
        check_message(message, {}, elements_max=fields_max)
    except ScanError:
        return
    with contextlib.suppress(DecodeError):
        parsed = RecordColumns.FromString(message)
        assert len(parsed.values) + len(parsed.keys) + len(parsed.headers) <= fields_max
