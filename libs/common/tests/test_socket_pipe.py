"""Messages over a socket arrive whole and in order, and no more than are wanted; silence shows."""

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

import pytest

from semel_common.errors import SemelError
from semel_common.wire.frames.length_prefix import SIGN_OF_LIFE
from semel_common.wire.frames.socket_pipe import SocketOptions, SocketPipe, connect

HOST = "127.0.0.1"
OPTIONS = SocketOptions(message_size_max_bytes=9 << 20)


class Heard:
    """A user of a pipe that notes what it is told."""

    def __init__(self) -> None:
        self.pipe: SocketPipe | None = None
        self.messages: list[bytes | bytearray] = []
        self.error: SemelError | None = None
        self.pauses_after: int | None = None
        self.aborts_at_once = False
        self.changed = asyncio.Condition()
        self.is_written = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, message: bytes | bytearray) -> None:
        self.messages.append(message)
        if len(self.messages) == self.pauses_after and self.pipe is not None:
            self.pipe.pause_reading()
        if self.aborts_at_once and self.pipe is not None:
            self.pipe.abort()
        self._tell()

    def written(self) -> None:
        self.is_written.set()

    def lost(self, error: SemelError) -> None:
        self.error = error
        self._tell()

    async def until(self, count: int) -> None:
        """Wait for so many messages."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.messages) >= count)

    async def until_lost(self) -> str:
        """Wait for the end; returns why."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.error is not None)
        return str(self.error)

    def _tell(self) -> None:
        task = asyncio.ensure_future(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()


@asynccontextmanager
async def pair(
    near_options: SocketOptions = OPTIONS, far_options: SocketOptions = OPTIONS
) -> AsyncIterator[tuple[Heard, Heard]]:
    """Connect two users; the first message has been the preface."""
    near, far = Heard(), Heard()

    def accept() -> SocketPipe:
        far.pipe = SocketPipe(far, "near", far_options)
        return far.pipe

    server = await asyncio.get_running_loop().create_server(accept, HOST, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        near.pipe = await connect(HOST, port, b"preface", near, near_options)
        await far.until(1)
        assert far.messages.pop() == b"preface"
        yield near, far
        near.pipe.abort()
        await far.until_lost()
        await near.until_lost()


async def test_messages_of_any_size_arrive_whole_and_in_order() -> None:
    messages = [b"1", b"22", bytes(8 << 20), b"3", b"x" * 70_000]
    async with pair() as (near, far):
        assert near.pipe is not None
        for message in messages:
            near.is_written.clear()
            if not near.pipe.write((message[:1], message[1:])):
                await near.is_written.wait()
        await far.until(len(messages))
        assert far.messages == messages


async def test_nothing_is_delivered_while_reading_is_paused() -> None:
    async with pair() as (near, far):
        assert near.pipe is not None
        assert far.pipe is not None
        far.pauses_after = 2
        for number in range(5):
            near.pipe.write((bytes((number,)),))
        await far.until(2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert far.messages == [b"\0", b"\1"]
        far.pipe.resume_reading()
        await far.until(5)
        assert far.messages[-1] == b"\4"


async def test_a_message_counts_as_written_when_the_other_side_has_room_for_it() -> None:
    async with pair() as (near, far):
        assert near.pipe is not None
        assert far.pipe is not None
        far.pipe.pause_reading()
        assert not near.pipe.write((bytes(9 << 20),))
        assert not near.is_written.is_set()
        far.pipe.resume_reading()
        await near.is_written.wait()


async def test_a_length_that_is_none_of_ours_ends_the_connection() -> None:
    async with pair(far_options=SocketOptions(message_size_max_bytes=10)) as (near, far):
        assert near.pipe is not None
        near.pipe.write((b"x" * 11,))
        assert "a message of 11 bytes, more than 10" in await far.until_lost()
        await near.until_lost()


async def test_a_pipe_that_ends_holds_no_half_of_a_message() -> None:
    """Nor its user, which holds the pipe: no garbage collector is needed to free them."""
    gc.disable()
    tracemalloc.start()
    try:
        async with pair() as (near, far):
            assert near.pipe is not None
            user = weakref.ref(far)
            near.pipe.write((bytes(9 << 20),))
            near.pipe.abort()
            await far.until_lost()
            assert far.pipe is not None
            assert tracemalloc.get_traced_memory()[0] < 1 << 20
            del far
        assert user() is None
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_nothing_is_delivered_once_it_was_given_up() -> None:
    async with pair() as (near, far):
        assert near.pipe is not None
        assert far.pipe is not None
        far.aborts_at_once = True
        near.pipe.write((b"1",))
        near.pipe.write((b"2",))
        await far.until_lost()
        assert far.messages == [b"1"]


async def test_a_silent_side_is_asked_for_a_sign_of_life_and_stays_if_it_gives_one() -> None:
    asked = asyncio.Semaphore(0)

    async def say_little(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(b"1234hello"))
        with suppress(asyncio.IncompleteReadError):
            while await reader.readexactly(4) == SIGN_OF_LIFE:
                asked.release()
                writer.write(SIGN_OF_LIFE)
        writer.close()

    user = Heard()
    watching = SocketOptions(message_size_max_bytes=10, silence_max_s=0.01, answer_max_s=2.0)
    async with await asyncio.start_server(say_little, HOST, 0) as server:
        pipe = await connect(HOST, server.sockets[0].getsockname()[1], b"hello", user, watching)
        for _ in range(3):
            await asked.acquire()
        assert (user.error, user.messages) == (None, [])
        pipe.close()
        await user.until_lost()


async def test_a_peer_asked_for_a_sign_of_life_gives_one() -> None:
    user = Heard()

    def accept() -> SocketPipe:
        return SocketPipe(user, "a peer", OPTIONS)

    async with await asyncio.get_running_loop().create_server(accept, HOST, 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(SIGN_OF_LIFE)
        assert await reader.readexactly(4) == SIGN_OF_LIFE
        writer.close()
        await user.until_lost()
    assert user.messages == []


async def test_a_side_that_gives_none_is_lost() -> None:
    async def say_one_thing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SIGN_OF_LIFE)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    user = Heard()
    watching = SocketOptions(message_size_max_bytes=10, silence_max_s=0.01, answer_max_s=0.01)
    async with await asyncio.start_server(say_one_thing, HOST, 0) as server:
        await connect(HOST, server.sockets[0].getsockname()[1], b"hello", user, watching)
        assert "silent" in await user.until_lost()


async def close_at_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def speak_first(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\0\0\0\2hi")
    writer.close()


@pytest.mark.parametrize("peer", [close_at_once, speak_http, speak_first])
async def test_side_without_a_sign_of_life_is_no_peer_and_its_user_learns_nothing(
    peer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    user = Heard()
    async with await asyncio.start_server(peer, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionError):
            await connect(HOST, port, b"hello", user, OPTIONS)
        await asyncio.sleep(0)
    assert (user.error, user.messages) == (None, [])


async def test_connection_that_ends_when_its_caller_was_cancelled_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipe = SocketPipe(Heard(), "a server", OPTIONS)
    pipe.expect_sign_of_life()
    pipe.connection_lost(None)
    del pipe
    gc.collect()
    assert not caplog.messages


async def test_a_missing_peer_cannot_be_connected_to() -> None:
    async with await asyncio.start_server(lambda _, __: None, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        await connect(HOST, port, b"hello", Heard(), OPTIONS)


async def test_a_pipe_that_is_given_up_before_it_is_connected_ends_when_it_is() -> None:
    heard = Heard()

    def given_up() -> SocketPipe:
        pipe = SocketPipe(heard, "a client", OPTIONS)
        pipe.abort()
        return pipe

    server = await asyncio.get_running_loop().create_server(given_up, HOST, 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        with closing(writer), suppress(ConnectionError):
            assert await reader.read() == b""
    assert "is lost" in await heard.until_lost()
