"""Records become lines."""

import json

import pytest

from aiosemel import ConsumerRecord
from semel_cli.record_io.input_format import parse_json
from semel_cli.record_io.output_format import formatter

RECORD = ConsumerRecord(
    topic="t",
    partition=1,
    offset=2,
    timestamp_ms=3,
    key=b"k",
    value=b"v",
    headers=(("h", b"1"), ("n", None), ("b", b"\xff")),
)
BARE = ConsumerRecord(topic="t", partition=1, offset=2, timestamp_ms=3, key=None, value=b"\xff")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("value", b"v\n"),
        ("key-value", b"k\tv\n"),
        ("%t-%p@%o %T %k=%v %h %%", b"t-1@2 3 k=v h=1,n=,b=\xff %"),
        ("%v\\n\\t\\0\\\\\\x", b"v\n\t\0\\\\x"),
    ],
)
def test_a_record_is_written_as_asked_for(text: str, written: bytes) -> None:
    assert formatter(text)(RECORD) == written


def test_absent_keys_and_values_are_empty_in_text() -> None:
    assert formatter("%k:%v")(BARE) == b":\xff"


def test_json_tells_absent_from_empty_and_bytes_from_text() -> None:
    document = json.loads(formatter("json")(BARE))
    assert document["key"] is None
    assert document["value_base64"] == "/w=="
    assert "headers" not in document


def test_json_can_be_read_back_as_it_was() -> None:
    back = parse_json(formatter("json")(RECORD))
    assert (back.key, back.value, back.headers) == (RECORD.key, RECORD.value, RECORD.headers)


@pytest.mark.parametrize("text", ["xml", "%q", "%v %"])
def test_a_format_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither value|means nothing"):
        formatter(text)
