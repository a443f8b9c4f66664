"""Messages over a connection of their own: each is its length, four bytes, and that many bytes.

gRPC moves a message through threads of its own, nine times from one to another for one call and its
answer. Here the event loop reads and writes the socket itself.
"""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from semel_common.errors import NetworkExceptionError
from semel_common.wire.pipe import PipeUser

_LENGTH_BYTES = 4
_SIGN_OF_LIFE = bytes(_LENGTH_BYTES)
"""A message without content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOptions:
    """How a socket is watched."""

    message_size_max_bytes: int
    """A larger message ends the connection: its length is no length of ours."""
    silence_max_s: float | None = None
    """How long the other side may be silent before it is asked for a sign of life; None: that is
    the other side's to do."""
    answer_max_s: float = 10.0
    """How long that may take before the connection counts as lost."""


class SocketPipe(asyncio.Protocol):
    """One end of a connection. Implements ``Pipe`` for a ``PipeUser``, who may change."""

    def __init__(self, user: PipeUser, peer: str, options: SocketOptions) -> None:
        """Wait to be connected; ``peer`` is for errors."""
        self.user = user
        self._peer = peer
        self._options = options
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._paused = False
        self._writing = False
        self._heard = False
        self._watch: asyncio.TimerHandle | None = None
        self._why: str | None = None

    # -- Pipe --------------------------------------------------------------------------------------

    def write(self, parts: Sequence[bytes]) -> bool:
        """Send one message; see ``Pipe.write``."""
        if self._transport is None or self._transport.is_closing():
            return True  # `lost` comes, or has come.
        length = sum(map(len, parts)).to_bytes(_LENGTH_BYTES)
        self._transport.write(b"".join((length, *parts)))
        return not self._writing

    def pause_reading(self) -> None:
        """See ``Pipe.pause_reading``."""
        self._paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """See ``Pipe.resume_reading``."""
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        if self._buffer:  # What had arrived with the last message that was delivered.
            asyncio.get_running_loop().call_soon(self._deliver_buffer)

    def close(self) -> None:
        """See ``Pipe.close``."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """See ``Pipe.abort``."""
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; what the kernel has not taken counts as not written."""
        # uvloop's are transports without being of this class.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        _keep_alive(self._transport)
        self._watch_silence()

    def data_received(self, data: bytes) -> None:
        """Deliver the messages that are whole."""
        self._heard = True
        if self._buffer:
            self._buffer += data
            self._deliver_buffer()
        else:
            taken = self._deliver(data)
            self._buffer += data[taken:]

    def pause_writing(self) -> None:
        """Remember that the kernel did not take all of a message."""
        self._writing = True

    def resume_writing(self) -> None:
        """Tell that it has."""
        self._writing = False
        self.user.written()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that it is over."""
        if self._watch is not None:
            self._watch.cancel()
        self._buffer.clear()
        why = self._why or (str(exc) if exc is not None else "it was closed")
        self.user.lost(NetworkExceptionError(f"connection to {self._peer} is lost: {why}"))

    # -- inside ------------------------------------------------------------------------------------

    def _deliver_buffer(self) -> None:
        del self._buffer[: self._deliver(self._buffer)]

    def _deliver(self, data: bytes | bytearray) -> int:
        """Deliver the messages at the beginning of data; returns how many bytes they were."""
        with memoryview(data) as view:
            start = 0
            while not self._paused and len(view) - start >= _LENGTH_BYTES:
                begin = start + _LENGTH_BYTES
                end = begin + int.from_bytes(view[start:begin])
                if end - begin > self._options.message_size_max_bytes:
                    self._give_up(f"a message of {end - begin} bytes is larger than is taken")
                    return len(view)
                if end > len(view):
                    break
                start = end
                if begin == end:
                    self._answer_sign_of_life()
                else:
                    self.user.received(bytes(view[begin:end]))
            return start

    def _answer_sign_of_life(self) -> None:
        if self._options.silence_max_s is None and not self._writing and self._transport:
            self._transport.write(_SIGN_OF_LIFE)

    def _watch_silence(self) -> None:
        if self._options.silence_max_s is not None:
            self._watch = asyncio.get_running_loop().call_later(
                self._options.silence_max_s, self._ask_if_silent
            )
            self._heard = False

    def _ask_if_silent(self) -> None:
        if self._heard:
            self._watch_silence()
            return
        if not self._writing and self._transport is not None:
            self._transport.write(_SIGN_OF_LIFE)
        self._watch = asyncio.get_running_loop().call_later(
            self._options.answer_max_s, self._lose_if_silent
        )

    def _lose_if_silent(self) -> None:
        if self._heard:
            self._watch_silence()
        else:
            self._give_up("the other side is silent")

    def _give_up(self, why: str) -> None:
        self._why = why
        self.abort()


def _keep_alive(transport: asyncio.Transport) -> None:
    """Let the kernel notice a peer whose machine is gone."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


async def connect(
    host: str, port: int, preface: bytes, user: PipeUser, options: SocketOptions
) -> SocketPipe:
    """Connect, and send the first message. Raises OSError."""
    _, pipe = await asyncio.get_running_loop().create_connection(
        lambda: SocketPipe(user, f"{host}:{port}", options), host, port
    )
    pipe.write((preface,))
    return pipe
