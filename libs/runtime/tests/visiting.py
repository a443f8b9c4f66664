"""Connections to a port for frames that are written by hand."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

from server_harness import Request, Served

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest, OpenFramesResponse
from semel.group.v1 import group_pb2 as group
from semel_common.wire.methods import GROUP, OPEN_FRAMES
from semel_runtime.testing.virtual_time import after


async def offer_of(served: Served) -> OpenFramesResponse:
    return await served.connection.call(
        OPEN_FRAMES, OpenFramesRequest(service=GROUP), timeout_ms=5_000
    )


class Visitor:
    """A connection that is written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, message: bytes) -> None:
        self._writer.write(len(message).to_bytes(4) + message)

    @classmethod
    async def open(cls, port: int, tls: ssl.SSLContext | None = None) -> "Visitor":
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls))

    def close(self) -> None:
        self._writer.close()

    def send_raw(self, data: bytes) -> None:
        self._writer.write(data)

    async def send_signs_of_life(self) -> None:
        while True:
            self.send(b"")
            await after(50)

    async def ends_after_signs_of_life(self) -> bool:
        """Read until the end; whether there was nothing but signs of life."""
        received = b""
        with suppress(ConnectionError):
            while data := await self._reader.read(1_000):
                received += data
        return bool(received) and set(received) == {0}

    def announce(self, size_bytes: int) -> None:
        self._writer.write(size_bytes.to_bytes(4))

    def show(self, ticket: bytes) -> None:
        self.send(FramesPreface(ticket=ticket).SerializeToString())

    def ask(self, number: int) -> None:
        frame = group.RequestFrame(
            correlation_id=number, txn_offset_commit=Request(base_sequence=number)
        )
        self.send(group.StreamRequest(frames=[frame]).SerializeToString())

    async def answer(self) -> int:
        size = int.from_bytes(await self._reader.readexactly(4))
        message = group.StreamResponse.FromString(await self._reader.readexactly(size))
        return message.frames[0].txn_offset_commit.throttle_time_ms

    async def is_sent_away(self) -> bool:
        try:
            return await self._reader.read() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def visiting(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Visitor]:
    visitor = await Visitor.open(port, tls)
    with closing(visitor):
        yield visitor
