"""Which callbacks of the user are running, as the code that they call sees it.

A callback of a rebalance runs inside a poll, an unsubscribing or a closing, which wait for it. A
call inside a callback must not wait for them, because it would wait for ever. The note is in the
context, so tasks that the callback starts have it too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_running: ContextVar[tuple[object, ...]] = ContextVar("aiosemel_callbacks", default=())


@contextmanager
def callback_of(owner: object) -> Iterator[None]:
    """Note that a callback of this owner runs."""
    before = _running.set((*_running.get(), owner))
    try:
        yield
    finally:
        _running.reset(before)


def in_callback_of(owner: object) -> bool:
    """Whether the caller was called by a callback of this owner."""
    return any(each is owner for each in _running.get())


def in_callback() -> bool:
    """Whether the caller was called by any callback."""
    return bool(_running.get())
