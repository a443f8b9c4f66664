"""Lines of text and of JSON become records."""

import pytest

from semel_cli.record_io.input_format import InputError, InputRecord, parse_json, parse_text


def test_a_line_is_the_value_when_there_are_no_keys() -> None:
    assert parse_text(b"a:1", None) == InputRecord(value=b"a:1")


def test_the_first_separator_ends_the_key() -> None:
    assert parse_text(b"a::b:", b":") == InputRecord(key=b"a", value=b":b:")


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("{}", InputRecord()),
        ('{"value": "x", "key": "k"}', InputRecord(key=b"k", value=b"x")),
        ('{"value": null}', InputRecord()),
        ('{"value": ""}', InputRecord(value=b"")),
        ('{"value": {"a": [1, "ä"]}}', InputRecord(value='{"a": [1, "ä"]}'.encode())),
        ('{"value_base64": "/w=="}', InputRecord(value=b"\xff")),
        ('{"partition": 2, "timestamp_ms": 7}', InputRecord(partition=2, timestamp_ms=7)),
        ('{"headers": {"h": "1", "n": null}}', InputRecord(headers=(("h", b"1"), ("n", None)))),
        ('{"headers": [["h", "1"], ["h", "2"]]}', InputRecord(headers=(("h", b"1"), ("h", b"2")))),
        ('{"headers": [["h", {"base64": "/w=="}]]}', InputRecord(headers=(("h", b"\xff"),))),
        ('{"topic": "t", "offset": 3, "value": "x"}', InputRecord(value=b"x")),
    ],
)
def test_an_object_becomes_the_record_that_it_describes(line: str, record: InputRecord) -> None:
    assert parse_json(line.encode()) == record


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"vlaue": 1}', "unknown field 'vlaue'"),
        ('{"value": 1, "value_base64": ""}', "both value and value_base64"),
        ('{"key_base64": "?"}', "key_base64 is not base64"),
        ('{"headers": 1}', "headers"),
        ('{"headers": [["h"]]}', "not a name with a value"),
        ('{"headers": [["h", {"base64": "?"}]]}', "header h is not base64"),
        ('{"value_base64": "é"}', "value_base64 is not base64"),
        ("[" * 200_000, "not JSON"),
        ('{"value": NaN}', "not JSON (NaN"),
        ('{"value": -Infinity}', "not JSON (-Infinity"),
        ('{"value": {"a": [-1e999]}}', "the number -1e999 is too large to be kept"),
        ('{"headers": {"h": 1e999}}', "the number 1e999 is too large to be kept"),
        ('{"headers": {"\\ud800": "1"}}', "has a name that is no text"),
        ('{"partition": 99999999999}', "partition is 99999999999, not from 0 to 2147483647"),
        ('{"partition": -1}', "partition is -1, not from 0"),
        ('{"timestamp_ms": 9223372036854775808}', "timestamp_ms is 9223372036854775808, not"),
        ('{"partition": "2"}', "partition is '2', not a number"),
        ('{"partition": true}', "partition is True, not a number"),
    ],
)
def test_a_line_without_a_record_is_refused_with_the_reason(line: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(line.encode())
    assert said in str(caught.value)


@pytest.mark.parametrize("separator", [b":", b"\xff"])
def test_a_line_without_the_separator_is_refused(separator: bytes) -> None:
    with pytest.raises(InputError, match="no key separator"):
        parse_text(b"a1", separator)
