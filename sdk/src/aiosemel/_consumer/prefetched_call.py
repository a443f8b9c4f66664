"""A question that is asked before its answer is wanted.

Its task is the client's: the caller may forget it, and has nothing to close.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from aiosemel._shared.context import Spawn
from aiosemel.errors import SemelError

A = TypeVar("A")

_TURNS_TO_ASK = 4
"""Of the event loop, until the question has left: the task begins, its calls begin, and what calls
of one moment have to send is sent."""


class Ahead(Generic[A]):
    """One question on its way."""

    def __init__(self, spawn: Spawn, ask: Callable[[], Awaitable[A]], name: str) -> None:
        """Ask. Raises ClosedError when the client is not open."""
        self._answer: A | None = None
        self._task = spawn(self._run(ask), name=name)

    async def left(self) -> None:
        """Let the question leave first, before the caller keeps the event loop busy."""
        for _ in range(_TURNS_TO_ASK):
            await asyncio.sleep(0)

    async def answer(self) -> A | None:
        """Wait for the answer; None: there is no answer, and the caller asks again if it needs one.

        So errors are always those of a question that was asked when its answer was wanted. To
        cancel the call loses only the waiting.
        """
        await asyncio.wait((self._task,))
        return self._answer

    async def _run(self, ask: Callable[[], Awaitable[A]]) -> None:
        with contextlib.suppress(SemelError):  # see `answer`
            self._answer = await ask()
