"""The security of one service, made from its settings: of its listeners, and of its own calls."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from semel_common.errors import InvalidConfigError
from semel_common.file_modes import OpenSecretError, check_secret_file
from semel_common.wire.client_security import Security
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.authentication.listener_security import names_in
from semel_runtime.authentication.listener_tls import ServerTls
from semel_runtime.config import ServiceSettings, parse_listeners

if TYPE_CHECKING:
    from semel_runtime.authentication.token_check import TokenVerifier


class ServiceSecurity:
    """What a service serves with, and calls others with."""

    def __init__(self, settings: ServiceSettings) -> None:
        """Read the files that the settings name; raises InvalidConfigError."""
        _check_services_are_known(settings)
        self._settings = settings
        names = [listener.name for listener in parse_listeners(settings.listeners)]
        has_tokens = any(settings.security_of(name).protocol.has_tokens for name in names)
        self._tokens = _verifier(settings) if has_tokens else None
        self._listeners = {name: self._listener(name) for name in names}

    def of(self, listener: str) -> ListenerSecurity:
        """Return what a listener asks of callers."""
        return self._listeners[listener]

    async def run(self) -> None:
        """Keep keys fresh until cancelled."""
        if self._tokens is not None:
            await self._tokens.run()
        await asyncio.Event().wait()

    def _listener(self, name: str) -> ListenerSecurity:
        options = self._settings.security_of(name)
        files = options.tls_files()
        return ListenerSecurity(
            tls=None if files is None else ServerTls(files),
            tokens=self._tokens if options.protocol.has_tokens else None,
            cluster_principals=frozenset(names_in(self._settings.cluster_principals, ";")),
        )


def _check_services_are_known(settings: ServiceSettings) -> None:
    """Refuse access rules that no service could meet: some calls are for services alone."""
    if not settings.authorizes:
        return
    name = settings.inter_broker_listener_name
    if not settings.security_of(name).authenticates:
        raise InvalidConfigError(
            f"authorizer is acls, but listener {name!r}, on which services call one another, does"
            " not authenticate its callers: set listener_security_protocol_map, ssl_client_auth"
        )
    if not settings.cluster_principals:
        raise InvalidConfigError(
            "authorizer is acls, but cluster_principals does not say who the services are"
        )


def own_security(settings: ServiceSettings) -> Security:
    """Return how a service calls others: as their listener for services, named as its own, asks.

    Raises InvalidConfigError for a secret that others may read.
    """
    options = settings.security_of(settings.inter_broker_listener_name)
    protocol = options.protocol
    if protocol.has_tls:
        _check_secret("ssl_key_location", options.ssl_key_location)
    if protocol.has_tokens:
        _check_secret("sasl_oauthbearer_token_location", settings.sasl_oauthbearer_token_location)
    return Security(
        tls=protocol.has_tls,
        ssl_ca_location=options.ssl_ca_location if protocol.has_tls else None,
        ssl_certificate_location=options.ssl_certificate_location if protocol.has_tls else None,
        ssl_key_location=options.ssl_key_location if protocol.has_tls else None,
        token=settings.sasl_oauthbearer_token_location if protocol.has_tokens else None,
    )


def _check_secret(option: str, file: Path | None) -> None:
    """Refuse one that others may read. Of a missing file, its reader tells."""
    if file is None:
        return
    try:
        with suppress(OSError):
            check_secret_file(option, file)
    except OpenSecretError as error:
        raise InvalidConfigError(str(error)) from error


def _verifier(settings: ServiceSettings) -> "TokenVerifier":
    from semel_runtime.authentication.token_security import verifier  # noqa: PLC0415 - 110 ms, for tokens only

    return verifier(settings)
