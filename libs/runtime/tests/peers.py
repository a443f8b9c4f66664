"""Servers that are no service of Semel: what clients may find at an address."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

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


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[str]:
    """Let a peer listen; yields its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
            with suppress(OSError):
                await writer.drain()
        finally:
            writer.close()

    serving: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as group:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.add(group.create_task(serve(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for each in serving:
                each.cancel()
