"""What was made from files, and is made again when they change: certificates, tokens, keys.

Files are looked at when the value is asked for, at most once in a while. What cannot be read, or
does not fit together (a certificate is there, its key not yet), leaves the value as it was, and is
tried again.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from semel_common.library_log import get_logger

T = TypeVar("T")
CHECK_INTERVAL_S = 1.0
"""How long files are not looked at again."""

_Signature = tuple[tuple[int, int, int], ...]
_log = get_logger(__name__)


class Reloaded(Generic[T]):
    """A value made from files. May be asked from any thread."""

    def __init__(self, paths: Sequence[Path], load: Callable[[], T]) -> None:
        """Make it; raises what ``load`` raises, of which OSError and ValueError may pass later."""
        self._paths = tuple(paths)
        self._load = load
        self._signature = _signature(self._paths)
        self._value = load()
        self._complained_of: _Signature | None = None
        self._look_at = time.monotonic() + CHECK_INTERVAL_S

    def current(self, *, at_once: bool = False) -> T:
        """Return the value, as of the files; ``at_once``: as of this moment."""
        now = time.monotonic()
        if at_once or now >= self._look_at:
            self._look_at = now + CHECK_INTERVAL_S
            self._look()
        return self._value

    def _look(self) -> None:
        try:
            signature = _signature(self._paths)
            if signature == self._signature:
                return
            value = self._load()
            whole = _signature(self._paths) == signature
        except (OSError, ValueError) as error:
            self._complain(error)
            return
        if whole:
            self._value, self._signature = value, signature
            _log.info("loaded again: %s", self._names())

    def _complain(self, error: Exception) -> None:
        """Say once what is wrong with files as they are now. They are named, never quoted."""
        found = tuple(_found(path) for path in self._paths)
        if found != self._complained_of:
            self._complained_of = found
            _log.warning("%s: kept as before (%s)", self._names(), type(error).__name__)

    def _names(self) -> str:
        return ", ".join(map(str, self._paths))


def _signature(paths: Sequence[Path]) -> _Signature:
    """Return what changes when a file, or where a link leads, does. Raises OSError."""
    stats = (path.stat() for path in paths)
    return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)


def _found(path: Path) -> tuple[int, int, int]:
    try:
        return _signature((path,))[0]
    except OSError:
        return (0, 0, 0)
