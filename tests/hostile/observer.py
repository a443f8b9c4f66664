"""Processor time and memory of services while an attack runs, as Linux counts them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_RESET_PEAK = "5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The memory and processor time of one service during an attack."""

    processor_ms: float
    peak_bytes: int
    """How much its memory rose above where it was before, at most."""
    held_bytes: int
    """How much of that it held afterwards."""


class Observer:
    """Watches processes from ``__init__`` to ``usage``."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """Begin. The peaks of the processes are set back."""
        self._pids = dict(pids)
        for pid in self._pids.values():
            _proc(pid, "clear_refs").write_text(_RESET_PEAK)
        self._memory = {name: _resident_bytes(pid) for name, pid in self._pids.items()}
        self._processor = {name: _processor_ms(pid) for name, pid in self._pids.items()}

    def usage(self) -> dict[str, Usage]:
        """Return the memory and processor time of each process that still runs."""
        return {name: self._of(name, pid) for name, pid in self._pids.items() if _is_there(pid)}

    def _of(self, name: str, pid: int) -> Usage:
        before = self._memory[name]
        return Usage(
            processor_ms=_processor_ms(pid) - self._processor[name],
            peak_bytes=max(0, _peak_bytes(pid) - before),
            held_bytes=max(0, _resident_bytes(pid) - before),
        )


def _proc(pid: int, file: str) -> Path:
    return Path("/proc") / str(pid) / file


def _is_there(pid: int) -> bool:
    return _proc(pid, "statm").exists() and _resident_bytes(pid) > 0


def _resident_bytes(pid: int) -> int:
    return int(_proc(pid, "statm").read_text().split()[1]) * _PAGE_BYTES


def _peak_bytes(pid: int) -> int:
    for line in _proc(pid, "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def _processor_ms(pid: int) -> float:
    fields = _proc(pid, "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS_PER_S
