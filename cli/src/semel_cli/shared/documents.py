"""Values of the SDK as JSON: each field under its name."""

from dataclasses import fields, is_dataclass

from semel_cli.shared.output import Json

_NULL_IF_EMPTY = frozenset({"address", "end", "group_instance_id", "operator", "reason"})
"""Texts that are null in JSON if they are empty."""


def document(value: object, **others: Json) -> dict[str, Json]:
    """Return the fields of a value; ``others`` take the place of fields, or come behind them.

    A partition becomes its topic and its number, in place of a field of that name.
    """
    assert is_dataclass(value), f"{type(value)} has no fields"
    found: dict[str, Json] = {}
    for name in (each.name for each in fields(value)):
        entry = getattr(value, name)
        if name in others:
            found[name] = others[name]
        elif name == "partition" and not isinstance(entry, int):
            found |= {"topic": None, "partition": None} if entry is None else entry._asdict()
        else:
            found[name] = None if entry == "" and name in _NULL_IF_EMPTY else _json(entry)
    return found | others


def _json(entry: object) -> Json:
    if hasattr(entry, "_asdict"):  # A partition.
        named: dict[str, Json] = entry._asdict()
        return named
    if isinstance(entry, tuple):
        return [_json(each) for each in entry]
    if is_dataclass(entry):
        return document(entry)
    assert entry is None or isinstance(entry, str | int), f"{entry!r} is no value of JSON"
    return entry
