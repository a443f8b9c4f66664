"""Histories of many processes: each writes its events as they happen, and they are put in order.

All processes of a machine have the same monotonic clock. An event is in the file, which outlives
its process, before anything goes on: so no request leaves that is not recorded.
"""

import os
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from semel_checker.history import Event, Recorder
from semel_checker.storage import from_lines, to_lines
from simulation.recorded import Records


def events_path(folder: Path, process: str) -> Path:
    """Return where a process records."""
    return folder / "events" / f"{process}.jsonl"


def open_records(path: Path, *, began_ns: int, first: int) -> Records:
    """Make a recorder that writes into a file; numbers begin after ``first``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def keep(event: Event) -> None:
        (line,) = to_lines([event])
        os.write(fd, f"{time.monotonic_ns()} {line}\n".encode())

    def now_ms() -> int:
        return (time.monotonic_ns() - began_ns) // 1_000_000

    return Records(Recorder(now_ms, keep=keep, ops=first), count(first + 1))


def merge(folder: Path) -> list[Event]:
    """Return the events of all processes, in the order in which they happened."""
    lines: list[tuple[int, str]] = []
    for path in sorted((folder / "events").iterdir()):
        lines += _lines_of(path)
    lines.sort(key=lambda line: line[0])
    return from_lines(line for _, line in lines)


def _lines_of(path: Path) -> Iterable[tuple[int, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                return  # The process was killed during the write: the event never happened.
            at_ns, _, event = line.partition(" ")
            yield int(at_ns), event
