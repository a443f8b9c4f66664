"""Why an address cannot be called: gRPC's errors say that a call failed, and hide the cause.

A probe connects once, begins HTTP/2 as gRPC does, and looks at the first bytes of the answer. It is
made for a call that has failed or has no answer, is bounded in time, and is shared: one address is
probed at most once in a while.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

from semel_common.addresses import split_address
from semel_common.client_errors import InvalidResponseError, SslAuthenticationError
from semel_common.errors import NetworkExceptionError
from semel_common.wire.diagnosis.tls_diagnosis import (
    Contexts,
    certificate_trouble,
    client_trouble,
    handshake_trouble,
    speaks_tls,
)

PROBE_TIMEOUT_MS = 700
"""How long a probe may take at most."""
PROBE_PAUSE_MS = 1_000
"""How long the result of a probe is told again before the next probe."""
QUIET_MS = 150
"""How long a probe says nothing. Servers of gRPC speak first; and a server that refuses a client's
certificate sends the reason, which is lost if it has bytes of the client that it never read."""

CAUSE = "cause"
"""The detail of an error that says what a probe has found; see ``REFUSED``."""
REFUSED = "refused"
"""No process listens at the address."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How a client of HTTP/2 begins: the preface, and SETTINGS without a setting."""
_SETTINGS_TYPE = 4
_FRAME_HEADER_BYTES = 9
_SHOWN_BYTES = 8
_Place: TypeAlias = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
"""Where to connect to, as ``socket`` has it."""
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")


