"""Keeps a transaction alive from a process of Spark's, also while none of its tasks writes.

Each open writer keeps its transaction alive. But tasks may be shorter than the pauses between two
signs of life, and between the last task and the driver's commit, or while a task of a lost executor
waits to be done again, no writer is open: what the finished ones have written must last.

So each process that has written keeps watch: from the first task that joins until the transaction
is over, at the longest for some timeouts after its last task here. If all tasks here have failed it
ends at once: perhaps no process is left that would end the transaction, and readers wait for it.
"""

import asyncio
from typing import Protocol

from aiosemel import JointHandle, SemelClient

_TIMEOUTS = 5
"""How many transaction timeouts a watch may outlast the last task of a process."""


class Joint(Protocol):
    """What of a ``JointTransaction`` is needed here."""

    @property
    def handle(self) -> JointHandle:
        """Which it is."""
        ...

    async def keep_alive(self) -> None:
        """Keep it alive until it is over."""
        ...

    async def close(self) -> None:
        """Let the client forget it."""
        ...


class KeepAliveWatch:
    """The watch of one process over one transaction. Lives in the loop of the connection."""

    def __init__(self, joint: Joint) -> None:
        """Do nothing yet: ``run`` watches."""
        self._joint = joint
        handle = self._handle = joint.handle
        self._longest_s = _TIMEOUTS * handle.transaction_timeout_ms / 1_000
        self._deadline = asyncio.timeout(None)
        self._writing = 0
        self._has_finished = False
        self._is_running = False
        self._is_over = False

    async def run(self) -> None:
        """Keep it alive until it is over, or nothing is left to wait for. Once for all tasks."""
        if self._is_running:
            return
        self._is_running = True
        try:
            async with self._deadline:
                await self._joint.keep_alive()
        except TimeoutError:
            pass  # Its owner is gone: the coordinator ends it.
        finally:
            self._is_over = True
            self._forget()
            await self._joint.close()

    @property
    def is_over(self) -> bool:
        """Whether it watches no longer, or its time is up."""
        return self._is_over or self._deadline.expired()

    def begin(self) -> None:
        """Note that a task writes here."""
        self._writing += 1
        self._reschedule(None)

    async def end(self, *, finished: bool) -> None:
        """Note that a task writes no longer; ``finished``: it has a receipt."""
        self._writing -= 1
        self._has_finished |= finished
        if self._writing:
            return
        now = asyncio.get_running_loop().time()
        if self._has_finished:
            self._reschedule(now + self._longest_s)
        else:
            self._forget()
            self._reschedule(now)

    def _reschedule(self, when: float | None) -> None:
        if self._is_running and not self.is_over:
            self._deadline.reschedule(when)

    def _forget(self) -> None:
        """Let the next task of this transaction begin another."""
        if _WATCHES.get(self._handle) is self:
            del _WATCHES[self._handle]


_WATCHES: dict[JointHandle, KeepAliveWatch] = {}


async def watch(client: SemelClient, handle: JointHandle) -> KeepAliveWatch:
    """Return this process's watch over a transaction, for a task that writes."""
    keep_alive = _WATCHES.get(handle)
    if keep_alive is None or keep_alive.is_over:
        keep_alive = _WATCHES[handle] = KeepAliveWatch(client.joint_transaction_of(handle))
    keep_alive.begin()
    return keep_alive
