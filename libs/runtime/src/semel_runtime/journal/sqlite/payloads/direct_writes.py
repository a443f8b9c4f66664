"""Writes that go past the page cache of the system.

A reader that follows a log reads its end in the broker's memory. A copy of each payload in the page
cache would cost as much processor time as all other work on it, and memory. Linux writes straight
from a buffer if buffer, position and size are multiples of the block size (`O_DIRECT`). So payloads
are gathered in such a buffer. File systems without such writes get the same blocks through the page
cache.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence

BLOCK_BYTES = 4_096
"""No block of a common disk is larger."""
_BUFFER_BYTES = 1 << 20
_DIRECT: int | None = getattr(os, "O_DIRECT", None)


class BlockBuffer:
    """Gathers payloads into whole blocks; used by one thread at a time."""

    def __init__(self) -> None:
        self._view = memoryview(mmap.mmap(-1, _BUFFER_BYTES))

    def blocks(self, payloads: Sequence[bytes]) -> Iterator[memoryview]:
        """Yield the bytes of payloads, filled up with zeros; each view holds until the next one."""
        filled = 0
        for payload in payloads:
            left = memoryview(payload)
            while left:
                taken = left[: _BUFFER_BYTES - filled]
                self._view[filled : filled + len(taken)] = taken
                filled += len(taken)
                left = left[len(taken) :]
                if filled == _BUFFER_BYTES:
                    yield self._view
                    filled = 0
        if filled:
            end = filled + -filled % BLOCK_BYTES
            self._view[filled:end] = bytes(end - filled)
            yield self._view[:end]


def write_past_cache(descriptor: int, *, wanted: bool = True) -> bool:
    """Let writes to a file go past the page cache or through it; answer whether they go past."""
    if _DIRECT is None:
        return False
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | _DIRECT if wanted else flags & ~_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False  # The file system has no such writes.
    return wanted
