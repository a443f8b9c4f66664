"""Histories as JSON lines: one event a line, the same bytes for the same history on any machine.

Classes are named in `type`; named tuples are lists, in the order of their fields. The reader checks
each line against the events' own types, so it refuses a history of another version.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from semel_checker.history import Event, History

# A value of JSON, and the type of a field: only `_decoder` looks into either.
Found = Any
Hint = Any
Decoder = Callable[[Found], Any]


def write_history(path: Path, history: History) -> None:
    """Store a history."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in to_lines(history))


def read_history(path: Path) -> list[Event]:
    """Read a history that was stored; ValueError if the file is no history."""
    with path.open(encoding="utf-8") as file:
        return from_lines(file)


def to_lines(history: History) -> Iterable[str]:
    """Yield each event as a line of JSON, without its end."""
    encode = json.JSONEncoder(separators=(",", ":"), default=_as_object).encode
    return (encode(event) for event in history)


def from_lines(lines: Iterable[str]) -> list[Event]:
    """Return the events of such lines."""
    decode = _decoder(Event)
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(decode(json.loads(line)))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"line {number} is no event: {error!r}") from error
    return events


def _as_object(value: object) -> dict[str, Found]:
    kind: type = type(value)
    if not is_dataclass(kind):
        raise TypeError(f"{value!r} is no part of a history")
    return {"type": kind.__name__} | {name: getattr(value, name) for name in _field_names(kind)}


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _decoder(hint: Hint) -> Decoder:
    """Return the function that builds a value of a type from its JSON."""
    origin: object = get_origin(hint)
    if origin in (Union, UnionType):
        return _union_decoder(get_args(hint))
    if origin is tuple:
        item = _decoder(get_args(hint)[0])
        return lambda found: tuple(map(item, _checked(found, list)))
    if is_dataclass(hint):
        return _dataclass_decoder(hint)
    if issubclass(hint, tuple):
        return _named_tuple_decoder(hint)
    if issubclass(hint, Enum):
        return cast(Decoder, hint)
    return lambda found: _checked(found, hint)


def _union_decoder(members: tuple[Any, ...]) -> Decoder:
    classes: list[Hint] = [member for member in members if is_dataclass(member)]
    kinds = {each.__name__: _decoder(each) for each in classes}
    others = [member for member in members if member is not NoneType and not is_dataclass(member)]
    assert len(others) <= 1, "a union is told apart by its members' names"
    other = _decoder(others[0]) if others else None

    def decode(found: Found) -> Found:
        if found is None and NoneType in members:
            return None
        if other is not None:
            return other(found)
        return kinds[_checked(found, dict)["type"]](found)

    return decode


def _dataclass_decoder(kind: Hint) -> Decoder:
    hints = get_type_hints(kind)
    items = [(name, _decoder(hints[name])) for name in _field_names(kind)]
    names = {"type", *_field_names(kind)}

    def decode(found: Found) -> Found:
        if _checked(found, dict).keys() != names or found["type"] != kind.__name__:
            raise ValueError(f"{kind.__name__} has the fields {sorted(names)}")
        return kind(**{name: item(found[name]) for name, item in items})

    return decode


def _named_tuple_decoder(kind: Hint) -> Decoder:
    items = [_decoder(hint) for hint in get_type_hints(kind).values()]
    return lambda found: kind(
        *(item(value) for item, value in zip(items, _checked(found, list), strict=True))
    )


def _checked(found: Found, kind: type) -> Found:
    if type(found) is not kind:
        raise TypeError(f"{found!r} is not of type {kind.__name__}")
    return found
