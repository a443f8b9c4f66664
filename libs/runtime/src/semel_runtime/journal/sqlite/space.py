"""How much room the disk has."""

import os
import time
from pathlib import Path

_FRESH_SECONDS = 0.05


def statvfs_free_bytes(folder: Path) -> int:
    """Ask the file system how much an ordinary user may still write."""
    answer = os.statvfs(folder)
    return answer.f_bavail * answer.f_frsize


class DiskSpace:
    """Free bytes of a folder's file system, asked for at most every 50 ms."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._free_bytes = 0
        self._asked_at = -_FRESH_SECONDS

    def free_bytes(self) -> int:
        """Return the free bytes of now, or of just now."""
        now = time.monotonic()
        if now - self._asked_at >= _FRESH_SECONDS:
            self._free_bytes = statvfs_free_bytes(self.folder)
            self._asked_at = now
        return self._free_bytes
