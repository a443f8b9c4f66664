"""The seam between frames and their transport: messages in, messages out.

A pipe is a gRPC stream or a socket. The event loop calls the user of a pipe back, so no task has
to wake up between a message that arrives and the answer that leaves.
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
        """End the pipe after all written messages have gone out; then call ``PipeUser.lost``."""
        ...

    def abort(self) -> None:
        """End the pipe at once; unsent messages are lost. Then call ``PipeUser.lost``."""
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
