"""The task that does a consumer's work behind its calls, and the end of such tasks."""

import asyncio
from collections.abc import Awaitable, Callable

from aiosemel._shared.context import Spawn


async def end_task(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, and wait until it has ended; None: do nothing."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


class Background:
    """Runs until it is closed. The user's next call raises an error that ended it before."""

    def __init__(self, run: Callable[[], Awaitable[None]], on_end: Callable[[], None]) -> None:
        """Do not run yet. ``on_end`` is told when it ended by itself, which is a defect."""
        self._run = run
        self._on_end = on_end
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    @property
    def running(self) -> bool:
        """Whether it was started, and not closed."""
        return self._task is not None

    def start(self, spawn: Spawn, name: str) -> None:
        """Run in a task of its own. Raises ClosedError when the client is not open."""
        assert self._task is None, f"{name} runs already"
        self._task = spawn(self._guard(), name=name)

    def check(self) -> None:
        """Raise what made it end."""
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Stop it, and wait until it has stopped."""
        task, self._task = self._task, None
        await end_task(task)

    async def _guard(self) -> None:
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001 - a defect, raised by the next call of the user
            self._failure = error
            self._on_end()
