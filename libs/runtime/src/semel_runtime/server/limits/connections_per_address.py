"""A limit for the gRPC connections of one address, which gRPC itself does not have.

gRPC counts the connections of a listener, but neither those of an address, nor does it hand out a
connection. So this module looks at the sockets of the process once a second, and ends the newest
connections of an address with too many: ``shutdown`` makes gRPC see the end of the connection, as
if its client had gone. It looks only while the process has more open files than one address may
have connections, so it costs an ordinary service nothing.
"""

import asyncio
import os
import socket
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil
import structlog

log = structlog.get_logger(__name__)

_LOOK_S = 1.0
_WITH_PEER = frozenset({psutil.CONN_ESTABLISHED, psutil.CONN_CLOSE_WAIT})


class _Connection(NamedTuple):
    file: int
    """The number of its open file."""
    host: str
    port: int
    """Of the client."""
    listener_port: int


class ConnectionsPerAddress:
    """Ends the connections of an address that are too many."""

    def __init__(self, maximum: int, ports: Collection[int]) -> None:
        """Watch over the listeners at some ports, which may still be added. Do nothing yet."""
        self._maximum = maximum
        self._ports = ports
        self._looks = 0
        self._first_seen: dict[_Connection, int] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="connections of each address")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        process = psutil.Process()
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                if process.num_fds() > self._maximum:
                    await asyncio.to_thread(self._look, process)
            except (OSError, psutil.Error) as error:
                log.warning("the connections of each address are not limited", error=str(error))
                return

    def _look(self, process: psutil.Process) -> None:
        """End what is too much."""
        self._looks += 1
        here = set(self._connections(process))
        self._first_seen = {each: self._first_seen.get(each, self._looks) for each in here}
        by_host: dict[str, list[_Connection]] = {}
        for connection in here:
            by_host.setdefault(connection.host, []).append(connection)
        for host, connections in by_host.items():
            if len(connections) > self._maximum:
                self._end_newest(host, connections)

    def _end_newest(self, host: str, connections: list[_Connection]) -> None:
        connections.sort(key=lambda each: (self._first_seen[each], each.file))
        surplus = connections[self._maximum :]
        log.warning(
            "connections over the limit of one address are ended",
            address=host.removeprefix("::ffff:"),
            ended=len(surplus),
            grpc_connections_per_address_max=self._maximum,
        )
        for connection in surplus:
            _end(connection)

    def _connections(self, process: psutil.Process) -> Iterator[_Connection]:
        for each in process.net_connections("tcp"):
            if each.status in _WITH_PEER and each.laddr.port in self._ports:
                yield _Connection(each.fd, each.raddr.ip, each.raddr.port, each.laddr.port)


def _end(connection: _Connection) -> None:
    """Shut a connection down, if its file is still that connection."""
    # It may have ended since, and its file may be another one.
    with suppress(OSError), socket.socket(fileno=os.dup(connection.file)) as twin:
        peer, own = twin.getpeername(), twin.getsockname()
        if (peer[0], peer[1], own[1]) == connection[1:]:
            twin.shutdown(socket.SHUT_RDWR)
