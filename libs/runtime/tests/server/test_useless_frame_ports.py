"""A port for frames behind a mesh or a proxy: frames go over gRPC, and the log has one line."""

import asyncio
import logging

import grpc
import pytest
from peers import Peer, closing, listening, silent, speaking_http, speaking_otherwise
from server_harness import Request, echo, serving

from semel.common.v1.frames_pb2 import OpenFramesResponse
from semel_common.errors import SemelError
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import ClientCredentials, Security
from semel_common.wire.frames.length_prefix import SIGN_OF_LIFE
from semel_common.wire.frames.socket_pipe import SocketPipe
from semel_common.wire.frames.transport_choice import FramesOpening
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import GROUP, TXN_OFFSET_COMMIT
from semel_runtime.cluster.metadata_image import Listener

OPTIONS = ChannelOptions(frames_timeout_ms=200)


def at(address: str) -> Listener:
    host, _, port = address.rpartition(":")
    return Listener(name="default", host=host, port=int(port))


@pytest.mark.parametrize("peer", [closing, silent, speaking_http, speaking_otherwise])
async def test_port_that_is_of_no_use_for_frames_is_left_with_one_warning(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with listening(peer) as address, serving(echo, frames_at=at(address)) as served:
        for _ in range(2):
            connector = GrpcConnector(OPTIONS)
            connection = connector.connect(served.address)
            for cluster in ("", "c"):  # A stream for each.
                answer = await connection.call(
                    TXN_OFFSET_COMMIT,
                    Request(base_sequence=7),
                    timeout_ms=5_000,
                    cluster_id=cluster,
                )
                assert answer.throttle_time_ms == 7
            await connector.close()
    ours = [record for record in caplog.records if record.name.startswith("semel_common")]
    warnings = [our.getMessage() for our in ours]
    assert len(warnings) == 2  # One for each connection.
    assert f"go over gRPC, which is slower: their port {address} cannot be used" in warnings[0]


class OverGrpcError(Exception):
    """The pipe would be a stream of gRPC."""


async def over_grpc() -> grpc.aio.Channel:
    raise OverGrpcError


async def no_metadata() -> tuple[tuple[str, str], ...]:
    return ()


class Unheard:
    """A user of a pipe that is told nothing."""

    def received(self, message: bytes | bytearray) -> None:
        raise AssertionError(message)

    def written(self) -> None: ...

    def lost(self, error: SemelError) -> None: ...


@pytest.mark.parametrize(("pause_ms", "connections"), [(0, 2), (60_000, 1)])
async def test_port_is_tried_again_after_a_pause(pause_ms: int, connections: int) -> None:
    seen = 0

    async def recovering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            await reader.readexactly(len(SIGN_OF_LIFE))
            writer.write(SIGN_OF_LIFE)
            await reader.read()

    credentials = ClientCredentials(Security(tls=False))
    async with listening(recovering) as address:
        options = ChannelOptions(frames_pause_ms=pause_ms)
        frames = FramesOpening(address, options, credentials)
        offer = OpenFramesResponse(port=at(address).port)
        with pytest.raises(OverGrpcError):
            await frames.open(GROUP, offer, Unheard(), over_grpc, no_metadata)
        if connections > 1:
            opened = await frames.open(GROUP, offer, Unheard(), over_grpc, no_metadata)
            assert isinstance(opened.pipe, SocketPipe)
            opened.pipe.abort()
        else:
            with pytest.raises(OverGrpcError):
                await frames.open(GROUP, offer, Unheard(), over_grpc, no_metadata)
    assert seen == connections
