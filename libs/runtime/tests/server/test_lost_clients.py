"""What a server does about clients that vanish or fall silent, over real connections."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc
import pytest
from peers import listening
from server_harness import serving

from semel.group.v1 import group_pb2 as group
from semel.group.v1.group_pb2_grpc import GroupServiceStub
from semel_common.errors import ProducerFencedError
from semel_common.wire.channel_options import ChannelOptions
from semel_runtime.server.calls import Call
from semel_runtime.server.limits.server_limits import ServerLimits

Request = group.TxnOffsetCommitRequest
Response = group.TxnOffsetCommitResponse

# HTTP/2: a frame has three bytes of length, then type, flags, and four of stream (RFC 9113).
HEADER_BYTES = 9
TYPE, TYPE_AND_FLAGS = 3, slice(3, 5)
DATA, GOAWAY = 0x0, 0x7
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
PING = b"\0\0\x08\x06\0\0\0\0\0any data"
PING_ACK = b"\x06\x01"

LARGE = 8 << 20
"""More than a client takes that does not read."""


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    header = await reader.readexactly(HEADER_BYTES)
    return header + await reader.readexactly(int.from_bytes(header[:3]))


class Wire:
    """Forwards bytes between clients and a server, and looks at them, until it is cut."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._writers: list[asyncio.StreamWriter] = []
        self.answering = asyncio.Event()
        """Set when a part of a large answer has come through."""

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._address.rpartition(":")
        server_reader, server_writer = await asyncio.open_connection(host, int(port))
        self._writers += (writer, server_writer)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry_requests(reader, server_writer))
                group.create_task(self._carry_answers(server_reader, writer))
        finally:
            server_writer.transport.abort()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _carry_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async def _carry_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(reader)
                writer.write(frame)
                await writer.drain()
                if frame[TYPE] == DATA:
                    self.answering.set()


@asynccontextmanager
async def wire_to(address: str) -> AsyncIterator[tuple[Wire, str]]:
    """Put a wire before a server; yields it, and the address to connect to."""
    wire = Wire(address)
    async with listening(wire.connect) as near_address:
        yield wire, near_address


async def test_client_that_vanishes_in_the_middle_of_a_write_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cancelled = asyncio.Event()

    async def answer(request: Request, _: Call) -> Response:
        if request.base_sequence == 1:
            raise ProducerFencedError("x" * LARGE)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with serving(answer) as served, wire_to(served.address) as (wire, address):
        channel = grpc.aio.insecure_channel(address)
        stream = GroupServiceStub(channel).Stream()
        frames = [
            group.RequestFrame(correlation_id=i, txn_offset_commit=Request(base_sequence=i))
            for i in range(2)
        ]
        await stream.write(group.StreamRequest(frames=frames))
        await wire.answering.wait()
        wire.cut()
        await cancelled.wait()
        await channel.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_idle_client_may_ask_whether_the_server_is_there() -> None:
    async with serving(no_call, ServerLimits(ping_interval_min_ms=0)) as served:
        reader, writer = await asyncio.open_connection(*served.address.split(":"))
        writer.write(PREFACE + SETTINGS)
        for _ in range(10):  # gRPC sends a client away at the third question that comes too early.
            writer.write(PING)
            while (answer := await read_frame(reader))[TYPE_AND_FLAGS] != PING_ACK:
                assert answer[TYPE] != GOAWAY, answer
        writer.close()


def test_servers_allow_the_keepalive_of_clients() -> None:
    assert ServerLimits().ping_interval_min_ms < ChannelOptions().keepalive_time_ms


async def no_call(_: Request, __: Call) -> Response:
    raise AssertionError
