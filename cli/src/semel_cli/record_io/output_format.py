r"""How `semel consume` writes records: the value, key and value, JSON, or a template as kcat's.

In a template, %t is the topic, %p the partition, %o the offset, %T the timestamp in milliseconds,
%k the key, %v the value, %h the headers, %% a percent sign; \n, \t and \0 are what they are in C.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from semel_cli.shared.output import Json

if TYPE_CHECKING:
    from aiosemel import ConsumerRecord

Formatter = Callable[["ConsumerRecord"], bytes]

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\0": "\0", "\\\\": "\\"}


def formatter(text: str) -> Formatter:
    """Return what writes a record as asked for; raises ValueError naming what is wrong."""
    match text:
        case "value":
            return _value_line
        case "key-value":
            return _template("%k\\t%v\\n")
        case "json":
            return _json_line
        case _ if "%" in text:
            return _template(text)
        case _:
            raise ValueError(
                f"format {text!r} is neither value, key-value, json nor a template with %v"
            )


def _value_line(record: "ConsumerRecord") -> bytes:
    return (record.value or b"") + b"\n"


def _json_line(record: "ConsumerRecord") -> bytes:
    document: dict[str, Json] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_content("key", record.key),
        **_content("value", record.value),
    }
    if record.headers:
        document["headers"] = [[name, _header_value(value)] for name, value in record.headers]
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _content(name: str, content: bytes | None) -> dict[str, Json]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _header_value(value: bytes | None) -> Json:
    (content,) = _content("", value).items()
    return {"base64": content[1]} if content[0] else content[1]


def _template(text: str) -> Formatter:
    parts = [_part(part) for part in re.findall(r"%.?|\\.|[^%\\]+|\\", text)]
    return lambda record: b"".join(part(record) for part in parts)


def _part(part: str) -> Formatter:
    match part:
        case "%t":
            return lambda record: record.topic.encode()
        case "%p":
            return lambda record: b"%d" % record.partition
        case "%o":
            return lambda record: b"%d" % record.offset
        case "%T":
            return lambda record: b"%d" % record.timestamp_ms
        case "%k":
            return lambda record: record.key or b""
        case "%v":
            return lambda record: record.value or b""
        case "%h":
            return lambda record: b",".join(
                name.encode() + b"=" + (value or b"") for name, value in record.headers
            )
        case "%%":
            return lambda _record: b"%"
        case _ if part.startswith("%"):
            raise ValueError(f"{part!r} means nothing: there are %t %p %o %T %k %v %h %%")
        case _:
            literal = _ESCAPES.get(part, part).encode()
            return lambda _record: literal
