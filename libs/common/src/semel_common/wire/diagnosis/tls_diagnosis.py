"""What is wrong with TLS at an address, in sentences: ``ssl`` names the cause, which gRPC hides."""

import asyncio
import ssl
from collections.abc import Iterator
from typing import NamedTuple

from semel_common.addresses import split_address

_EXPIRED, _NOT_YET_VALID = 10, 9
_UNTRUSTED = (2, 18, 19, 20, 21)
_WRONG_NAME = (62, 64)
"""Numbers of X509_V_ERR of OpenSSL: of names, and of IP addresses."""
_NO_TLS_REASONS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_NO_CERTIFICATE_REASONS = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE")
_ALERT = "ALERT"
"""Part of the reason of an error that the other side has sent: it speaks TLS."""
_NAMES_SHOWN = 10


class Contexts(NamedTuple):
    """How a client with TLS makes sure of a server, for a probe; HTTP/2 is offered as by gRPC."""

    checked: ssl.SSLContext
    any_name: ssl.SSLContext
    """The same, but any name will do: it tells which names a certificate has."""
    early: ssl.SSLContext
    """The same with TLS 1.2, in which servers refuse a client's certificate within the handshake.
    With TLS 1.3 they do so later, and some close the connection without a reason."""
    has_certificate: bool
    """Whether the client shows one."""


async def handshake_trouble(
    error: ssl.SSLError, address: str, contexts: Contexts, server_name: str
) -> str:
    """Return why a handshake has failed. Connects again to learn the names of a certificate.

    Raises OSError.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return await _refused_certificate(error, address, contexts.any_name, server_name)
    if error.reason in _NO_TLS_REASONS:
        return f"{address} does not speak TLS: connect without TLS, or to a listener with TLS"
    return client_trouble(error, address, contexts)


def client_trouble(error: ssl.SSLError, address: str, contexts: Contexts) -> str:
    """Return why a server has ended a connection that it took: it says no more than a reason."""
    reason = error.reason or str(error)
    if _ALERT in reason and (
        contexts.has_certificate or any(known in reason for known in _NO_CERTIFICATE_REASONS)
    ):
        return _certificate_wanted(address, contexts)
    return f"the TLS handshake with {address} failed: {reason}"


async def certificate_trouble(address: str, contexts: Contexts, server_name: str) -> str | None:
    """Return whether a server that ends connections does so for the client's certificate.

    None: it takes the same handshake with TLS 1.2, or no such handshake at all. Raises OSError for
    an address that cannot be connected to.
    """
    try:
        await _shake_hands(address, contexts.early, server_name)
    except ssl.SSLEOFError:
        pass
    except ssl.SSLError as error:
        if _ALERT not in (error.reason or "") or "VERSION" in (error.reason or ""):
            return None
    except ConnectionResetError:
        pass
    else:
        return None
    return _certificate_wanted(address, contexts)


def _certificate_wanted(address: str, contexts: Contexts) -> str:
    if contexts.has_certificate:
        return (
            f"{address} refuses the certificate of this client: set ssl_certificate_location to a"
            " certificate that the CA of the cluster has signed"
        )
    return (
        f"{address} wants a certificate of this client: set ssl_certificate_location and"
        " ssl_key_location"
    )


async def speaks_tls(address: str, server_name: str) -> bool:
    """Return whether a server speaks TLS to a client that does not. Raises OSError."""
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname = False
    anyone.verify_mode = ssl.CERT_NONE
    try:
        await _shake_hands(address, anyone, server_name)
    except ssl.SSLError as error:
        return _ALERT in (error.reason or "")
    return True


async def _refused_certificate(
    error: ssl.SSLCertVerificationError,
    address: str,
    any_name: ssl.SSLContext,
    server_name: str,
) -> str:
    shown = f"{address} shows a certificate"
    if error.verify_code in _WRONG_NAME:
        names = _names(await _shake_hands(address, any_name, server_name))
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


async def _shake_hands(
    address: str, context: ssl.SSLContext, server_name: str
) -> dict[str, object]:
    """Make a handshake, and return the server's certificate. Raises OSError."""
    host, port = split_address(address)
    transport, _ = await asyncio.get_running_loop().create_connection(
        asyncio.Protocol, host, port, ssl=context, server_hostname=server_name
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
