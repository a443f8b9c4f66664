"""Messages over a connection of their own, as ``messages`` writes them.

gRPC moves a message through threads of its own, nine times from one to another for one call and its
answer. Here the event loop reads and writes the socket itself.
"""

import asyncio
import select
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, cast

from semel_common.errors import NetworkExceptionError, SemelError
from semel_common.wire.frames.length_prefix import (
    SIGN_OF_LIFE,
    MessageReader,
    MessageSizeError,
    write_message,
)
from semel_common.wire.frames.pipe import MessageRoom, PipeUser

_PAUSE_LOOK_S = 0.5
"""How often to look after the other side while it is not read."""
_HANG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)
"""Only Linux tells of a side that has ended before all that it sent was read."""


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
    arrival_max_s: float | None = None
    """How long a message that fills the buffer may take to arrive while it is read; None: as long
    as it does."""


class PeerCertificate(TypedDict, total=False):
    """The parts of ``ssl.SSLObject.getpeercert`` that name the owner of a certificate."""

    subject: tuple[tuple[tuple[str, str], ...], ...]
    subjectAltName: tuple[tuple[str, str], ...]


class SocketPipe(asyncio.BufferedProtocol):
    """One end of a connection. Implements ``Pipe`` for a ``PipeUser``, which may change.

    Pipe and user know each other until the connection is lost, and no longer: nothing of them waits
    for the garbage collector.
    """

    def __init__(self, user: PipeUser, peer: str, options: SocketOptions) -> None:
        """Wait to be connected; ``peer`` is for errors."""
        self._user = user
        self._peer = peer
        self._options = options
        self._transport: asyncio.Transport | None = None
        self._reader = MessageReader(options.message_size_max_bytes)
        self._room: MessageRoom | None = None
        self._taken_bytes = 0
        """Room for the message that arrives."""
        self._waiting_for_room = False
        self._arrival: asyncio.TimerHandle | None = None
        self._pause_watch: asyncio.TimerHandle | None = None
        self._paused = False
        self._writing = False
        self._heard = False
        self._watch: asyncio.TimerHandle | None = None
        self._unwanted = False
        self._why: str | None = None
        self._first_sign: asyncio.Future[ConnectionError | None] | None = None
        """Whether the other side has given the first sign of life; None: no longer waited for."""

    def expect_sign_of_life(self) -> None:
        """Tell the user nothing before the other side has given a sign of life."""
        self._first_sign = asyncio.get_running_loop().create_future()

    async def until_sign_of_life(self) -> None:
        """Ask for the sign of life that is expected, and wait for it.

        Raises ConnectionError if the other side ends the connection, or answers with anything else;
        then the user is never told anything.
        """
        assert self._first_sign is not None
        self.write(())
        try:
            lost = await self._first_sign
        except asyncio.CancelledError:
            self._user = _Nobody()
            raise
        finally:
            self._first_sign = None
        if lost is not None:
            raise lost

    def hand_over(self, user: PipeUser, options: SocketOptions, room: MessageRoom) -> None:
        """Let another user have it from the next message on, with these options.

        ``room`` is asked before memory is taken for a large message.
        """
        self._user = user
        self._options = options
        self._room = room
        self._reader.take_up_to(options.message_size_max_bytes)

    def peer_certificate(self) -> PeerCertificate:
        """Return the certificate that the other side has shown; empty if there is none."""
        if self._transport is None:
            return {}
        found: PeerCertificate | None = self._transport.get_extra_info("peercert")
        return found or {}

    # -- Pipe --------------------------------------------------------------------------------------

    def write(self, parts: Sequence[bytes]) -> bool:
        """Send one message; see ``Pipe.write``."""
        if self._transport is None or self._transport.is_closing():
            return True  # `lost` comes, or has come.
        self._transport.write(write_message(parts))
        return not self._writing

    def pause_reading(self) -> None:
        """See ``Pipe.pause_reading``."""
        self._paused = True
        self._watch_arrival()
        self._stop_reading()
        self._watch_pause()

    def resume_reading(self) -> None:
        """See ``Pipe.resume_reading``."""
        self._paused = False
        self._watch_arrival()
        self._watch_pause()
        asyncio.get_running_loop().call_soon(self._read_on)

    def close(self) -> None:
        """See ``Pipe.close``."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """See ``Pipe.abort``; if it is not connected yet, it ends as soon as it is."""
        self._unwanted = True
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; what the kernel has not taken counts as not written."""
        # uvloop's are transports without being of this class.
        self._transport = cast("asyncio.Transport", transport)
        if self._unwanted:
            self._transport.abort()
            return
        # TLS pauses a writer at the limit, even an empty one at 0, and never resumes it.
        encrypted = transport.get_extra_info("sslcontext") is not None
        self._transport.set_write_buffer_limits(high=int(encrypted), low=0)
        _keep_alive(self._transport)
        self._watch_silence()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what arrives."""
        del sizehint  # A message has the size that it has.
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Deliver the messages that are whole."""
        self._heard = True
        self._reader.filled(nbytes)
        self._deliver()

    def pause_writing(self) -> None:
        """Remember that the kernel did not take all of a message."""
        self._writing = True

    def resume_writing(self) -> None:
        """Tell that it has."""
        self._writing = False
        self._user.written()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that it is over, and hold nothing any more: no user, no half of a message."""
        if self._watch is not None:
            self._watch.cancel()
        self._unwanted = True
        self._watch_arrival()
        self._watch_pause()
        self._give_room_back()
        why = self._why or (str(exc) if exc is not None else "it was closed")
        user, self._user = self._user, _Nobody()
        if self._room is not None:
            self._room.leave()
            self._room = None
        self._reader = MessageReader(0)
        if self._first_sign is not None and not self._first_sign.done():
            # A result: asyncio would log an exception that a cancelled caller does not fetch.
            self._first_sign.set_result(ConnectionError(why))
        elif self._first_sign is None or not self._first_sign.cancelled():
            user.lost(NetworkExceptionError(f"connection to {self._peer} is lost: {why}"))

    # -- inside ------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Deliver what had arrived with the message that made the user pause; then read again."""
        if self._paused or self._transport is None or self._transport.is_closing():
            return
        if self._deliver() and not self._transport.is_closing():
            self._transport.resume_reading()

    def _deliver(self) -> bool:
        """Deliver the messages that are whole; returns whether more are wanted."""
        while not self._paused and not self._waiting_for_room and not self._unwanted:
            try:
                message = self._reader.next_message()
            except MessageSizeError as error:
                self._give_up(str(error))
                return False
            if message is None:
                return not self._reader.announced or self._begin_large()
            if not message:
                self._take_sign_of_life()
            elif self._first_sign is not None:
                self._give_up("the other side answers with another protocol")
            else:
                self._user.received(message)
                if self._taken_bytes:
                    self._give_room_back()
        return False

    # -- pauses ------------------------------------------------------------------------------------

    def _watch_pause(self) -> None:
        """Look whether the other side is there while the socket, which would tell, is not read."""
        silent = (self._paused or self._waiting_for_room) and not self._unwanted
        if silent and self._pause_watch is None:
            self._pause_watch = asyncio.get_running_loop().call_later(
                _PAUSE_LOOK_S, self._look_if_gone
            )
        elif not silent and self._pause_watch is not None:
            self._pause_watch.cancel()
            self._pause_watch = None

    def _look_if_gone(self) -> None:
        self._pause_watch = None
        if self._transport is not None and _has_hung_up(self._transport):
            self._give_up("the other side has gone while it was not read")
        else:
            self._watch_pause()

    # -- large messages ----------------------------------------------------------------------------

    def _begin_large(self) -> bool:
        """Begin the message that is announced, if there is room for it; else read no further."""
        size_bytes = self._reader.announced
        if self._room is not None:
            if not self._room.take(size_bytes, self._room_granted):
                self._waiting_for_room = True
                self._stop_reading()
                self._watch_pause()
                return False
            self._taken_bytes = size_bytes
        self._reader.begin_large()
        self._watch_arrival()
        return True

    def _room_granted(self) -> None:
        self._waiting_for_room = False
        self._watch_pause()
        self._taken_bytes = self._reader.announced
        self._reader.begin_large()
        self._watch_arrival()
        self._read_on()

    def _give_room_back(self) -> None:
        """Give room back: its message was delivered, or never comes."""
        if self._taken_bytes and self._room is not None:
            taken, self._taken_bytes = self._taken_bytes, 0
            self._room.give_back(taken)
            self._watch_arrival()

    def _watch_arrival(self) -> None:
        """Have the time for a large message run while one is read, and only then."""
        watched = self._taken_bytes > 0 and not self._paused and not self._unwanted
        if watched and self._arrival is None and self._options.arrival_max_s is not None:
            self._arrival = asyncio.get_running_loop().call_later(
                self._options.arrival_max_s, self._give_up, "a message takes too long to arrive"
            )
        elif not watched and self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _take_sign_of_life(self) -> None:
        """Answer it, if it is a question."""
        if self._first_sign is not None and not self._first_sign.done():
            self._first_sign.set_result(None)
        if self._options.silence_max_s is None and not self._writing and self._transport:
            self._transport.write(SIGN_OF_LIFE)

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
            self._transport.write(SIGN_OF_LIFE)
        self._watch = asyncio.get_running_loop().call_later(
            self._options.answer_max_s, self._lose_if_silent
        )

    def _lose_if_silent(self) -> None:
        if self._heard:
            self._watch_silence()
        else:
            self._give_up("the other side is silent")

    def _stop_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _give_up(self, why: str) -> None:
        self._why = why
        self.abort()