class PeerProbe:
    """Probes one address."""

    def __init__(self, address: str) -> None:
        """Do no I/O yet."""
        self._address = address
        self._probing: asyncio.Task[None] | None = None
        self._found_at: float | None = None
        self.found: NetworkExceptionError | None = None
        """The trouble that the last probe has found."""
        self._stage = ""

    async def trouble(
        self, contexts: Contexts | None, server_name: str, timeout_ms: int | None
    ) -> NetworkExceptionError | None:
        """Return why the address cannot be called; None if a probe finds nothing wrong.

        ``contexts`` None: of a client without TLS, for which a server that speaks TLS is trouble.
        Waits ``timeout_ms`` at most; None: until the probe is over.
        """
        if self._probing is None and self._is_old():
            self._probing = asyncio.create_task(
                self._run(contexts, server_name), name=f"probe {self._address}"
            )
        if self._probing is not None:
            timeout_s = None if timeout_ms is None else timeout_ms / 1000
            await asyncio.wait((self._probing,), timeout=timeout_s)
        return (
            None
            if self.found is None
            else type(self.found)(self.found.message, **self.found.details)
        )

    async def close(self) -> None:
        """End a probe that is under way."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait((self._probing,))

    def _is_old(self) -> bool:
        if self._found_at is None:
            return True
        return asyncio.get_running_loop().time() > self._found_at + PROBE_PAUSE_MS / 1000

    async def _run(self, contexts: Contexts | None, server_name: str) -> None:
        found: NetworkExceptionError | None = None
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_MS / 1000):
                found = await self._probe(contexts, server_name)
        except TimeoutError:
            found = self._lost(f"{self._stage} within {PROBE_TIMEOUT_MS:,} ms")
        except (OSError, ValueError) as error:  # ValueError: the address is no host and port.
            found = self._lost(f"{self._address} cannot be reached ({_reason(error)})")
        finally:
            self.found = found
            self._found_at = asyncio.get_running_loop().time()
            self._probing = None

    async def _probe(
        self, contexts: Contexts | None, server_name: str
    ) -> NetworkExceptionError | None:
        host, port = split_address(self._address)
        self._stage = f"the host name of {self._address} is not resolved"
        loop = asyncio.get_running_loop()
        try:
            infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            return self._lost(
                f"the host name of {self._address} cannot be resolved ({_reason(error)})"
            )
        self._stage = f"{self._address} does not accept a connection"
        try:
            connected = await _connect(infos)
        except ConnectionRefusedError:
            return self._lost(f"nothing listens at {self._address}", cause=REFUSED)
        self._stage = f"{self._address} accepts connections and does not answer"
        if contexts is None:
            return await self._probe_plain(connected, server_name)
        return await self._probe_tls(connected, contexts, server_name)

    async def _probe_plain(
        self, connected: socket.socket, server_name: str
    ) -> NetworkExceptionError | None:
        first = await _first_bytes(connected)
        if not first or first.startswith(_TLS_RECORDS):
            with suppress(OSError):
                if await speaks_tls(self._address, server_name):
                    return SslAuthenticationError(
                        f"{self._address} speaks TLS, and this client does not: connect with TLS",
                        address=self._address,
                    )
        return self._judge(first)

    async def _probe_tls(
        self, connected: socket.socket, contexts: Contexts, server_name: str
    ) -> NetworkExceptionError | None:
        try:
            first = await _first_bytes(connected, contexts.checked, server_name)
        except _AnswerError as error:
            trouble = client_trouble(error.cause, self._address, contexts)
        except (ConnectionError, ssl.SSLEOFError):
            return self._judge(b"")
        except ssl.SSLError as error:
            trouble = await handshake_trouble(error, self._address, contexts, server_name)
        else:
            wanted = (
                None if first else await certificate_trouble(self._address, contexts, server_name)
            )
            if wanted is None:
                return self._judge(first)
            trouble = wanted
        return SslAuthenticationError(trouble, address=self._address)

    def _judge(self, first: bytes) -> NetworkExceptionError | None:
        """Return what the first bytes of an answer say."""
        if not first:
            return self._lost(
                f"{self._address} accepts connections and closes them without an answer: is the"
                " address right, and does its service run?"
            )
        if first.startswith(b"HTTP/"):
            return self._unfit("speaks HTTP/1")
        if len(first) < _FRAME_HEADER_BYTES or first[3] != _SETTINGS_TYPE:
            return self._unfit(f"answers with bytes of another protocol ({first[:_SHOWN_BYTES]!r})")
        return None

    def _lost(self, text: str, **details: str) -> NetworkExceptionError:
        return NetworkExceptionError(text, address=self._address, **details)

    def _unfit(self, what: str) -> InvalidResponseError:
        return InvalidResponseError(
            f"{self._address} {what}, and not gRPC: name the port of a service of Semel",
            address=self._address,
        )


class _AnswerError(Exception):
    """A connection with TLS was made, and its server ended it by this error."""

    def __init__(self, cause: ssl.SSLError) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def _connect(
    infos: Sequence[tuple[socket.AddressFamily, socket.SocketKind, int, str, _Place]],
) -> socket.socket:
    """Connect to the first address that takes the connection; raises the last one's OSError."""
    loop = asyncio.get_running_loop()
    last: OSError = OSError("the name has no address")
    for family, kind, protocol, _, place in infos:
        connecting = socket.socket(family, kind, protocol)
        with _closed_on_error(connecting):
            connecting.setblocking(False)
            try:
                await loop.sock_connect(connecting, place)
            except OSError as error:
                last = error
                connecting.close()
            else:
                return connecting
    raise last


async def _first_bytes(
    connected: socket.socket, tls: ssl.SSLContext | None = None, server_name: str | None = None
) -> bytes:
    """Begin HTTP/2, and return the first bytes of the answer; none if the server ends it.

    Raises SSLError from the handshake, _AnswerError from what comes after.
    """
    with _closed_on_error(connected):
        reader, writer = await asyncio.open_connection(
            sock=connected, ssl=tls, server_hostname=server_name
        )
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_MS / 1000):
                return await reader.readexactly(_FRAME_HEADER_BYTES)
        writer.write(_PREFACE)
        return await reader.readexactly(_FRAME_HEADER_BYTES)
    except asyncio.IncompleteReadError as error:
        return error.partial
    except ssl.SSLError as error:
        raise _AnswerError(error) from error
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


@contextmanager
def _closed_on_error(opened: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        opened.close()
        raise


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
