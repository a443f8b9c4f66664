"""What an address says by itself."""

import re
from ipaddress import ip_address

PORT_MAX = 65_535
_HOST = re.compile(r"[0-9A-Za-z._:%-]{1,253}")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: ``localhost``, 127.0.0.0/8 and ::1."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_host(text: str) -> bool:
    """Return whether a server's text can be the name or the IP address of a host."""
    return _HOST.fullmatch(text) is not None
