"""One process that is started, killed and started again, with its output in a file."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from semel_common.file_modes import make_private_file, make_private_folder
from semel_local.log_errors import last_error

LOG_MAX_BYTES = 8 << 20
"""A log that is larger at the start of its process is put aside."""
_TAIL_BYTES = 16 << 10
_TAIL_LINES = 15
_LINES_SHOWN = 5
"""Of a process that has logged no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The unexpected end of a process."""

    name: str
    exit_status: int
    """Negative: the number of the signal that killed it."""
    log_path: Path
    log_tail: str
    """The last lines of this process in its log."""

    def __str__(self) -> str:
        """Say what the last error was; without one, show a few lines."""
        how = f"exit status {self.exit_status}"
        if self.exit_status < 0:
            how = f"killed by {signal.Signals(-self.exit_status).name}"
        lines = self.log_tail.splitlines()
        if error := last_error(lines):
            return f"{self.name} ended ({how}): {error}\nits log is {self.log_path}"
        shown = "".join(f"\n{line}" for line in lines[-_LINES_SHOWN:])
        return f"{self.name} ended ({how}); its log is {self.log_path}{':' if shown else ''}{shown}"


class ManagedProcess:
    """A command that runs at most once at a time."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_path: Path,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Do not start it yet. ``environment`` is added to the inherited variables."""
        self.name = name
        self.log_path = log_path
        assignments = (f"{name}={value}" for name, value in (environment or {}).items())
        self._command = ("env", *assignments, *command) if environment else tuple(command)
        self._process: asyncio.subprocess.Process | None = None
        self._expected_to_end = True
        self._log_begin = 0
        """Where the output of this process begins in the log."""

    @property
    def pid(self) -> int | None:
        """Its number while it runs."""
        return self._process.pid if self._process and self.running else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def spawn(self) -> None:
        """Start it, in a session of its own: Ctrl-C in the terminal is ours to pass on."""
        assert not self.running, f"{self.name} runs already"
        make_private_folder(self.log_path.parent)
        _put_aside(self.log_path)
        make_private_file(self.log_path)
        with self.log_path.open("ab") as log:
            self._log_begin = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._expected_to_end = False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self._process and self.running:
            self._process.send_signal(number)

    async def kill(self) -> None:
        """Kill it as ``kill -9`` does, and wait until it is gone."""
        self._expected_to_end = True
        self.signal(signal.SIGKILL)
        await self.wait()

    async def stop(self, *, grace_s: float) -> int:
        """Ask it to end, kill it ``grace_s`` later; returns its exit status."""
        self._expected_to_end = True
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                return await self.wait()
        except TimeoutError:
            await self.kill()
            return -signal.SIGKILL

    async def wait(self) -> int:
        """Wait for its end; returns the exit status. 0 if it never ran."""
        return await self._process.wait() if self._process else 0

    async def wait_unexpected(self) -> Ended | None:
        """Wait for its end; None if that was asked for."""
        exit_status = await self.wait()
        return None if self._expected_to_end else self.ended(exit_status)

    def ended(self, exit_status: int) -> Ended:
        """Describe its end, with the end of its log."""
        return Ended(
            name=self.name,
            exit_status=exit_status,
            log_path=self.log_path,
            log_tail=tail(self.log_path, self._log_begin),
        )


def tail(path: Path, begin: int = 0) -> str:
    """Return the last lines of a file from an offset on; empty if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(begin, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(lines[-_TAIL_LINES:])


def _put_aside(log_path: Path) -> None:
    if log_path.exists() and log_path.stat().st_size > LOG_MAX_BYTES:
        log_path.replace(log_path.with_suffix(".log.1"))
