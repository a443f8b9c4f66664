"""Where lines of the log go: standard error, by writes that never raise and never wait for long.

A log is no reason to stop, and the end of a service never waits for one. The disk of the log may be
full, its pipe closed or not read. Such a line is dropped and counted; the next line that can be
written is followed by one that says how many were lost, and why.

Lines go straight to the file descriptor. A stream of Python's keeps the bytes that it could not
write, tries them again with each later line, and at the end of the process once more: a full disk
would then turn the exit status into 120.
"""

import os
import select
import time
from typing import NamedTuple

STANDARD_ERROR = 2
WAIT_S = 0.5
"""How long a line waits for a pipe that is not read. The lines behind it do not wait at all."""
_WRITE_BYTES_MAX = 4_096
"""What a pipe that has room at all takes without waiting (PIPE_BUF on Linux)."""


class Losses(NamedTuple):
    """Lines that were dropped one after the other."""

    lines: int
    why: str
    """Of the last one."""


class LogOutput:
    """A text stream to a file descriptor; also what Python itself writes to, as `sys.stderr`."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int = STANDARD_ERROR) -> None:
        self._descriptor = descriptor
        self._losses = Losses(0, "")
        self._works = True
        self.lost_total = 0
        """Lines that were dropped since the start."""

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return os.isatty(self._descriptor)

    def flush(self) -> None:
        """Do nothing: all is written at once."""

    def write(self, text: str) -> int:
        """Write a text, or drop it and count it. Raises nothing."""
        try:
            self._write_all(text.encode(self.encoding, self.errors))
        except OSError as error:
            self._works = False
            self.drop(error)
        else:
            self._works = True
        return len(text)

    def drop(self, error: Exception) -> None:
        """Count a line that is lost."""
        self.lost_total += 1
        self._losses = Losses(self._losses.lines + 1, f"{type(error).__name__}: {error}")

    def take_losses(self) -> Losses | None:
        """Return the losses that no line has told of yet; None: there are none, or no way to."""
        if not self._works or not self._losses.lines:
            return None
        losses, self._losses = self._losses, Losses(0, "")
        return losses

    def _write_all(self, data: bytes) -> None:
        deadline = time.monotonic() + (WAIT_S if self._works else 0)
        while data:
            self._wait_for_room(deadline)
            data = data[os.write(self._descriptor, data[:_WRITE_BYTES_MAX]) :]

    def _wait_for_room(self, deadline: float) -> None:
        """Raise TimeoutError rather than wait for a reader that does not come."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        wait_ms = max(0, round((deadline - time.monotonic()) * 1000))
        if not poll.poll(wait_ms):
            raise TimeoutError("the reader of the log does not read")


def occupy_standard_streams() -> None:
    """Open the null device for each standard stream that is closed.

    A file, a database or a connection would get its number, and the lines of the log with it.
    """
    for descriptor in range(STANDARD_ERROR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # The lowest number that is free: this one.
            assert opened == descriptor, f"standard stream {descriptor} got number {opened}"
            os.set_inheritable(opened, True)
