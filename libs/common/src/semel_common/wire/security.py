"""How a client proves who it is, and makes sure of whom it talks to.

``Security`` is what users say; ``ClientCredentials`` is what connections use. Files are read again
when they change: certificates for the next connection, tokens for the next call.
"""

import inspect
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from semel_common.addresses import is_loopback
from semel_common.errors import InvalidConfigError, NetworkExceptionError, SemelError
from semel_common.file_modes import OpenSecretError, check_secret_file
from semel_common.library_log import get_logger
from semel_common.reloaded import Reloaded

_log = get_logger(__name__)

AUTHORIZATION = "authorization"
BEARER = "Bearer "

TokenSource = Callable[[], str | Awaitable[str]]
"""Returns the token to show now; asked for each call, so it keeps what is still good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """TLS, and what proves the client's identity: a certificate, a bearer token, or both."""

    tls: bool = True
    """Whether connections are encrypted. Without, a token is only sent on the loopback."""
    ssl_ca_location: Path | None = None
    """Certificates (PEM) of who may vouch for servers; None: those that the system trusts."""
    ssl_certificate_location: Path | None = None
    """The client's certificate chain (PEM), for servers that want one."""
    ssl_key_location: Path | None = None
    """Its private key (PEM, not encrypted)."""
    ssl_server_name: str | None = None
    """The name that servers' certificates have to have; None: the host that is connected to."""
    token: str | Path | TokenSource | None = field(default=None, repr=False)
    """A token, a file that holds one, or what returns one."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidConfigError."""
        if (self.ssl_certificate_location is None) != (self.ssl_key_location is None):
            raise InvalidConfigError(
                "ssl_certificate_location and ssl_key_location belong together: only one is set"
            )
        if not self.tls and (self.ssl_ca_location or self.ssl_certificate_location):
            raise InvalidConfigError("certificates are of no use without tls")


@dataclass(frozen=True, slots=True)
class Certificates:
    """What was read from files, for gRPC and for sockets."""

    channel: grpc.ChannelCredentials
    context: ssl.SSLContext
    any_name: ssl.SSLContext
    """As ``context``, but any name will do: it tells which names a certificate has."""


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
            self._token = _token_source(security.token)
        except (OSError, ValueError) as error:
            raise InvalidConfigError(f"the credentials cannot be read: {error}") from error

    def certificates(self) -> Certificates | None:
        """Return what to connect with; None: without TLS. Another object once files changed."""
        return None if self._certificates is None else self._certificates.current()

    def server_name(self, address: str) -> str:
        """Return whose certificate to expect at an address."""
        return self._security.ssl_server_name or address.rpartition(":")[0].strip("[]")

    def channel_arguments(self) -> list[tuple[str, str]]:
        """Return what gRPC has to know of whom to expect."""
        name = self._security.ssl_server_name
        if name is None or not self._security.tls:
            return []
        return [("grpc.ssl_target_name_override", name), ("grpc.default_authority", name)]

    def check(self, address: str) -> None:
        """Raise InvalidConfigError rather than send a token to an address in clear text."""
        host = address.rpartition(":")[0]
        if self._token is not None and not self._security.tls and not is_loopback(host):
            raise InvalidConfigError(f"a token is not sent to {address} without TLS")

    async def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what each call carries. Raises NetworkExceptionError where there is no token."""
        if self._token is None:
            return ()
        try:
            token = self._token()
            if inspect.isawaitable(token):
                token = await token
        except SemelError:
            raise
        except Exception as error:
            raise NetworkExceptionError(
                f"there is no token to show: its source failed with {type(error).__name__}"
            ) from error
        return ((AUTHORIZATION, f"{BEARER}{token}"),)

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
        context, any_name = _context(security), _context(security)
        any_name.check_hostname = False
        return Certificates(grpc.ssl_channel_credentials(ca, key, chain), context, any_name)


def _context(security: Security) -> ssl.SSLContext:
    """Return what makes sure of a server; raises OSError, of which SSLError is one."""
    context = ssl.create_default_context(cafile=security.ssl_ca_location)
    if security.ssl_certificate_location is not None:
        context.load_cert_chain(security.ssl_certificate_location, security.ssl_key_location)
    return context


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


def _token_source(token: str | Path | TokenSource | None) -> TokenSource | None:
    """Return what gives the token; raises OSError and ValueError."""
    if isinstance(token, Path):
        path = token
        return Reloaded((path,), lambda: _read_token(path)).current
    if isinstance(token, str):
        fixed = token
        return lambda: fixed
    return token


def _read_token(path: Path) -> str:
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ValueError(f"{path} holds no token")
    return token
