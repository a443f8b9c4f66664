"""The seam between frames and what carries them: messages in, messages out, nothing else.

A pipe is a gRPC stream or a socket. Whoever uses it is called back from the event loop, and never
waits for it: between a message that arrives and the answer that leaves, no task has to wake up.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from semel_common.errors import SemelError


class Pipe(Protocol):
    """Carries messages to the other side and back, in order."""

    def write(self, parts: Sequence[bytes]) -> bool:
        """Send one message, given in parts.

        Returns True when it takes no memory here any more. False: ``PipeUser.written`` is called
        when that is so, and no other message may be written before.
        """
        ...

    def pause_reading(self) -> None:
        """Deliver no further message until ``resume_reading``."""
        ...

    def resume_reading(self) -> None:
        """Deliver messages again."""
        ...

    def close(self) -> None:
        """End it; what was written still goes out. ``PipeUser.lost`` is called in the end."""
        ...

    def abort(self) -> None:
        """End it at once; what is not sent is lost. ``PipeUser.lost`` is called in the end."""
        ...


class PipeUser(Protocol):
    """What a pipe calls."""

    def received(self, message: bytes | bytearray) -> None:
        """Take one message."""
        ...

    def written(self) -> None:
        """Know that the message for which ``write`` returned False takes no memory any more."""
        ...

    def lost(self, error: SemelError) -> None:
        """Know that the pipe has ended, and why. Called once, and last."""
        ...


class MessageRoom(Protocol):
    """What a pipe asks before it takes memory for a large message."""

    def take(self, size_bytes: int, granted: Callable[[], None]) -> bool:
        """Take room for a message. False: ``granted`` is called once it has been taken."""
        ...

    def give_back(self, size_bytes: int) -> None:
        """Give room back: the message was delivered, or is lost."""
        ...

    def leave(self) -> None:
        """Wait for room no longer."""
        ...
