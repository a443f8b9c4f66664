"""Certificates are exchanged while calls go on, and none of them fails."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
import uvloop
from security_harness import OPTIONS, Authority, Issuer, new_key, server_tls, takes
from server_harness import UNARY, Request, Response, Served, echo, serving

from semel.common.v1.frames_pb2 import OpenFramesRequest
from semel_common import reloaded_files
from semel_common.errors import (
    BrokerNotAvailableError,
    NetworkExceptionError,
    SaslAuthenticationError,
)
from semel_common.wire.client_security import Security
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import GROUP, OPEN_FRAMES, TXN_OFFSET_COMMIT, Method
from semel_runtime.authentication import jwks
from semel_runtime.authentication.jwks import KeysAtUrl
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.authentication.listener_tls import ServerTls, TlsFiles
from semel_runtime.authentication.token_check import TokenVerifier
from semel_runtime.testing.stop_listening import stop_listening


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloaded_files, "CHECK_INTERVAL_S", 0.0)


async def shown(port: int, ca: Path, client: Security | None = None) -> bytes:
    """Connect, and return the certificate that is shown. Raises OSError."""
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    if client is not None and client.ssl_certificate_location is not None:
        context.load_cert_chain(client.ssl_certificate_location, client.ssl_key_location)
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()  # A plain close would wait for the server.
    return found


async def frames_port(served: Served) -> int:
    request = OpenFramesRequest(service=GROUP)
    return (await served.connection.call(OPEN_FRAMES, request, timeout_ms=50_000)).port


@asynccontextmanager
async def under_load(served: Served, client: Security) -> AsyncIterator[list[int]]:
    """Call without a pause, over old connections and over new ones."""
    calls: list[int] = [0]
    done = asyncio.Event()

    async def call_on(method: Method[Request, Response]) -> None:
        while not done.is_set():
            await served.connection.call(method, Request(), timeout_ms=50_000)
            calls[0] += 1

    async def come_and_go() -> None:
        while not done.is_set():
            connector = GrpcConnector(security=client)
            connection = connector.connect(served.address)
            for method in (UNARY, TXN_OFFSET_COMMIT):
                await connection.call(method, Request(), timeout_ms=50_000)
                calls[0] += 1
            await connector.close()

    async with asyncio.TaskGroup() as group:
        tasks = [call_on(UNARY), call_on(TXN_OFFSET_COMMIT), come_and_go()]
        for task in tasks:
            group.create_task(task)
        yield calls
        done.set()


async def more(calls: list[int], count: int = 50) -> None:
    """Wait for more calls."""
    until = calls[0] + count
    while calls[0] < until:  # noqa: ASYNC110 - the load goes on by itself
        await asyncio.sleep(0)


async def test_a_new_certificate_is_shown_and_no_call_fails(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    client = authority.client()
    async with serving(echo, listener=listener, client=client) as served:
        ports = int(served.address.rpartition(":")[2]), await frames_port(served)
        async with under_load(served, client) as calls:
            await more(calls)
            for _ in range(5):
                before = [await shown(port, authority.ca, client) for port in ports]
                authority.server()
                await more(calls)
                after = [await shown(port, authority.ca, client) for port in ports]
                assert before[0] == before[1]
                assert after[0] == after[1]
                assert before[0] != after[0]
    assert "go over gRPC" not in caplog.text


def test_the_same_on_the_loop_of_services(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """TLS of sockets is the loop's own."""
    uvloop.run(test_a_new_certificate_is_shown_and_no_call_fails(authority, caplog))


async def test_a_client_takes_its_new_certificate_for_its_next_calls(authority: Authority) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    client = authority.named("old.example")
    async with serving(echo, listener=listener, client=client) as served:
        for name in ("old.example", "new.example", "newer.example"):
            authority.named(name)
            await served.connection.call(UNARY, Request(), timeout_ms=50_000)
            assert served.calls[-1].origin.principal.name == name


async def test_authorities_may_be_trusted_later_and_no_longer(
    authority: Authority, tmp_path: Path
) -> None:
    theirs = Authority(tmp_path / "theirs")
    files = authority.server()
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority.ca.read_bytes())
    tls = ServerTls(TlsFiles(certificate=files.certificate, key=files.key, client_ca=trusted))
    ours, stranger = authority.client(), replace(theirs.client(), ssl_ca_location=authority.ca)

    async def is_let_in(served: Served, client: Security) -> bool:
        connector = GrpcConnector(security=client)
        try:
            await connector.connect(served.address).call(UNARY, Request(), timeout_ms=50_000)
        except NetworkExceptionError:
            return False
        finally:
            await connector.close()
        return True

    async with serving(echo, listener=ListenerSecurity(tls=tls), client=ours) as served:
        port = await frames_port(served)
        assert [await is_let_in(served, each) for each in (ours, stranger)] == [True, False]
        assert [await takes(port, each) for each in (ours, stranger)] == [True, False]
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=50_000)
        trusted.write_bytes(theirs.ca.read_bytes())
        assert [await is_let_in(served, each) for each in (ours, stranger)] == [False, True]
        assert [await takes(port, each) for each in (ours, stranger)] == [False, True]
        # Accepted connections stay.
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=50_000)


