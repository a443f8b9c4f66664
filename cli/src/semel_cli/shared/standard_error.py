"""Standard error that never fails: a notice that cannot be written changes neither status nor work.

Python's own keeps what it could not write, tries it again at the end of the process, and then
changes the exit status to 120.
"""

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDERR = 2


class _StandardError(io.FileIO):
    """Drops what its file does not take: a full disk, a reader that has gone, a closed terminal."""

    def write(self, notice: "ReadableBuffer", /) -> int:
        try:
            return super().write(notice)
        except OSError:
            return memoryview(notice).nbytes


def use_standard_error() -> None:
    """Replace standard error for this process; a closed one becomes the null device."""
    encoding = "utf-8"
    if sys.stderr is not None:
        encoding = sys.stderr.encoding
    elif (null := os.open(os.devnull, os.O_WRONLY)) != _STDERR:
        os.dup2(null, _STDERR)  # The number must not become that of another file.
        os.close(null)
    writer = io.BufferedWriter(_StandardError(_STDERR, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(
        writer, encoding=encoding, errors="backslashreplace", line_buffering=True
    )
