"""Memory of a process of which bulk work is all: nothing here is done unless it is asked for."""

from semel_common.allocator import keep_freed_memory

__all__ = ["keep_freed_memory"]