async def test_files_that_do_not_fit_together_are_not_taken(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.server()
    client = authority.client()
    tls = server_tls(files, asks_clients=False)
    async with serving(echo, listener=ListenerSecurity(tls=tls), client=client) as served:
        port = int(served.address.rpartition(":")[2])
        before = await shown(port, authority.ca)
        key = files.key.read_bytes()
        files.key.write_bytes(authority.server("other").key.read_bytes())
        assert await shown(port, authority.ca) == before
        files.key.unlink()
        assert await shown(port, authority.ca) == before
        files.key.write_bytes(key)
        assert await shown(port, authority.ca) == before
    assert "kept as before" in caplog.text
    assert "PRIVATE" not in caplog.text


# -- keys of tokens --------------------------------------------------------------------------------


async def test_a_key_set_in_a_file_may_be_exchanged(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    verifier = issuer.verifier()
    second = new_key("second")
    await verifier.verify(issuer.token())
    issuer.publish(issuer.key, second)
    await verifier.verify(issuer.token(key=second))
    issuer.publish(second)
    with pytest.raises(SaslAuthenticationError, match="not known"):
        await verifier.verify(issuer.token())


class KeyServer:
    """Serves a key set over HTTP, and counts how often."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.asked = 0
        self.away = False
        self.broken = False
        self.begins: bytes | None = None
        """What it begins an answer with that never ends."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/keys"
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop_listening(self._server)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        body = self._path.read_bytes()
        if self.begins is not None:
            await self._dribble(self.begins, reader, writer)
            return
        if self.broken:
            writer.write(b"no HTTP\r\n\r\n")
            writer.close()
            return
        status = b"503 Away" if self.away else b"200 OK"
        writer.write(b"HTTP/1.0 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        writer.close()

    async def _dribble(
        self, begin: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send a byte again and again, until the client ends the connection."""
        writer.write(begin)
        while not reader.at_eof():
            writer.write(b" ")
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.01)
        writer.transport.abort()


async def test_a_key_that_is_not_known_is_asked_for_once_in_a_while(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    invented = new_key("invented")
    async with KeyServer(issuer.path) as server:
        verifier = TokenVerifier(KeysAtUrl(server.url, refresh_ms=3_600_000), OPTIONS)
        await verifier.verify(issuer.token())
        assert server.asked == 1
        for _ in range(5):
            with pytest.raises(SaslAuthenticationError, match="not known"):
                await verifier.verify(issuer.token(key=invented))
        assert server.asked == 1


async def test_all_who_come_with_a_new_key_share_one_question(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    second = new_key("second")
    async with KeyServer(issuer.path) as server:
        keys = KeysAtUrl(server.url, refresh_ms=3_600_000)
        verifier = TokenVerifier(keys, OPTIONS)
        async with asyncio.TaskGroup() as group:
            refreshing = group.create_task(keys.run())
            while not server.asked:  # noqa: ASYNC110 - the question is on its way
                await asyncio.sleep(0)
            await verifier.verify(issuer.token())
            issuer.publish(issuer.key, second)
            tokens = [issuer.token(key=second, subject=f"app-{n}") for n in range(20)]
            found = await asyncio.gather(*map(verifier.verify, tokens))
            assert [each.name for each in found] == [f"app-{n}" for n in range(20)]
            refreshing.cancel()
        assert server.asked == 2


async def test_keys_that_were_never_read_are_no_reason_to_give_up(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    async with KeyServer(issuer.path) as server:
        server.away = True
        verifier = TokenVerifier(KeysAtUrl(server.url, refresh_ms=3_600_000), OPTIONS)
        with pytest.raises(BrokerNotAvailableError, match="not known yet"):
            await verifier.verify(issuer.token())


async def test_keys_stay_while_their_url_does_not_answer(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    async with KeyServer(issuer.path) as server:
        keys = KeysAtUrl(server.url, refresh_ms=3_600_000)
        verifier = TokenVerifier(keys, OPTIONS)
        await verifier.verify(issuer.token())
        server.away = True
        await keys.refresh()
        server.broken = True
        await keys.refresh()
        assert server.asked == 3
        await verifier.verify(issuer.token(subject="other"))


DRIBBLED = {
    "before the status": b"",
    "in the status": b"HTTP/1.0 2",
    "in a header": b"HTTP/1.0 200 OK\r\nX:",
    "in the body": b"HTTP/1.0 200 OK\r\nContent-Length: 1000000\r\n\r\n",
    "in a body without a length": b"HTTP/1.0 200 OK\r\n\r\n{",
    "behind a key set without keys": b'HTTP/1.0 200 OK\r\n\r\n{"keys": []}',
}


@pytest.mark.parametrize("begins", DRIBBLED.values(), ids=DRIBBLED)
async def test_an_answer_without_an_end_keeps_no_caller_and_no_later_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    monkeypatch.setattr(jwks, "FETCH_TIMEOUT_S", 0.2)
    monkeypatch.setattr(jwks, "UNKNOWN_KEY_PAUSE_S", 0.0)
    issuer = Issuer(tmp_path / "keys.json")
    second = new_key("second")
    async with asyncio.timeout(60), KeyServer(issuer.path) as server:
        keys = KeysAtUrl(server.url, refresh_ms=3_600_000)
        verifier = TokenVerifier(keys, OPTIONS)
        await verifier.verify(issuer.token())
        server.begins = begins
        issuer.publish(second)
        with pytest.raises(SaslAuthenticationError, match="not known"):
            await verifier.verify(issuer.token(key=second))
        await verifier.verify(issuer.token(subject="other"))
        server.begins = None
        while not await _is_known(verifier, issuer.token(key=second)):
            pass  # The request under way may still be shared once.
        with pytest.raises(SaslAuthenticationError, match="not known"):
            await verifier.verify(issuer.token())


async def _is_known(verifier: TokenVerifier, token: str) -> bool:
    try:
        await verifier.verify(token)
    except SaslAuthenticationError:
        return False
    return True
