"""Threads for long computations, so that the event loop goes on.

The work must be pure, and share no mutable state.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """Runs a piece of work."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work returns. Cancelling the caller loses only that."""
        ...


async def in_thread(work: Callable[[], T]) -> T:
    """Run it in a thread, for services that live in real time."""
    return await asyncio.to_thread(work)


async def inline(work: Callable[[], T]) -> T:
    """Run it at once, for a cluster in virtual time."""
    return work()
