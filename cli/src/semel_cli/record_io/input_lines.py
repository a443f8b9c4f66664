"""Lines of standard input, as they arrive, without blocking the event loop.

A thread of its own reads: it may wait for a terminal for ever, and must not keep the process from
ending.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import BinaryIO

from semel_cli.shared.command_errors import CommandError

LINE_MAX_BYTES = 16 << 20
_CHUNK_BYTES = 64 << 10
_CHUNKS_WAITING = 8


def is_typed() -> bool:
    """Whether a user types the input at a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


async def read_lines() -> AsyncIterator[list[bytes]]:
    """Yield the lines that have arrived, without their line ends, as soon as there are any.

    Raises CommandError for a line over LINE_MAX_BYTES, or input that cannot be read.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[list[bytes] | CommandError | None] = asyncio.Queue()
    room = threading.Semaphore(_CHUNKS_WAITING)
    unwanted = threading.Event()

    def read() -> None:
        for item in _items():
            room.acquire()
            if unwanted.is_set():
                return
            with suppress(RuntimeError):  # the loop is closed, and no task wants it any more
                loop.call_soon_threadsafe(chunks.put_nowait, item)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    try:
        while (item := await chunks.get()) is not None:
            room.release()
            if isinstance(item, CommandError):
                raise item
            yield item
    finally:
        unwanted.set()
        room.release()


def _items() -> Iterator[list[bytes] | CommandError | None]:
    """Yield lines, and at last None, or what went wrong."""
    if sys.stdin is None:
        yield CommandError("the input cannot be read: there is none, it was closed")
        return
    try:
        # Raw: a thread that waits would keep the lock of a buffer, and Python from ending.
        yield from _lines(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
    except (OSError, ValueError, CommandError) as error:  # ValueError: it is closed.
        yield CommandError(f"the input cannot be read: {error}")
    else:
        yield None


def _lines(source: BinaryIO) -> Iterator[list[bytes]]:
    rest = b""
    while chunk := source.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_MAX_BYTES:
            raise CommandError(f"a line is longer than {LINE_MAX_BYTES} bytes")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]
