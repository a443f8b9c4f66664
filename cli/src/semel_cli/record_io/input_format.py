"""What `semel produce` reads: a record from each line, as plain text or as a JSON object.

The JSON is what `semel consume --format json` writes, so that records can be piped from one topic
into another; what it says of their old place (topic, offset) is passed over.
"""

import base64
import json
import math
import os
from dataclasses import dataclass
from typing import NoReturn

from semel_cli.shared.options import INT32_MAX, INT64_MAX

Header = tuple[str, bytes | None]

_FIELDS = frozenset(
    ("key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp_ms")
)
_PASSED_OVER = frozenset(("topic", "offset"))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRecord:
    """One record to be sent."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class InputError(Exception):
    """A line is no record; the message says why."""


def parse_text(line: bytes, key_separator: bytes | None) -> InputRecord:
    """Take the line as value, or what stands before the separator as key. Raises InputError."""
    if key_separator is None:
        return InputRecord(value=line)
    key, found, value = line.partition(key_separator)
    if not found:
        raise InputError(f"there is no key separator {os.fsdecode(key_separator)!r} in it")
    return InputRecord(key=key, value=value)


def parse_json(line: bytes) -> InputRecord:
    """Read an object with key, value, headers, partition and timestamp_ms, each optional.

    Text stands for itself, null for no value; any other JSON is kept as JSON. ``key_base64`` and
    ``value_base64`` hold bytes that are no text. Raises InputError.
    """
    try:
        fields: object = json.loads(
            line, parse_constant=_refuse_constant, parse_float=_finite_number
        )
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise InputError("it is JSON, but not an object")
    unknown = sorted(fields.keys() - _FIELDS - _PASSED_OVER)
    if unknown:
        raise InputError(f"it has the unknown field {unknown[0]!r}")
    return InputRecord(
        key=_content(fields, "key"),
        value=_content(fields, "value"),
        headers=_headers(fields.get("headers")),
        partition=_number(fields, "partition", INT32_MAX),
        timestamp_ms=_number(fields, "timestamp_ms", INT64_MAX),
    )


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities: they are Python's, and no JSON."""
    raise ValueError(f"{name} is none of its values")


def _finite_number(text: str) -> float:
    """Refuse a number that would be kept as an infinity, which is no JSON."""
    number = float(text)
    if math.isinf(number):
        raise InputError(f"the number {text} is too large to be kept")
    return number


def _content(fields: dict[str, object], name: str) -> bytes | None:
    coded = fields.get(f"{name}_base64")
    if coded is None:
        return _to_bytes(fields.get(name))
    if name in fields:
        raise InputError(f"it has both {name} and {name}_base64")
    return _from_base64(coded, f"{name}_base64")


def _to_bytes(value: object) -> bytes | None:
    if value is None:
        return None
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError as error:
        raise InputError(f"it is JSON, but not to be kept ({error})") from error
    return text.encode("utf-8", "surrogatepass")


def _from_base64(coded: object, name: str) -> bytes:
    try:
        return base64.b64decode(str(coded), validate=True)
    except ValueError as error:
        raise InputError(f"{name} is not base64") from error


def _headers(given: object) -> tuple[Header, ...]:
    """Read {"name": "value"}, or [["name", "value"], …] where names come twice."""
    if given is None:
        return ()
    pairs = list(given.items()) if isinstance(given, dict) else given
    if not isinstance(pairs, list):
        raise InputError("headers are neither an object nor a list")
    return tuple(_header(pair) for pair in pairs)


def _header(pair: object) -> Header:
    match pair:
        case [str() as name, {"base64": coded}] | (str() as name, {"base64": coded}):
            return _text(name), _from_base64(coded, f"header {name}")
        case [str() as name, value] | (str() as name, value):
            return _text(name), _to_bytes(value)
        case _:
            raise InputError(f"header {pair!r} is not a name with a value")


def _text(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"header {name!r} has a name that is no text ({error.reason})") from error
    return name


def _number(fields: dict[str, object], name: str, largest: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int:
        raise InputError(f"{name} is {value!r}, not a number")
    if not 0 <= value <= largest:
        raise InputError(f"{name} is {value}, not from 0 to {largest}")
    return value
