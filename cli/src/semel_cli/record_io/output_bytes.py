"""Bytes onto standard output, as fast as the reader takes them, without blocking the event loop.

A thread of its own writes: it may wait for a reader for ever, and must not keep the process from
ending.
"""

import asyncio
import select
import sys
import threading
from contextlib import suppress
from typing import Protocol

from semel_cli.shared.output import to_standard_output

_STDOUT = 1


class _Sink(Protocol):
    def write(self, output: memoryview, /) -> int | None:
        """Write the beginning of it; None: it does not block, and is full."""


async def write_out(output: bytes) -> None:
    """Write all of it; raises OutputError. Cancelled, it waits no more, and part may be written."""
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def settle(error: OSError | None) -> None:
        if written.done():
            return  # no task waits any more
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)

    def write() -> None:
        error = None
        try:
            # Raw: a thread that waits would keep the lock of a buffer, and Python from ending.
            _write(getattr(sys.stdout.buffer, "raw", sys.stdout.buffer), output)
        except OSError as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed, and no task waits any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=write, name="standard output", daemon=True).start()
    with to_standard_output():
        await written


def check_reader() -> None:
    """Raise BrokenPipeError if the reader is gone: until there are records, no write would."""
    if _poll(0, timeout_ms=0):  # errors, which are always told
        raise BrokenPipeError


def _write(sink: _Sink, output: bytes) -> None:
    rest = memoryview(output)
    while rest:
        count = sink.write(rest)
        if count is None:
            _poll(select.POLLOUT, timeout_ms=None)
        rest = rest[count or 0 :]


def _poll(events: int, *, timeout_ms: int | None) -> bool:
    poller = select.poll()
    poller.register(_STDOUT, events)
    return bool(poller.poll(timeout_ms))
