"""Allocator settings for processes that move large messages."""

import ctypes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
"""Numbers of ``malloc.h``."""
_MMAP_THRESHOLD_BYTES = 32 << 20
"""The most that the C library takes."""
_TRIM_THRESHOLD_BYTES = 64 << 20
_ARENAS = 2
"""One for the event loop's thread, one for all others; each keeps its own freed memory."""


def keep_freed_memory() -> None:
    """Keep up to 128 MiB of freed memory, rather than give it back to the kernel at once.

    Every large message would get new pages from the kernel, several times over while it is written:
    that took nine tenths of the time of serializing 4 MiB (12 ms, and 1.3 ms so). Only the C
    library of GNU has this setting; others are left as they are.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
        library.mallopt(_M_ARENA_MAX, _ARENAS)
