"""Ports that are free, and stay free while a service that was killed is away.

They are taken from below the range from which systems give ports to outgoing connections. A client
that tries to reach a killed service at a port of that range can even connect to itself.
"""

import random
import socket
from collections.abc import Iterable

from semel_local.errors import NoPortFreeError

HOST = "127.0.0.1"
choice = range(20_000, 32_768)
"""The ports to choose from. Processes that start clusters side by side may each set a part."""


def is_free(port: int) -> bool:
    """Whether a server could listen on this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: the remains of closed connections are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def port_range(after: int | None = None) -> range:
    """Return ports to try: those after one, or those from somewhere on."""
    start = random.randrange(choice.start, choice.stop - 1_000) if after is None else after + 1
    return range(start, min(start + 1_000, 65_536))


def free_port(candidates: Iterable[int]) -> int:
    """Return the first that is free; raises NoPortFreeError if none is."""
    for port in candidates:
        if is_free(port):
            return port
    raise NoPortFreeError("no port is free for a service: choose another one with --port")
