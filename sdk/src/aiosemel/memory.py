"""Allocator settings for processes that only do bulk work; the SDK itself never sets them."""

from semel_common.allocator import keep_freed_memory

__all__ = ["keep_freed_memory"]
