"""What was measured, in a file: a run of some curves replaces these, and leaves the others."""

import platform
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.growth.curve import Point


class Result(Struct, frozen=True, kw_only=True):
    """One curve, measured once."""

    curve: str
    taken: str
    """When, and on what."""
    points: tuple[Point, ...]


def taken_now() -> str:
    """Return the day and the machine."""
    day = datetime.now(UTC).date().isoformat()
    return f"{day}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def read_results(path: Path) -> dict[str, Result]:
    """Return what a file has, by the name of the curve; nothing if it is not there."""
    if not path.exists():
        return {}
    results = msgspec.json.decode(path.read_bytes(), type=list[Result])
    return {result.curve: result for result in results}


def write_results(path: Path, new: Result) -> None:
    """Put one curve into a file."""
    results = {**read_results(path), new.curve: new}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(list(results.values()))) + b"\n")
