"""Lines of standard input, as they arrive, without blocking the event loop.

A thread of its own reads: it may wait for a terminal for ever, and must keep nobody from leaving.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO

from semel_cli.session import CommandError

LINE_MAX_BYTES = 16 << 20
_CHUNK_BYTES = 64 << 10
_CHUNKS_WAITING = 8


async def read_lines() -> AsyncIterator[list[bytes]]:
    """Yield the lines that have arrived, without their line ends, as soon as there are any.

    Raises CommandError for a line over LINE_MAX_BYTES, or input that cannot be read.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[list[bytes] | CommandError | None] = asyncio.Queue(_CHUNKS_WAITING)

    def put(item: list[bytes] | CommandError | None) -> None:
        asyncio.run_coroutine_threadsafe(chunks.put(item), loop).result()

    def read() -> None:
        try:
            # Raw: a thread that waits would keep the lock of a buffer, and Python from ending.
            for lines in _lines(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)):
                put(lines)
            put(None)
        except (OSError, CommandError) as error:
            put(CommandError(f"the input cannot be read: {error}"))

    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (item := await chunks.get()) is not None:
        if isinstance(item, CommandError):
            raise item
        yield item


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
