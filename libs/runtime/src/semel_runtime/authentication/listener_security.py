"""The security settings of listeners, and the checks before a service starts.

Names are Kafka's; the names of files are librdkafka's. A listener that other machines can reach
must use TLS and authenticate its callers.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from semel_common.addresses import is_loopback
from semel_runtime.authentication.listener_tls import TlsFiles
from semel_runtime.cluster.metadata_image import Listener

ASYMMETRIC = frozenset(
    f"{family}{size}" for family in ("RS", "PS", "ES") for size in (256, 384, 512)
) | {"Ed25519"}
"""Algorithms whose checking key cannot sign."""

ClientAuth = Literal["none", "required"]


class SecurityProtocol(StrEnum):
    """How a listener is encrypted, and how its callers say who they are."""

    PLAINTEXT = "PLAINTEXT"
    """Not encrypted; everybody is anonymous."""
    SSL = "SSL"
    """Encrypted; clients have certificates, if they are required."""
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    """Not encrypted; clients have bearer tokens."""
    SASL_SSL = "SASL_SSL"
    """Encrypted; clients have bearer tokens."""

    @property
    def has_tls(self) -> bool:
        """Whether it is encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_tokens(self) -> bool:
        """Whether clients have bearer tokens."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class ListenerOverride(BaseModel):
    """What one listener has otherwise than the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ssl_certificate_location: Path | None = None
    ssl_key_location: Path | None = None
    ssl_ca_location: Path | None = None
    ssl_client_auth: ClientAuth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerOptions:
    """How one listener is secured."""

    protocol: SecurityProtocol
    ssl_certificate_location: Path | None
    ssl_key_location: Path | None
    ssl_ca_location: Path | None
    ssl_client_auth: ClientAuth

    def tls_files(self) -> TlsFiles | None:
        """Return where its certificates are; None without TLS."""
        if not self.protocol.has_tls:
            return None
        assert self.ssl_certificate_location is not None, "checked by the settings"
        assert self.ssl_key_location is not None, "checked by the settings"
        return TlsFiles(
            certificate=self.ssl_certificate_location,
            key=self.ssl_key_location,
            client_ca=self.ssl_ca_location if self._asks_clients else None,
        )

    @property
    def authenticates(self) -> bool:
        """Whether the listener authenticates its callers."""
        return self.protocol.has_tokens or self._asks_clients

    @property
    def _asks_clients(self) -> bool:
        return self.protocol.has_tls and self.ssl_client_auth == "required"

    def check(self, bound: Listener, *, insecure: bool) -> None:
        """Raise ValueError for what cannot work, or is open to others without being meant to be."""
        if self.protocol.has_tls:
            self._check_files(bound.name)
        if is_loopback(bound.host) or insecure:
            return
        if not self.protocol.has_tls:
            self._refuse(bound, "TLS")
        if not self.authenticates:
            self._refuse(bound, "authentication")

    def _check_files(self, listener: str) -> None:
        needed = ["ssl_certificate_location", "ssl_key_location"]
        needed += ["ssl_ca_location"] if self._asks_clients else []
        for option in needed:
            if getattr(self, option) is None:
                raise ValueError(f"{option} must be set: listener {listener!r} is {self.protocol}")

    def _refuse(self, bound: Listener, lacks: str) -> None:
        raise ValueError(
            f"listener {bound.name!r} at {bound.address} can be reached by others, without {lacks}:"
            f" set listener_security_protocol_map to {bound.name}:SASL_SSL, or to {bound.name}:SSL"
            " with ssl_client_auth required; or name the listener in insecure_listeners"
        )


def parse_protocols(text: str) -> dict[str, SecurityProtocol]:
    """Read ``NAME:PROTOCOL[,NAME:PROTOCOL…]``. Raises ValueError naming the part at fault."""
    protocols: dict[str, SecurityProtocol] = {}
    for part in names_in(text, ","):
        name, _, protocol = part.rpartition(":")
        if not name or protocol.upper() not in SecurityProtocol.__members__:
            expected = ", ".join(SecurityProtocol)
            raise ValueError(f"{part!r} is not of the form NAME:PROTOCOL, with one of {expected}")
        protocols[name] = SecurityProtocol(protocol.upper())
    return protocols


def names_in(text: str, separator: str) -> tuple[str, ...]:
    """Return the parts of a list, without the space around them."""
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def check_key_url(url: str) -> None:
    """Raise ValueError for keys that could be exchanged on their way."""
    parts = urlsplit(url)
    if parts.scheme in ("file", "https"):
        return
    if parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        raise ValueError(
            "sasl_oauthbearer_jwks_endpoint_url must begin with https:// or file://"
            " (http:// only for this machine): a server of keys can sign any token"
        )


def check_algorithms(text: str) -> tuple[str, ...]:
    """Return the algorithms of a list. Raises ValueError for one that proves nothing."""
    algorithms = names_in(text, ",")
    for algorithm in algorithms:
        if algorithm not in ASYMMETRIC:
            raise ValueError(
                f"sasl_oauthbearer_algorithms names {algorithm!r}, which is none of"
                f" {', '.join(sorted(ASYMMETRIC))}"
            )
    if not algorithms:
        raise ValueError("sasl_oauthbearer_algorithms is empty")
    return algorithms
