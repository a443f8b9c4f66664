"""The wires between processes, as TCP proxies: each may be cut, slow, or lose bytes.

Every instance is reached through one link for each role that calls it, so a fault hits one directed
pair only, such as brokers to coordinator 1. Within a link, requests and replies are apart.
"""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from semel_local.layout import HOST
from semel_runtime.testing.stop_listening import stop_listening

CHUNK_BYTES = 64 << 10
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST, and drops the bytes that were not sent."""


@dataclass(slots=True)
class Direction:
    """One direction of a link: requests, or replies."""

    delay_s: float = 0.0
    """How long each piece takes."""
    loses: bool = False
    """The proxy takes the bytes, and drops them; the connection cannot go on after that."""
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._open.set()

    def cut(self) -> None:
        """Let nothing through: it waits, as on a network that is gone."""
        self._open.clear()

    def mend(self) -> None:
        """Let everything through at once."""
        self.delay_s = 0.0
        self.loses = False
        self._open.set()

    async def carry(self) -> bool:
        """Wait until a piece may arrive; False if it is lost."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.loses:
            return False
        await self._open.wait()
        return True


class Ports(NamedTuple):
    """Where something listens for the calls of one role."""

    grpc: int
    frames: int


class Link:
    """From all processes of one role to one instance: a proxy in front of its real ports."""

    def __init__(self, source: str, target: str, targets: Ports) -> None:
        """Do no I/O yet."""
        self.source = source
        self.target = target
        self.ports = Ports(0, 0)
        """Where it listens; they change when the instance moves."""
        self.requests = Direction()
        self.replies = Direction()
        self._targets = targets
        self._servers: list[asyncio.Server] = []
        self._connections: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._closed = False

    def __str__(self) -> str:
        return f"{self.source} > {self.target}"

    async def listen(self, ports: Ports) -> None:
        """Listen at these ports, and no more at those before."""
        await self.stop_listening()
        for port, target in zip(ports, self._targets, strict=True):
            accept = partial(self._accept, target)
            self._servers.append(await asyncio.start_server(accept, HOST, port, limit=CHUNK_BYTES))
        self.ports = ports

    async def close(self) -> None:
        """End everything."""
        self._closed = True
        await self.stop_listening()
        self.reset()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def reset(self) -> None:
        """Break all connections, as a middlebox does that has restarted."""
        for one, other in self._connections.items():
            _break(one)
            _break(other)

    def mend(self) -> None:
        """End what lasts. Connections that have lost something break."""
        if self.requests.loses or self.replies.loses:
            self.reset()
        self.requests.mend()
        self.replies.mend()

    async def stop_listening(self) -> None:
        """Refuse new connections from now on."""
        servers, self._servers = self._servers, []
        await stop_listening(*servers)

    def _accept(
        self, target: int, near_in: asyncio.StreamReader, near: asyncio.StreamWriter
    ) -> None:
        if self._closed:
            _break(near)
            return
        task = asyncio.create_task(self._serve(target, near_in, near))
        self._serving[task] = near
        task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        """Let go of the near end, even where the task was cancelled before it began."""
        _break(self._serving.pop(task))

    async def _serve(
        self, target: int, near_in: asyncio.StreamReader, near: asyncio.StreamWriter
    ) -> None:
        try:
            far_in, far = await asyncio.open_connection(HOST, target, limit=CHUNK_BYTES)
        except OSError:
            return
        self._connections[near] = far
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(near_in, far, self.requests))
                group.create_task(_pump(far_in, near, self.replies))
        except* OSError:
            pass
        finally:
            _break(far)
            self._connections.pop(near, None)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Direction) -> None:
    """Carry bytes until their source ends or breaks."""
    while data := await source.read(CHUNK_BYTES):
        if await way.carry() and not sink.is_closing():
            sink.write(data)
            await sink.drain()
    await way.carry()
    if not sink.is_closing():
        sink.write_eof()


def _break(writer: asyncio.StreamWriter) -> None:
    if writer.is_closing():
        return
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
