"""The proxies between processes: the effect of each fault on the bytes that go through."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from chaos.proxy import Link, Ports
from semel_local.layout import HOST
from semel_local.ports import free_port, port_range


class Echo:
    """A server that answers what it is told, behind a link, and notes it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.heard = bytearray()
        self.hears = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client."""
        while data := await reader.read(100):
            self.heard += data
            self.hears.set()
            writer.write(data)
        writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect through the link."""
        return await asyncio.open_connection(HOST, self.link.ports.grpc)


def some_ports() -> Ports:
    """Two ports that are free now."""
    grpc = free_port(port_range())
    return Ports(grpc=grpc, frames=free_port(port_range(grpc + 1)))


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[Echo]:
    real = some_ports()
    link = Link("clients", "broker-0", real)
    await link.listen(some_ports())
    echo = Echo(link)
    async with await asyncio.start_server(echo.serve, HOST, real.grpc):
        yield echo
        await link.close()


async def test_a_sent_text_is_answered_and_ends(echo: Echo) -> None:
    reader, writer = await echo.connect()
    writer.write(b"hello")
    writer.write_eof()
    assert await reader.read() == b"hello"
    writer.close()


async def test_a_visitor_not_connected_further_yet_is_let_go_at_the_end() -> None:
    with socket.create_server((HOST, 0), backlog=0) as full, ExitStack() as queue:
        for _ in range(2):
            other = queue.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        link = Link("clients", "broker-0", Ports(grpc=full.getsockname()[1], frames=0))
        await link.listen(some_ports())
        reader, writer = await asyncio.open_connection(HOST, link.ports.grpc)
        while not link._serving:  # noqa: ASYNC110 - the link has no event for it
            await asyncio.sleep(0)

        await link.close()

        with pytest.raises(ConnectionError):
            await reader.read()
        writer.close()


async def test_requests_wait_while_their_way_is_cut(echo: Echo) -> None:
    reader, writer = await echo.connect()
    echo.link.requests.cut()
    writer.write(b"hello")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await reader.read(100)
    assert not echo.heard
    echo.link.mend()
    assert await reader.readexactly(5) == b"hello"
    writer.close()


async def test_requests_arrive_while_only_replies_are_cut(echo: Echo) -> None:
    reader, writer = await echo.connect()
    echo.link.replies.cut()
    writer.write(b"hello")
    await echo.hears.wait()
    assert bytes(echo.heard) == b"hello"
    echo.link.mend()
    assert await reader.readexactly(5) == b"hello"
    writer.close()


async def test_a_lost_reply_had_its_effect_and_breaks_the_connection(echo: Echo) -> None:
    reader, writer = await echo.connect()
    echo.link.replies.loses = True
    writer.write(b"hello")
    await echo.hears.wait()
    echo.link.mend()
    with pytest.raises(ConnectionResetError):
        await reader.read(100)
    assert bytes(echo.heard) == b"hello"


async def test_an_instance_that_moves_is_no_more_at_its_old_address(echo: Echo) -> None:
    before = echo.link.ports.grpc
    await echo.link.listen(some_ports())
    reader, writer = await echo.connect()
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(HOST, before)


async def test_a_link_without_a_server_behind_it_breaks_the_connection() -> None:
    link = Link("clients", "broker-0", some_ports())
    await link.listen(some_ports())
    reader, _ = await asyncio.open_connection(HOST, link.ports.grpc)
    with pytest.raises(ConnectionResetError):
        await reader.read(100)
    await link.close()
