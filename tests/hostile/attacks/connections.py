"""Connections that do nothing, in great numbers."""

import asyncio
from contextlib import AsyncExitStack

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import frame_line, frames_port, stream_line
from hostile.stage import Stage
from semel_common.wire.methods import BROKER
from semel_local.layout import Role

HOLD_S = 3.0
"""How long connections are held while the polite client goes on."""
ANNOUNCED_BYTES = 15 << 20
_CLIENT_HELLO_BEGUN = bytes.fromhex("16030100f8010000f40303")


async def _idle_streams(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.BROKER).address
    async with AsyncExitStack() as stack:
        for _ in range(150):
            try:
                await stack.enter_async_context(frame_line(stage, address, BROKER, Caller.WRITER))
            except (OSError, PermissionError) as error:
                sent.add(str(error))
            else:
                sent.add("OK")
        await asyncio.sleep(HOLD_S)


async def _idle_grpc_streams(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.BROKER).address
    async with AsyncExitStack() as stack:
        for _ in range(150):
            await stack.enter_async_context(stream_line(stage, address, BROKER, Caller.WRITER))
            sent.add("opened")
        await asyncio.sleep(HOLD_S)


async def _announced(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.BROKER).address
    async with AsyncExitStack() as stack:
        for _ in range(60):
            try:
                line = await stack.enter_async_context(
                    frame_line(stage, address, BROKER, Caller.WRITER)
                )
                await line.announce(ANNOUNCED_BYTES, bytes(16))
            except (OSError, PermissionError) as error:
                sent.add(str(error))
            else:
                sent.add("OK", 20)
        await asyncio.sleep(HOLD_S)


async def _silent(sent: Sent, port: int, begin: bytes) -> None:
    writers = []
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            sent.add("refused")
            continue
        writer.write(begin)
        writers.append(writer)
        sent.add("opened", len(begin))
    await asyncio.sleep(HOLD_S)
    for writer in writers:
        writer.transport.abort()


async def _silent_at_frames(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.BROKER).address
    await _silent(sent, await frames_port(stage, address, BROKER), b"")


async def _stalled_at_frames(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.BROKER).address
    await _silent(sent, await frames_port(stage, address, BROKER), _CLIENT_HELLO_BEGUN)


async def _silent_at_grpc(stage: Stage, sent: Sent) -> None:
    port = int(stage.target(Role.COORDINATOR).address.rpartition(":")[2])
    await _silent(sent, port, b"")


async def _stalled_at_grpc(stage: Stage, sent: Sent) -> None:
    port = int(stage.target(Role.COORDINATOR).address.rpartition(":")[2])
    await _silent(sent, port, _CLIENT_HELLO_BEGUN)


ATTACKS = (
    Attack(
        name="idle-streams",
        what="A writer opens frame streams over sockets, and sends nothing.",
        rpc="OpenFrames",
        transport="frames over a socket",
        caller=Caller.WRITER,
        run=_idle_streams,
    ),
    Attack(
        name="idle-grpc-streams",
        what="A writer opens frame streams over gRPC, and sends nothing.",
        rpc="Stream",
        transport="frames over gRPC",
        caller=Caller.WRITER,
        run=_idle_grpc_streams,
        quick=False,
    ),
    Attack(
        name="announced-lengths",
        what="A writer announces large messages on many sockets, and does not send them.",
        rpc="connection",
        transport="frames over a socket",
        caller=Caller.WRITER,
        run=_announced,
        peak_max_bytes=256 << 20,
    ),
    Attack(
        name="silent-at-frames",
        what="A client without a token connects to the frames port, and sends nothing.",
        rpc="connection",
        transport="TCP",
        caller=Caller.NOBODY,
        run=_silent_at_frames,
    ),
    Attack(
        name="stalled-tls-at-frames",
        what="A client without a token begins TLS handshakes at the frames port, and stops.",
        rpc="connection",
        transport="TLS",
        caller=Caller.NOBODY,
        run=_stalled_at_frames,
        quick=False,
    ),
    Attack(
        name="silent-at-grpc",
        what="A client without a token connects to the gRPC port, and sends nothing.",
        rpc="connection",
        transport="TCP",
        caller=Caller.NOBODY,
        run=_silent_at_grpc,
        quick=False,
    ),
    Attack(
        name="stalled-tls-at-grpc",
        what="A client without a token begins TLS handshakes at the gRPC port, and stops.",
        rpc="connection",
        transport="TLS",
        caller=Caller.NOBODY,
        run=_stalled_at_grpc,
        quick=False,
    ),
)
