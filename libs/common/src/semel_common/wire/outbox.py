"""What waits to be written on a stream: whatever has queued goes out together, without a timer."""

import asyncio
from collections import deque

MESSAGE_SIZE_SOFT_MAX_BYTES = 1 << 20
"""A message takes no further frame once it is this large."""

FRAMES_PER_SLICE = 16
"""A reader lets others run after so many frames. Callers that are answered together go on together:
without slices, client, service and disk would come to work by turns instead of at the same time."""


class Outbox:
    """Frames in the order in which they are to be written. Both ends of a stream have one."""

    def __init__(self) -> None:
        """Start empty."""
        self._frames: deque[bytes] = deque()
        self._filled = asyncio.Event()

    def put(self, frame: bytes) -> None:
        """Queue a frame."""
        self._frames.append(frame)
        self._filled.set()

    async def take(self) -> list[bytes]:
        """Wait until there is something, and return what fits into one message."""
        await self._filled.wait()
        taken, size = [], 0
        while self._frames and size < MESSAGE_SIZE_SOFT_MAX_BYTES:
            frame = self._frames.popleft()
            taken.append(frame)
            size += len(frame)
        if not self._frames:
            self._filled.clear()
        return taken

    def clear(self) -> None:
        """Drop everything."""
        self._frames.clear()
