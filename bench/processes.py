"""What the system says of a process: the memory that it has, and the time that it has computed."""

import os
import time
from pathlib import Path

_KIB_PER_MIB = 1024


def processor_s(pid: int) -> float:
    """Return what a process has computed so far, all its threads, in seconds."""
    clock = ~pid << 3 | 2  # See clock_getcpuclockid(3).
    return time.clock_gettime(clock)


def resident_mib(pid: int) -> float:
    """Return a process's resident memory, pages that it shares with others included."""
    return _status_mib(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """Return the most resident memory that it had since ``forget_peak``, or its start."""
    return _status_mib(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Let its peak be what it has now: see proc_pid_clear_refs(5)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status_mib(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / _KIB_PER_MIB
    return 0.0


def written_bytes(pid: int) -> int:
    """Return how many bytes it has let the system write to disks: see proc_pid_io(5)."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    raise ValueError(f"/proc/{pid}/io has no line write_bytes")


def memory_gib() -> float:
    """Return how much memory the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
