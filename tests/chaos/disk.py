"""Disks that fail on command, by a library between a service and the C library (`disk.c`).

It is compiled when a run begins. Where there is no compiler, or no Linux, these faults are left
out, and the run says so.
"""

import mmap
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

_SOURCE = Path(__file__).with_name("disk.c")
_FIELDS = struct.Struct("=6I")
_FLAG = struct.Struct("=I")
_FULL, _SYNC_FAILS, _SYNC_DELAY = 0, 4, 8


class Failed(NamedTuple):
    """The faults that the library has made so far."""

    refused_writes: int = 0
    failed_syncs: int = 0
    slow_syncs: int = 0


class Disk:
    """The disk under the data folder of one service, for all its lives."""

    def __init__(self, library: Path | None, control: Path, data: Path) -> None:
        """Make the file of flags. Without a library nothing ever fails."""
        self._library = library
        self._control = control
        self._data = data
        control.write_bytes(bytes(_FIELDS.size))

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables that load the library into a process."""
        if self._library is None:
            return {}
        return {
            "LD_PRELOAD": str(self._library),
            "CHAOS_DISK_CONTROL": str(self._control),
            "CHAOS_DISK_FOLDER": str(self._data),
        }

    def fill(self) -> None:
        """Let no byte be free."""
        self._put(_FULL, 1)

    def fail_syncs(self) -> None:
        """Let every fsync answer EIO."""
        self._put(_SYNC_FAILS, 1)

    def delay_syncs(self, delay_ms: int) -> None:
        """Let every fsync take so much longer."""
        self._put(_SYNC_DELAY, delay_ms)

    def mend(self) -> None:
        """Let all be well again."""
        for offset in (_FULL, _SYNC_FAILS, _SYNC_DELAY):
            self._put(offset, 0)

    @property
    def failed(self) -> Failed:
        """The operations that have failed by now."""
        return Failed(*_FIELDS.unpack(self._control.read_bytes())[3:])

    def _put(self, offset: int, value: int) -> None:
        with self._control.open("r+b") as file, closing(mmap.mmap(file.fileno(), 0)) as mapped:
            _FLAG.pack_into(mapped, offset, value)


def compile_library(folder: Path) -> Path | None:
    """Compile the library; None where that cannot be done."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "disk.so"
    command = (compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl")
    subprocess.run(command, check=True, capture_output=True)
    return library
