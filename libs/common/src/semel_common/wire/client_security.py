"""How a client proves who it is, and makes sure of whom it talks to.

``Security`` is what users say; ``ClientCredentials`` is what connections use. Files are read again
when they change: certificates for the next connection, tokens for the next call.
"""

import ssl
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TypeAlias

import grpc

from semel_common.addresses import is_loopback
from semel_common.errors import InvalidConfigError, SaslAuthenticationError
from semel_common.file_modes import OpenSecretError, check_secret_file
from semel_common.library_log import get_logger
from semel_common.reloaded_files import Reloaded
from semel_common.wire.client_tokens import ClientToken, TokenSource, seconds_left
from semel_common.wire.diagnosis.tls_diagnosis import Contexts

_log = get_logger(__name__)

AUTHORIZATION = "authorization"
BEARER = "Bearer "

Metadata: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values that a call carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """TLS, and what proves the client's identity: a certificate, a bearer token, or both."""

    tls: bool = True
    """Whether connections are encrypted. Without, a token is only sent on the loopback."""
    ssl_ca_location: Path | None = None
    """CA certificates (PEM) that vouch for servers; None: the certificates of the system."""
    ssl_certificate_location: Path | None = None
    """The client's certificate chain (PEM), for servers that want one."""
    ssl_key_location: Path | None = None
    """Its private key (PEM, not encrypted)."""
    ssl_server_name: str | None = None
    """The name that servers' certificates have to have; None: the host that is connected to."""
    token: str | Path | TokenSource | None = field(default=None, repr=False)
    """A token, a file that holds one, or what returns one. A file is read again when it changes,
    before the token expires and after a refusal; a function is asked for each call."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        if type(self.tls) is not bool:
            raise InvalidConfigError(f"tls is {self.tls!r}, neither True nor False")
        if (self.ssl_certificate_location is None) != (self.ssl_key_location is None):
            raise InvalidConfigError(
                "ssl_certificate_location and ssl_key_location belong together: only one is set"
            )
        if not self.tls and (self.ssl_ca_location or self.ssl_certificate_location):
            raise InvalidConfigError("certificates are of no use without tls")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Certificates that were read from files, for gRPC and for sockets."""

    channel: grpc.ChannelCredentials
    context: ssl.SSLContext
    probing: Contexts


class ClientCredentials:
    """The credentials of a client, as they are now."""

    def __init__(self, security: Security) -> None:
        """Read the files; raises InvalidConfigError."""
        self._security = security
        files = (
            security.ssl_ca_location,
            security.ssl_certificate_location,
            security.ssl_key_location,
        )
        paths = [path for path in files if path is not None]
        try:
            _warn_of_open_secrets(security)
            self._certificates = Reloaded(paths, self._load) if security.tls else None
            self._token = None if security.token is None else ClientToken(security.token)
        except (OSError, ValueError) as error:
            raise InvalidConfigError(f"the credentials cannot be read: {error}") from error

    def certificates(self) -> Certificates | None:
        """Return what to connect with; None: without TLS. Another object once files changed."""
        return None if self._certificates is None else self._certificates.current()

    def server_name(self, address: str) -> str:
        """Return whose certificate to expect at an address."""
        return self._security.ssl_server_name or address.rpartition(":")[0].strip("[]")

    def channel_arguments(self) -> list[tuple[str, str]]:
        """Return gRPC's options for the expected server."""
        name = self._security.ssl_server_name
        if name is None or not self._security.tls:
            return []
        return [("grpc.ssl_target_name_override", name), ("grpc.default_authority", name)]

    def check(self, address: str) -> None:
        """Raise InvalidConfigError rather than send a token to an address in clear text."""
        host = address.rpartition(":")[0]
        if self._token is not None and not self._security.tls and not is_loopback(host):
            raise InvalidConfigError(f"a token is not sent to {address} without TLS")

    async def metadata(self, *, at_once: bool = False) -> Metadata:
        """Return what each call carries; ``at_once``: with the token as it is at this moment.

        Raises NetworkExceptionError where there is no token.
        """
        if self._token is None:
            return ()
        token = await self._token.current(at_once=at_once)
        return ((AUTHORIZATION, f"{BEARER}{token}"),)

    def seconds_left(self, shown: Metadata) -> float:
        """Return how long what was shown is good; infinite if it does not say so, or has no end."""
        tokens = [value.removeprefix(BEARER) for name, value in shown if name == AUTHORIZATION]
        return min(map(seconds_left, tokens), default=inf)

    def refused(self, error: SaslAuthenticationError, shown: Metadata) -> SaslAuthenticationError:
        """Return the refusal of a call's credentials, with advice for the client's user."""
        for name, value in shown:
            if name == AUTHORIZATION and self._token is not None:
                return self._token.refused(error, value.removeprefix(BEARER))
        return error

    def _load(self) -> Certificates:
        security = self._security
        ca, chain, key = (
            None if path is None else path.read_bytes()
            for path in (
                security.ssl_ca_location,
                security.ssl_certificate_location,
                security.ssl_key_location,
            )
        )
        # This one tells whether the files are good; gRPC would only do so in its log.
        context = _context(security)
        credentials = grpc.ssl_channel_credentials(ca, key, chain)
        return Certificates(credentials, context, _probing(security))


def _context(security: Security) -> ssl.SSLContext:
    """Return what makes sure of a server; raises OSError, of which SSLError is one."""
    context = ssl.create_default_context(cafile=security.ssl_ca_location)
    if security.ssl_certificate_location is not None:
        context.load_cert_chain(security.ssl_certificate_location, security.ssl_key_location)
    return context


def _probing(security: Security) -> Contexts:
    made = checked, any_name, early = [_context(security) for _ in range(3)]
    any_name.check_hostname = False
    early.maximum_version = ssl.TLSVersion.TLSv1_2
    for context in made:
        context.set_alpn_protocols(["h2"])
    return Contexts(
        checked=checked,
        any_name=any_name,
        early=early,
        has_certificate=security.ssl_certificate_location is not None,
    )


def _warn_of_open_secrets(security: Security) -> None:
    """Say which secrets others may read. Services refuse theirs; a user's are the user's own."""
    for what, file in (
        ("the private key", security.ssl_key_location),
        ("the token", security.token),
    ):
        try:
            if isinstance(file, Path):
                check_secret_file(what, file)
        except OpenSecretError as error:
            _log.warning("%s", error)
