"""Connections that do nothing, in great numbers."""

import asyncio
from contextlib import AsyncExitStack

from hostile.attack import Attack, Run, Sent
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


def _held(role: Role, begin: bytes, *, frames: bool) -> Run:
    """Return an attack that opens connections, sends ``begin`` on each, and holds them."""

    async def run(stage: Stage, sent: Sent) -> None:
        address = stage.target(role).address
        port = int(address.rpartition(":")[2])
        if frames:
            port = await frames_port(stage, address, BROKER)
        writers = [await _begun(sent, port, begin) for _ in range(600)]
        await asyncio.sleep(HOLD_S)
        for writer in writers:
            if writer is not None:
                writer.transport.abort()

    return run


async def _begun(sent: Sent, port: int, begin: bytes) -> asyncio.StreamWriter | None:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        sent.add("refused")
        return None
    writer.write(begin)
    sent.add("opened", len(begin))
    return writer


def _holding(where: str, role: Role, begin: bytes, *, quick: bool = False) -> Attack:
    """Return the attack of clients without a token that connect, and do no more than begin."""
    stalled = bool(begin)
    does = "begins TLS handshakes" if stalled else "opens connections"
    return Attack(
        name=f"{'stalled-tls' if stalled else 'silent'}-at-{where.lower()}",
        what=f"A client without a token {does} at the {where} port, and sends nothing more.",
        rpc="connection",
        transport="TLS" if stalled else "TCP",
        caller=Caller.NOBODY,
        run=_held(role, begin, frames=where == "frames"),
        quick=quick,
    )


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
    _holding("frames", Role.BROKER, b"", quick=True),
    _holding("frames", Role.BROKER, _CLIENT_HELLO_BEGUN),
    _holding("gRPC", Role.COORDINATOR, b""),
    _holding("gRPC", Role.COORDINATOR, _CLIENT_HELLO_BEGUN),
)
