"""An event loop whose clock jumps: when nothing is ready, it is the time of the next timer."""

import asyncio
import selectors
from collections.abc import Mapping
from typing import Protocol


class HasFileno(Protocol):
    """Anything that has a file descriptor."""

    def fileno(self) -> int: ...


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs timers in order, without waiting for them."""

    def __init__(self) -> None:
        self._virtual_now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._virtual_now

    def jump(self, seconds: float) -> None:
        """Let time pass at once."""
        self._virtual_now += seconds


class _JumpingSelector(selectors.BaseSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self._inner = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if not ready and timeout is None:
            raise RuntimeError("deadlock: everybody waits, and no timer is set")
        if not ready and timeout:
            self._loop.jump(timeout)
        return ready

    def register(
        self, fileobj: int | HasFileno, events: int, data: object = None
    ) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: int | HasFileno) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def close(self) -> None:
        self._inner.close()

    def get_map(self) -> Mapping[int | HasFileno, selectors.SelectorKey]:
        return self._inner.get_map()
