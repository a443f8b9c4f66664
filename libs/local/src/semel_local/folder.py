"""A cluster's data folder while it is in use: locked by one supervisor, and free of leftovers.

A supervisor that was killed leaves its services running. Their numbers are in ``semel.pids``, so
that the next one can stop them before it starts its own.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Self

from semel_common.file_modes import make_private_file, make_private_folder
from semel_local.errors import FolderError
from semel_local.layout import write_atomically

LOCK_FILE = "semel.lock"
PIDS_FILE = "semel.pids"
_LEFTOVER_GRACE_S = 5.0
_POLL_S = 0.02


class FolderLock:
    """The right to run a cluster in a folder. Use with ``with``."""

    def __init__(self, folder: Path) -> None:
        """Do no I/O yet."""
        self._folder = folder
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        """Take the folder, and make it if it is not there. Raises FolderError."""
        try:
            make_private_folder(self._folder)
            make_private_file(self._folder / LOCK_FILE)
            self._file = (self._folder / LOCK_FILE).open("a+", encoding="utf-8")
            self._lock(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.__exit__()
            raise FolderError(
                f"cannot write to {self._folder} ({error.strerror}): choose another folder"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Give the folder back."""
        if self._file is not None:
            self._file.close()

    def _lock(self, file: IO[str]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise FolderError(
                f"a cluster is running in {self._folder} already (process {holder}):"
                " use that one, stop it, or choose another folder with --data"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()


def write_pids(folder: Path, pids: Mapping[str, int]) -> None:
    """Note who runs."""
    write_atomically(folder / PIDS_FILE, json.dumps(pids))


def forget_pids(folder: Path) -> None:
    """Note that no service runs any more; a full disk has room for that."""
    (folder / PIDS_FILE).unlink(missing_ok=True)


async def stop_leftovers(folder: Path) -> list[str]:
    """Stop the services of a supervisor that was killed; returns their names."""
    left = {name: pid for name, pid in _read_pids(folder).items() if _is_service(name, pid, folder)}
    _signal(left.values(), signal.SIGTERM)
    deadline = asyncio.get_running_loop().time() + _LEFTOVER_GRACE_S
    while any(_is_service(name, pid, folder) for name, pid in left.items()):
        if asyncio.get_running_loop().time() > deadline:
            _signal(left.values(), signal.SIGKILL)
        await asyncio.sleep(_POLL_S)
    return list(left)


def _read_pids(folder: Path) -> dict[str, int]:
    """Return the services that ran; none if the note is damaged or missing."""
    try:
        noted: object = json.loads((folder / PIDS_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {name: pid for name, pid in noted.items() if isinstance(pid, int)}


def _is_service(name: str, pid: int, folder: Path) -> bool:
    """Whether the process still is this one of this folder: its number may be another's by now.

    A copy of the folder has the same note, of processes that are not its own: the data folder, as
    ``ProcessCluster`` gives it, tells them apart.
    """
    own = f"--data_dir={folder / name}"
    command = ("ps", "-ww", "-o", "command=", "-p", str(pid))
    try:
        if Path("/proc/self/cmdline").exists():
            return os.fsencode(own) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        done = subprocess.run(command, capture_output=True, check=False, text=True)
    except OSError:
        return False
    return f" {own} " in f"{done.stdout.rstrip()} "


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
