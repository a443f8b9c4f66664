"""Servers that are no service of Semel: what clients may find at an address."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from semel_runtime.testing.stop_listening import stop_listening

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Accept, and answer nothing."""
    with suppress(OSError):
        await reader.read()


async def closing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    """Accept, and close."""


async def speaking_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a server of HTTP/1 does."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def speaking_otherwise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Greet with bytes of no protocol."""
    writer.write(bytes(range(200, 256)))
    await reader.read(1)


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
    """Carry bytes both ways between a connection and an address, until both sides have ended."""
    host, _, port = address.rpartition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(reader, far_writer))
            group.create_task(_carry(far_reader, writer))
    finally:
        far_writer.transport.abort()


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            sink.write(data)
    sink.close()


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[str]:
    """Let a peer listen; yields its address. Every connection has ended when the block has."""
    serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    closed = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
            with suppress(OSError):
                await writer.drain()
        finally:
            writer.close()

    async with asyncio.TaskGroup() as group:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if closed:  # The server had accepted it before it was closed.
                writer.transport.abort()
            else:
                serving[group.create_task(serve(reader, writer))] = writer

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            closed = True
            await stop_listening(server)
            for task, writer in serving.items():
                task.cancel()
                writer.transport.abort()  # A task that has not begun closes nothing.
