"""What an address says by itself."""

import re
from ipaddress import ip_address

PORT_MAX = 65_535
_HOST = re.compile(r"[0-9A-Za-z._:%-]{1,253}")
_PORT = re.compile(r"[0-9]{1,5}")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: ``localhost``, 127.0.0.0/8 and ::1."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_host(text: str) -> bool:
    """Return whether a server's text can be the name or the IP address of a host."""
    return _HOST.fullmatch(text) is not None


def split_address(address: str, *, port_min: int = 1) -> tuple[str, int]:
    """Return host and port of ``host:port``, the host without brackets.

    ``port_min`` 0: port 0 stands for any that is free. Raises ValueError with a sentence that says
    what is wrong, and what to write.
    """
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise ValueError(f"{address!r} has a scheme: write host:port")
    if not host or _PORT.fullmatch(port) is None or not port_min <= int(port) <= PORT_MAX:
        raise ValueError(f"{address!r} is not host:port with a port from {port_min} to {PORT_MAX}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare:
        if bare == host:
            raise ValueError(f"{address!r} has an IPv6 address without brackets: write [host]:port")
        _check_ipv6(address, bare)
    elif bare != host or not is_host(bare):
        raise ValueError(f"{address!r} has a host that is neither a name nor an IP address")
    return bare, int(port)


def _check_ipv6(address: str, host: str) -> None:
    try:
        ip_address(host)
    except ValueError:
        raise ValueError(f"{address!r} has a host that is no IPv6 address") from None
