"""A wire to PostgreSQL that breaks around a COMMIT: the server has committed, or never heard it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

from semel_runtime.testing.stop_listening import stop_listening

_CHUNK_BYTES = 64 << 10


class Break(StrEnum):
    """Where the wire breaks."""

    BEFORE = "before the server has the COMMIT"
    AFTER = "after the server has committed"


class Wire:
    """All connections to one server, as a TCP proxy."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._armed: Break | None = None
        self.port = 0
        self.breaks = 0
        """How often it broke."""

    def arm(self, where: Break) -> None:
        """Break at the next COMMIT of a transaction that writes a payment."""
        self._armed = where

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Listen for the length of a block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1")
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            await stop_listening(server)

    async def _serve(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        far_in, far_out = await asyncio.open_connection("127.0.0.1", self._server_port)
        breaking = asyncio.Event()
        try:
            with contextlib.suppress(OSError):
                async with asyncio.TaskGroup() as group:
                    there = group.create_task(self._there(near_in, far_out, breaking))
                    back = group.create_task(_back(far_in, near_out, breaking))
                    await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
                    there.cancel()
                    back.cancel()
        finally:
            near_out.transport.abort()
            far_out.transport.abort()

    async def _there(
        self, near: asyncio.StreamReader, far: asyncio.StreamWriter, breaking: asyncio.Event
    ) -> None:
        has_payment = False
        while data := await near.read(_CHUNK_BYTES):
            armed = self._armed
            has_payment |= b"INTO payment" in data
            if armed is not None and has_payment and b"COMMIT" in data:
                self._armed = None
                self.breaks += 1
                if armed is Break.BEFORE:
                    return
                breaking.set()  # The next piece that comes back is the answer.
            far.write(data)
            await far.drain()


async def _back(
    far: asyncio.StreamReader, near: asyncio.StreamWriter, breaking: asyncio.Event
) -> None:
    while data := await far.read(_CHUNK_BYTES):
        if breaking.is_set():
            return
        near.write(data)
        await near.drain()
