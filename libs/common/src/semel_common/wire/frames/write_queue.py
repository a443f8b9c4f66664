"""Messages that wait for a stream: all queued messages go out together, without a timer."""

import asyncio
from collections import deque
from collections.abc import Callable

from semel_common.wire.frames.pipe import Pipe
from semel_common.wire.messages.message_pieces import Pieces

MESSAGE_SIZE_SOFT_MAX_BYTES = 1 << 20
"""A message of several frames is no larger; a larger frame is a message of its own."""

FRAMES_PER_MESSAGE_MAX = 4_096
"""The same of their number: a service refuses a message of more than ``FRAMES_MAX``."""

FRAMES_PER_SLICE = 16
"""A reader lets others run after so many frames. Callers that are answered together go on together:
without slices, client, service and disk would come to work by turns instead of at the same time."""


class Outbox:
    """Frames in the order in which they are to be written. Both ends of a stream have one."""

    def __init__(
        self,
        sent: Callable[[int], None] = lambda count: None,  # noqa: ARG005 - optional
        blocked: Callable[[], None] = lambda: None,
    ) -> None:
        """Start empty, without a pipe.

        ``sent`` is told how many frames have been written, ``blocked`` that the last ones have not
        been yet.
        """
        self._sent = sent
        self._blocked = blocked
        self._frames: deque[Pieces] = deque()
        self._pipe: Pipe | None = None
        self._flushing = False
        self._unwritten = 0

    def open(self, pipe: Pipe) -> None:
        """Write what has queued, and what will."""
        self._pipe = pipe
        self._flush_soon()

    def put(self, *frame: bytes) -> None:
        """Queue a frame, given in pieces."""
        self._frames.append(frame)
        self._flush_soon()

    def written(self) -> None:
        """Go on: the last message has been written."""
        count, self._unwritten = self._unwritten, 0
        if self._pipe is not None:
            self._sent(count)
            self._flush_soon()

    def close(self) -> None:
        """Drop everything, and write no more."""
        self._pipe = None
        self._frames.clear()

    def _flush_soon(self) -> None:
        """Write in this turn of the loop, with all that is put meanwhile."""
        if not self._flushing and self._frames and self._pipe and not self._unwritten:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._pipe is None or self._unwritten:
            return
        pieces: list[bytes] = []
        count = size = 0
        while self._frames and count < FRAMES_PER_MESSAGE_MAX:
            size += sum(map(len, self._frames[0]))
            if count and size > MESSAGE_SIZE_SOFT_MAX_BYTES:
                break
            pieces += self._frames.popleft()
            count += 1
        if self._pipe.write(pieces):
            self._sent(count)
        else:
            self._unwritten = count
            self._blocked()
        self._flush_soon()
