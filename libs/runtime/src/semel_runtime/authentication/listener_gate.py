"""The gate of a listener: the one place where callers prove their identity.

By a client certificate: the principal's name is the certificate's first URI, else its first DNS
name, else its common name. By a bearer token, in the metadata of the call: where a listener asks
for tokens, the token names the principal, and a certificate only opens the door. Frame streams have
the principal of the call that opened them. A call that names another cluster is refused here too.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog
from msgspec.structs import replace

from semel_common.errors import SaslAuthenticationError
from semel_common.wire.client_security import AUTHORIZATION, BEARER
from semel_common.wire.cluster_header import CLUSTER_ID
from semel_common.wire.frames.socket_pipe import PeerCertificate
from semel_runtime.authentication.listener_tls import ServerTls
from semel_runtime.authentication.principal import Origin, Principal
from semel_runtime.logs.log_rate_limit import Seldom
from semel_runtime.server.limits.caller_shares import address_of_peer, host_of_peer

if TYPE_CHECKING:
    from semel_runtime.authentication.token_check import TokenVerifier

log = structlog.get_logger(__name__)


class Caller(Protocol):
    """A call before its handler: gRPC's context of a unary call or of a stream."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Return what TLS knows of the other side."""
        ...

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """Return the metadata of the call."""
        ...

    def peer(self) -> str:
        """Return from where."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """What a listener asks of callers."""

    tls: ServerTls | None = None
    """None: it is plain text."""
    tokens: "TokenVerifier | None" = None
    """None: no token is asked for, and none is looked at."""
    cluster_principals: frozenset[str] = frozenset()
    """Who the cluster's own services are, as ``User:name``."""


class Gate:
    """Of one listener."""

    def __init__(self, listener: str, security: ListenerSecurity) -> None:
        """Let no caller in yet."""
        self._check_cluster: Callable[[str], None] = _check_nothing
        self.tls = security.tls
        self._listener = listener
        self._tokens = security.tokens
        self._cluster = security.cluster_principals
        self._refused = Seldom()

    async def admit(self, caller: Caller) -> Origin:
        """Return where a call comes from; raises SaslAuthenticationError.

        Raises BrokerNotAvailableError while tokens cannot be checked, and what
        ``Handlers.check_cluster`` raises. The proof of identity comes first: a caller without a
        proof learns nothing.
        """
        origin = await self._proven(caller)
        self._check_cluster(_value_of(CLUSTER_ID, caller))
        return origin

    def belong_to(self, check_cluster: Callable[[str], None]) -> None:
        """Let this check the cluster that a call names; empty: it names none."""
        self._check_cluster = check_cluster

    async def _proven(self, caller: Caller) -> Origin:
        if self._tokens is not None:
            return self._origin(await self._bearer(caller, self._tokens), caller)
        if self.tls is not None and self.tls.asks_clients:
            shown = Principal(name=name_in_certificate(caller.auth_context()))
            return self._origin(shown, caller)
        peer = caller.peer()
        return Origin(
            listener=self._listener, host=host_of_peer(peer), address=address_of_peer(peer)
        )

    def check_certificate(self, origin: Origin, certificate: PeerCertificate) -> None:
        """Check that a socket is of the caller that its ticket was given to.

        Where certificates name the principal, the socket's certificate must have the same name as
        that of the call. Raises SaslAuthenticationError.
        """
        if self._tokens is not None or self.tls is None or not self.tls.asks_clients:
            return
        shown = name_in_certificate(_names_in(certificate))
        if shown != origin.principal.name:
            raise SaslAuthenticationError(
                f"the ticket of {origin.principal} is shown with the certificate of another client"
            )

    async def _bearer(self, caller: Caller, tokens: "TokenVerifier") -> Principal:
        try:
            return await tokens.verify(_token_of(caller))
        except SaslAuthenticationError as error:
            self._log(caller.peer(), error.message)
            raise

    def _log(self, peer: str, reason: str) -> None:
        """Log a refused caller, once a second at most: refusals have no other limit."""
        if count := self._refused.count():
            log.info(
                "authentication failed",
                listener=self._listener,
                peer=peer,
                reason=reason,
                count=count,
            )

    def _origin(self, principal: Principal, caller: Caller) -> Origin:
        if str(principal) in self._cluster:
            principal = replace(principal, is_cluster=True)
        address = address_of_peer(caller.peer())
        return Origin(listener=self._listener, principal=principal, address=address)


def name_in_certificate(auth_context: Mapping[str, Iterable[bytes]]) -> str:
    """Return the name in the certificate of a client; raises SaslAuthenticationError."""
    for kind in ("peer_uri", "peer_dns", "x509_common_name"):
        for name in auth_context.get(kind, ()):
            if name:
                return _printable(name)
    raise SaslAuthenticationError("the certificate has no URI, no DNS name and no common name")


def _printable(name: bytes) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or not text:
        raise SaslAuthenticationError("the name in the certificate is not printable")
    return text


def _names_in(certificate: PeerCertificate) -> dict[str, list[bytes]]:
    """Return the names in a certificate as Python's ``ssl`` gives it, by gRPC's kinds."""
    alternatives = certificate.get("subjectAltName", ())
    return {
        "peer_uri": [value.encode() for kind, value in alternatives if kind == "URI"],
        "peer_dns": [value.encode() for kind, value in alternatives if kind == "DNS"],
        "x509_common_name": [
            value.encode()
            for names in certificate.get("subject", ())
            for kind, value in names
            if kind == "commonName"
        ],
    }


def _check_nothing(_named: str) -> None:
    """Serve calls for every cluster."""


def _value_of(name: str, caller: Caller) -> str:
    """Return the first value of a name in a call's metadata; empty if there is none."""
    for key, value in caller.invocation_metadata() or ():
        if key == name and isinstance(value, str):
            return value
    return ""


def _token_of(caller: Caller) -> str:
    if value := _value_of(AUTHORIZATION, caller):
        if value[: len(BEARER)].lower() == BEARER.lower():
            return value[len(BEARER) :].strip()
        raise SaslAuthenticationError("the metadata authorization holds no bearer token")
    raise SaslAuthenticationError("no token: it belongs into the metadata authorization")
