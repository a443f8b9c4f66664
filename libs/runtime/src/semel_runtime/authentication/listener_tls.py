"""TLS of a listener: certificates that are read again when their files change.

gRPC and the sockets for frames ask for the current certificate at each handshake: open connections
go on, the next connection meets the new certificate. Files that do not fit together are not
taken: see ``Reloaded``.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from semel_common.errors import InvalidConfigError
from semel_common.file_modes import check_secret_file
from semel_common.reloaded_files import Reloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Where a listener's certificates are, each file in the form PEM."""

    certificate: Path
    """The listener's own, with what lies between it and its CA."""
    key: Path
    client_ca: Path | None = None
    """CA certificates that vouch for clients; None: clients need no certificate."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What one reading gave, for gRPC and for sockets."""

    configuration: grpc.ServerCertificateConfiguration
    context: ssl.SSLContext


class ServerTls:
    """The certificates of one listener, as they are now."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files; raises InvalidConfigError, which names them."""
        self._files = files
        paths = [path for path in (files.certificate, files.key, files.client_ca) if path]
        try:
            self._loaded = Reloaded(paths, self._load)
        except (OSError, ValueError) as error:
            names = ", ".join(map(str, paths))
            raise InvalidConfigError(f"the certificates {names} cannot be used: {error}") from error

    @property
    def asks_clients(self) -> bool:
        """Whether clients must show a certificate."""
        return self._files.client_ca is not None

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Return what gRPC serves with."""
        shown = self._loaded.current().configuration

        def newer() -> grpc.ServerCertificateConfiguration | None:
            nonlocal shown
            current = self._loaded.current().configuration
            if current is shown:
                return None
            shown = current
            return current

        return grpc.dynamic_ssl_server_credentials(
            shown,
            newer,  # type: ignore[arg-type]  # None says that nothing has changed
            require_client_authentication=self.asks_clients,
        )

    def ssl_context(self) -> ssl.SSLContext:
        """Return what sockets are accepted with: each connection takes what is current."""
        context = self._loaded.current().context

        def take_current(connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
            connection.context = self._loaded.current().context

        context.sni_callback = take_current
        return context

    def _load(self) -> _Loaded:
        files = self._files
        check_secret_file("the private key", files.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.num_tickets = 0  # A session of an earlier connection proves nothing.
        context.load_cert_chain(files.certificate, files.key)
        client_ca = None
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
            client_ca = files.client_ca.read_bytes()
        pair = (files.key.read_bytes(), files.certificate.read_bytes())
        return _Loaded(grpc.ssl_server_certificate_configuration([pair], client_ca), context)