class _Nobody:
    """Uses a pipe that has ended."""

    def received(self, message: bytes | bytearray) -> None:
        """Nothing is received."""

    def written(self) -> None:
        """Nothing was written."""

    def lost(self, error: SemelError) -> None:
        """Nothing is lost."""


def _has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether the other side has ended the connection, with bytes before that or without."""
    looking = select.poll()
    looking.register(transport.get_extra_info("socket").fileno(), _HANG_UP)
    return bool(looking.poll(0))


def _keep_alive(transport: asyncio.Transport) -> None:
    """Let the kernel notice a peer whose machine is gone."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class ClientTls(NamedTuple):
    """How a client's socket is encrypted."""

    context: ssl.SSLContext
    server_name: str
    """Whose certificate to expect."""


async def connect(
    host: str,
    port: int,
    preface: bytes,
    user: PipeUser,
    options: SocketOptions,
    tls: ClientTls | None = None,
) -> SocketPipe:
    """Connect, send the first message, and wait for a sign that the other side has taken it.

    Raises OSError, of which SSLError and ConnectionError are some; then the user was told nothing.
    """

    def client_end() -> SocketPipe:
        pipe = SocketPipe(user, f"{host}:{port}", options)
        pipe.expect_sign_of_life()
        return pipe

    _, pipe = await asyncio.get_running_loop().create_connection(
        client_end,
        host,
        port,
        ssl=None if tls is None else tls.context,
        server_hostname=None if tls is None else tls.server_name,
    )
    try:
        pipe.write((preface,))
        await pipe.until_sign_of_life()
    except BaseException:
        pipe.abort()
        raise
    return pipe
