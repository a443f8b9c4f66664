"""Why a TLS connection cannot be made: gRPC's errors say that it failed, and hide the cause.

A probe makes one handshake with ``ssl``, which names the cause, and sends nothing. It is made after
a call has failed, is bounded in time, and comes at most once in a while for one address.
"""

import asyncio
import ssl
from collections.abc import Iterator
from typing import NamedTuple

PROBE_TIMEOUT_MS = 3_000
"""How long a probe may take at most."""
PROBE_PAUSE_MS = 10_000
"""How long what a probe has found is told again before the next probe."""

_EXPIRED, _NOT_YET_VALID = 10, 9
_UNTRUSTED = (2, 18, 19, 20, 21)
_WRONG_NAME = (62, 64)
"""Numbers of X509_V_ERR of OpenSSL: of names, and of IP addresses."""
_NO_TLS_REASONS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_NAMES_SHOWN = 10


class Contexts(NamedTuple):
    """How a client with TLS makes sure of a server, for a probe."""

    checked: ssl.SSLContext
    any_name: ssl.SSLContext
    """The same, but any name will do: it tells which names a certificate has."""


class TlsProbe:
    """Probes one address."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._found: str | None = None
        self._found_at: float | None = None

    async def trouble(
        self, contexts: Contexts | None, server_name: str, timeout_ms: int
    ) -> str | None:
        """Return why TLS cannot be spoken there; None if that is not what is wrong.

        ``contexts`` None: of a client without TLS, for which a server that speaks TLS is trouble.
        """
        loop = asyncio.get_running_loop()
        if self._found_at is None or loop.time() > self._found_at + PROBE_PAUSE_MS / 1000:
            self._found_at = loop.time()
            self._found = None
            try:
                async with asyncio.timeout(min(timeout_ms, PROBE_TIMEOUT_MS) / 1000):
                    self._found = await self._probe(contexts, server_name)
            except (OSError, ValueError):
                # It is not TLS: nothing is heard, or the address is no host and port.
                self._found = None
        return self._found

    async def _probe(self, contexts: Contexts | None, server_name: str) -> str | None:
        if contexts is None:
            return await self._probe_for_tls(server_name)
        try:
            await self._shake_hands(contexts.checked, server_name)
        except ssl.SSLCertVerificationError as error:
            return await self._refused_certificate(error, contexts.any_name, server_name)
        except ssl.SSLError as error:
            if error.reason in _NO_TLS_REASONS:
                return (
                    f"{self._address} does not speak TLS: connect to the port of a listener with"
                    " TLS, or without TLS"
                )
            return f"the TLS handshake with {self._address} failed: {error.reason or error}"
        return None

    async def _probe_for_tls(self, server_name: str) -> str | None:
        """Say whether a server speaks TLS to a client that does not."""
        anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anyone.check_hostname = False
        anyone.verify_mode = ssl.CERT_NONE
        try:
            await self._shake_hands(anyone, server_name)
        except ssl.SSLError:
            return None
        return f"{self._address} speaks TLS, and this client does not: connect with TLS"

    async def _refused_certificate(
        self, error: ssl.SSLCertVerificationError, any_name: ssl.SSLContext, server_name: str
    ) -> str:
        shown = f"{self._address} shows a certificate"
        if error.verify_code in _WRONG_NAME:
            names = _names(await self._shake_hands(any_name, server_name))
            return (
                f"{shown} for {', '.join(names) or 'no name'}, and not for {server_name!r}: set"
                " ssl_server_name to a name in the certificate, or let the service advertise a"
                " listener with such a name"
            )
        if error.verify_code in _UNTRUSTED:
            return (
                f"{shown} that no trusted CA has signed ({error.verify_message}): set"
                " ssl_ca_location to the CA of the cluster"
            )
        if error.verify_code == _EXPIRED:
            return f"{shown} that has expired: renew the certificate of the service"
        if error.verify_code == _NOT_YET_VALID:
            return f"{shown} that is not valid yet: compare the clocks of both machines"
        return f"{shown} that is refused: {error.verify_message}"

    async def _shake_hands(self, context: ssl.SSLContext, server_name: str) -> dict[str, object]:
        """Make a handshake, and return the server's certificate. Raises OSError."""
        host, _, port = self._address.rpartition(":")
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, host.strip("[]"), int(port), ssl=context, server_hostname=server_name
        )
        certificate = transport.get_extra_info("peercert") or {}
        transport.abort()
        return dict(certificate)


def _names(certificate: dict[str, object]) -> list[str]:
    """Return the names that a certificate is for, as ``ssl`` has them."""
    return list(_name_texts(certificate.get("subjectAltName")))[:_NAMES_SHOWN]


def _name_texts(alternatives: object) -> Iterator[str]:
    if isinstance(alternatives, tuple):
        for kind, name in alternatives:
            if kind in ("DNS", "IP Address"):
                yield str(name)
