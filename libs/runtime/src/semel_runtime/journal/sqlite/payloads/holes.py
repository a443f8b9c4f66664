"""Holes in files, which give the space of a range to the file system.

Python has no call of `fallocate(2)` with a mode. File systems of Linux have holes, except for some
across a network; there, and elsewhere, the space comes back when the file is removed.
"""

import ctypes
import errno
import os

BLOCK_BYTES = 4_096
"""A hole has whole blocks."""
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS}
_FALLOCATE = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
if _FALLOCATE is not None:
    _FALLOCATE.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(descriptor: int, start: int, end: int) -> bool:
    """Make the whole blocks within a range of a file a hole; answer whether that is possible.

    Raises OSError.
    """
    start, end = start + -start % BLOCK_BYTES, end - end % BLOCK_BYTES
    if start >= end:
        return True
    if _FALLOCATE is None:
        return False
    if _FALLOCATE(descriptor, _PUNCH_HOLE | _KEEP_SIZE, start, end - start) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number))
