"""A signal that something may have changed: the waiting task looks at the state again."""

import asyncio


class Signal:
    """Wakes every task that waits at this moment. It remembers nothing: look, then wait."""

    def __init__(self) -> None:
        self._waiters: dict[asyncio.Future[None], None] = {}  # in the order of their coming

    def notify(self) -> None:
        """Wake all who wait."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait for the next ``notify``; False if none came in time."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._waiters.pop(waiter)
        return True
