"""What pipes over gRPC streams have in common: gRPC reads and writes in tasks, pipes do not."""

import asyncio
from collections.abc import Sequence


class QueuedPipe:
    """Messages that wait to be written, and whether any are to be read. A part of ``Pipe``."""

    def __init__(self) -> None:
        """Carry nothing yet."""
        self._readable = asyncio.Event()
        self._readable.set()
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, parts: Sequence[bytes]) -> bool:
        """Send one message; see ``Pipe.write``."""
        self._messages.put_nowait(b"".join(parts))
        return False

    def pause_reading(self) -> None:
        """See ``Pipe.pause_reading``."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """See ``Pipe.resume_reading``."""
        self._readable.set()
