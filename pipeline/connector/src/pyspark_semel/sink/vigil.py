"""Keeps a transaction alive from a process of Spark's, also while none of its tasks writes.

Each open writer keeps its transaction alive. But tasks may be shorter than the pauses between two
signs of life, and between the last task and the driver's commit, or while a task of a lost executor
waits to be done again, no writer is open: what the finished ones have written must last.

So each process that has written keeps watch: from the first task that joins until the transaction
is over, at the longest for some timeouts after its last task here. If all tasks here have failed it
ends at once: perhaps nobody is left who would end the transaction, and readers wait for it.
"""

import asyncio

from aiosemel import JointHandle, SemelClient

_TIMEOUTS = 5
"""How many transaction timeouts a watch may outlast the last task of a process."""


class Vigil:
    """The watch of one process over one transaction. Lives in the loop of the connection."""

    def __init__(self, handle: JointHandle) -> None:
        """Do nothing yet: ``run`` watches."""
        self._handle = handle
        self._longest_s = _TIMEOUTS * handle.transaction_timeout_ms / 1_000
        self._deadline = asyncio.timeout(None)
        self._writing = 0
        self._has_finished = False
        self._is_running = False

    async def run(self, client: SemelClient) -> None:
        """Keep it alive until it is over, or nothing is left to wait for. Once at a time."""
        if self._is_running:
            return
        self._is_running = True
        joint = client.joint_transaction_of(self._handle)
        try:
            async with self._deadline:
                await joint.keep_alive()
        except TimeoutError:
            pass  # Whoever was to end it is gone: the coordinator does.
        finally:
            self._forget()
            await joint.close()

    @property
    def is_over(self) -> bool:
        """Whether its time is up."""
        return self._deadline.expired()

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
        if self._is_running:
            self._deadline.reschedule(when)

    def _forget(self) -> None:
        """Let the next task of this transaction begin another."""
        if _VIGILS.get(self._handle) is self:
            del _VIGILS[self._handle]


_VIGILS: dict[JointHandle, Vigil] = {}


async def watch(handle: JointHandle) -> Vigil:
    """Return this process's watch over a transaction, for a task that writes."""
    vigil = _VIGILS.get(handle)
    if vigil is None or vigil.is_over:
        vigil = _VIGILS[handle] = Vigil(handle)
    vigil.begin()
    return vigil
