"""How a console is set up. Conflicts are refused when the options are made."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from aiosemel.errors import InvalidConfigError
from semel_console.mode import DEFAULT_PORT, Mode

_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where the console listens."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any that is free."""

    @classmethod
    def parse(cls, text: str) -> "Listen":
        """Read ``host:port``, with brackets around an IPv6 address; raises InvalidConfigError."""
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdecimal() and int(port) <= _PORT_MAX):
            raise InvalidConfigError(
                f"--listen is {text!r}: give it as host:port, such as 127.0.0.1:{DEFAULT_PORT}"
            )
        return cls(host=host.strip("[]"), port=int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """A console."""

    bootstrap: str
    listen: Listen = field(default_factory=Listen)
    mode: Mode = Mode.READ_ONLY
    asks_for_tokens: bool = False
    """Whether each user signs in with a bearer token of the cluster."""
    certificate: Path | None = None
    """The certificate (PEM) that the console shows to browsers; None: plain HTTP."""
    key: Path | None = None
    hosts: frozenset[str] = frozenset()
    """Names by which browsers reach the console, beside those of this machine."""
    operator: str = "console"
    """The operator's name, for the log; the cluster also logs the user that it knows."""
    jaeger: str = ""
    """Where traces are shown, such as http://127.0.0.1:16686; empty: nowhere."""

    def __post_init__(self) -> None:
        """Refuse what cannot work or would let strangers in, with InvalidConfigError."""
        if (self.certificate is None) != (self.key is None):
            raise InvalidConfigError(
                "--listen-cert and --listen-key belong together: only one is given"
            )
        if self.jaeger and not _is_place(self.jaeger):
            raise InvalidConfigError(
                f"--jaeger is {self.jaeger!r}: give the address of Jaeger's pages, such as"
                " http://127.0.0.1:16686"
            )
        if self.listen.is_loopback:
            return
        if self.certificate is None or not self.asks_for_tokens:
            raise InvalidConfigError(
                f"the console would listen on {self.listen.host}, which other machines reach: give"
                " it TLS (--listen-cert, --listen-key) and let users sign in (--sign-in), or listen"
                " on 127.0.0.1"
            )

    @property
    def has_tls(self) -> bool:
        """Whether browsers connect with TLS."""
        return self.certificate is not None


def _is_place(url: str) -> bool:
    """Whether the address of a page may begin with a URL."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_host and parts.scheme in {"http", "https"} and not (parts.query or parts.fragment)
