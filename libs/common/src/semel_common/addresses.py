"""What an address says by itself."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: ``localhost``, 127.0.0.0/8 and ::1."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
