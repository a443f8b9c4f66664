"""Finds the sentence that matters in the log of a service that has ended."""

import ast
import json
import re
from collections.abc import Sequence

_LINE = re.compile(r"\S+ \[(?:error|critical) *\] (?P<event>.*)")
"""A line for people, as structlog writes it: time, level, event, fields."""
_FIELDS = re.compile(r" +\w+=")
_ERROR = re.compile(r"""(?<= error=)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)""")


def last_error(lines: Sequence[str]) -> str:
    """Return what the last error in a log says; empty if there is none."""
    return next(filter(None, map(_error_in, reversed(lines))), "")


def _error_in(line: str) -> str:
    if line.startswith("{"):
        return _error_in_json(line)
    found = _LINE.match(line)
    if found is None:
        return ""
    event = _FIELDS.split(found["event"], maxsplit=1)[0].rstrip()
    error = _ERROR.search(line)
    return event if error is None else f"{event}: {_unquoted(error[0])}"


def _error_in_json(line: str) -> str:
    try:
        fields = json.loads(line)
    except ValueError:
        return ""  # A line of another program, or half a line.
    if fields.get("level") not in {"error", "critical"}:
        return ""
    return ": ".join(str(fields[name]) for name in ("event", "error") if name in fields)


def _unquoted(text: str) -> str:
    return str(ast.literal_eval(text)) if text[0] in "'\"" else text
