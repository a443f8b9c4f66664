"""Connections before any proof: how many, for how long, and which ticket opens which door."""

import asyncio
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
import structlog
from security_harness import Authority, Issuer, server_tls
from server_harness import GROUP_METHODS, UNARY, Request, answering, echo, serving
from visiting import offer_of, visiting

from semel.common.v1.frames_pb2 import OpenFramesRequest, OpenFramesResponse
from semel_common.errors import InvalidConfigError, NetworkExceptionError
from semel_common.wire.client_security import ClientCredentials, Security
from semel_common.wire.grpc_connection import GrpcConnection, GrpcConnector
from semel_common.wire.methods import GROUP, OPEN_FRAMES, TXN_OFFSET_COMMIT
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.process.file_limit import OWN_FILES, files_needed, fit_file_limit
from semel_runtime.server.calls import Handlers
from semel_runtime.server.frames.acceptor import Acceptor
from semel_runtime.server.grpc_server import GrpcServer
from semel_runtime.server.limits.server_limits import ServerLimits

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HTTP2_SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"
"""The beginning of a handshake that does not go on."""


async def is_closed(connection: socket.socket) -> bool:
    """Read until the other side has closed a connection."""
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):
        while await loop.sock_recv(connection, 4_096):
            pass
    return True


@asynccontextmanager
async def connected(
    port: int, sent: bytes, count: int = 1, *, source: str = "127.0.0.1"
) -> AsyncIterator[list[socket.socket]]:
    """Open connections that send this and no more, from an address."""
    loop = asyncio.get_running_loop()
    with_all: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.socket()
            connection.setblocking(False)
            connection.bind((source, 0))
            with_all.append(connection)
            await loop.sock_connect(connection, ("127.0.0.1", port))
            with suppress(ConnectionError):
                await loop.sock_sendall(connection, sent)
        yield with_all
    finally:
        for connection in with_all:
            connection.close()


# -- the port for frames ---------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", TLS_HELLO], ids=["silent", "stalled"])
async def test_a_tls_handshake_has_its_time(sent: bytes, authority: Authority) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=authority.ca)
    limits = ServerLimits(handshake_timeout_ms=300)
    async with serving(echo, limits, listener=listener, client=client) as served:
        offer = await offer_of(served)
        async with connected(offer.port, sent, 20) as connections, asyncio.timeout(50):
            for connection in connections:
                assert await is_closed(connection)


async def test_stalled_handshakes_of_one_address_leave_room_for_clients(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """The oldest of them make room, and a client that has a ticket is let in."""
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=authority.ca)
    limits = ServerLimits(visitors_per_address_max=5, handshake_timeout_ms=3_600_000)
    async with serving(echo, limits, listener=listener, client=client) as served:
        offer = await offer_of(served)
        async with connected(offer.port, TLS_HELLO, 30) as connections, asyncio.timeout(50):
            for connection in connections[:25]:
                assert await is_closed(connection)
            answer = await served.connection.call(
                TXN_OFFSET_COMMIT, Request(base_sequence=3), timeout_ms=5_000
            )
            assert answer.throttle_time_ms == 3
            assert served.server.stream_count == 1
    assert "go over gRPC" not in caplog.text


async def test_visitors_of_one_address_do_not_push_out_those_of_another() -> None:
    limits = ServerLimits(visitors_max=6, handshake_timeout_ms=3_600_000)
    async with serving(echo, limits) as served, AsyncExitStack() as stack:
        port = (await offer_of(served)).port
        loop = asyncio.get_running_loop()
        quiet = socket.socket()
        stack.callback(quiet.close)
        quiet.setblocking(False)
        quiet.bind(("127.0.0.2", 0))
        await loop.sock_connect(quiet, ("127.0.0.1", port))
        async with connected(port, b"", 20) as connections, asyncio.timeout(50):
            for connection in connections[:15]:
                assert await is_closed(connection)
            with pytest.raises(BlockingIOError):
                quiet.recv(1)


async def test_no_file_left_is_no_end_of_accepting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semel_runtime.server.frames.acceptor._PAUSE_S", 0.05)
    received: asyncio.Queue[socket.socket] = asyncio.Queue()
    with socket.create_server(("127.0.0.1", 0)) as bound:
        acceptor = Acceptor(bound, received.put_nowait)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        port = bound.getsockname()[1]
        async with connected(port, b"") as _:
            (await received.get()).close()
            client = socket.socket()
            client.setblocking(False)
            with structlog.testing.capture_logs() as logs, client:
                resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
                try:
                    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
                    while not logs:  # noqa: ASYNC110 - it is logged by itself
                        await asyncio.sleep(0)
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                (await received.get()).close()
        acceptor.close()
    assert logs[0]["event"] == "no connection for frames can be accepted"


# -- tickets ---------------------------------------------------------------------------------------


@asynccontextmanager
async def two_listeners(
    client: ListenerSecurity, internal: ListenerSecurity
) -> AsyncIterator[tuple[Callable[[str, Security], GrpcConnection], GrpcServer]]:
    """Serve at a listener for clients and at one for services; gives what connects to either."""
    server = GrpcServer(ServerLimits())
    addresses = {}
    for name, security in (("client", client), ("internal", internal)):
        at = Listener(name=name, host="127.0.0.1", port=0)
        addresses[name] = server.bind(at, security).address
        server.bind_frames(at)
    handlers = Handlers()
    for method in GROUP_METHODS:
        handlers.add(method, answering(method.response()))
    await server.start(handlers)
    connectors: list[GrpcConnector] = []

    def connect(listener: str, security: Security) -> GrpcConnection:
        connectors.append(GrpcConnector(security=security))
        return connectors[-1].connect(addresses[listener])

    try:
        yield connect, server
    finally:
        for connector in connectors:
            await connector.close()
        await server.stop(drain_ms=0, grace_ms=1_000)


async def ticket_of(connection: GrpcConnection) -> OpenFramesResponse:
    return await connection.call(OPEN_FRAMES, OpenFramesRequest(service=GROUP), timeout_ms=5_000)


async def test_a_ticket_counts_only_at_the_listener_that_gave_it(
    authority: Authority, issuer: Issuer
) -> None:
    """One of the internal listener, shown at the client's port, would make a client a service."""
    tls = server_tls(authority.server(), asks_clients=False)
    mutual = server_tls(authority.server(), asks_clients=True)
    async with two_listeners(
        ListenerSecurity(tls=tls, tokens=issuer.verifier()), ListenerSecurity(tls=mutual)
    ) as (connect, server):
        user = Security(ssl_ca_location=authority.ca, token=issuer.token())
        internal = await ticket_of(connect("internal", authority.named("service.example")))
        own = await ticket_of(connect("client", user))
        context = ssl.create_default_context(cafile=authority.ca)
        async with visiting(own.port, context) as visitor:
            visitor.show(internal.ticket)
            visitor.ask(1)
            assert await visitor.is_sent_away()
        assert server.stream_count == 0
        async with visiting(own.port, context) as visitor:
            visitor.show(own.ticket)
            visitor.ask(1)
            await visitor.answer()


def context_of(security: Security) -> ssl.SSLContext:
    certificates = ClientCredentials(security).certificates()
    assert certificates is not None
    return certificates.context


@pytest.mark.parametrize(
    ("shown_by", "is_let_in"),
    [("service.example", True), ("app.example", False)],
    ids=["its owner", "another client of the same authority"],
)
async def test_a_ticket_is_good_with_the_certificate_of_its_owner_only(
    shown_by: str, is_let_in: bool, authority: Authority
) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    owner = authority.named("service.example", common_name="first")
    async with serving(echo, listener=listener, client=owner) as served:
        offer = await offer_of(served)
        context = context_of(authority.named(shown_by, common_name="second"))
        async with visiting(offer.port, context) as visitor:
            visitor.show(offer.ticket)
            visitor.ask(1)
            if is_let_in:
                assert await visitor.answer() == 1
            else:
                assert await visitor.is_sent_away()
        assert len(served.calls) == is_let_in


async def test_a_certificate_without_other_names_is_known_by_its_common_name(
    authority: Authority,
) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    client = authority.named(common_name="plain app")
    async with serving(echo, listener=listener, client=client) as served:
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
        assert served.server.stream_count == 1
        assert served.calls[0].origin.principal.name == "plain app"


# -- the port of gRPC ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent", [b"", HTTP2_PREFACE, TLS_HELLO], ids=["silent", "preface", "stalled"]
)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
async def test_grpc_ends_connections_that_do_not_begin(
    sent: bytes, encrypted: bool, authority: Authority
) -> None:
    tls = server_tls(authority.server(), asks_clients=False) if encrypted else None
    limits = ServerLimits(handshake_timeout_ms=300)
    async with serving(echo, limits, listener=ListenerSecurity(tls=tls)) as served:
        port = int(served.address.rpartition(":")[2])
        async with connected(port, sent, 5) as connections, asyncio.timeout(50):
            for connection in connections:
                assert await is_closed(connection)


async def test_grpc_ends_connections_without_a_call_and_clients_do_not_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(echo, ServerLimits(connections_max_idle_ms=300)) as served:
        await served.connection.call(UNARY, Request(), timeout_ms=5_000)
        port = int(served.address.rpartition(":")[2])
        async with connected(port, HTTP2_PREFACE + HTTP2_SETTINGS) as (idle,), asyncio.timeout(50):
            assert await is_closed(idle)
        await served.connection.call(UNARY, Request(), timeout_ms=5_000)
    assert not caplog.messages


async def test_grpc_takes_so_many_connections_and_others_when_these_are_gone() -> None:
    limits = ServerLimits(grpc_connections_max=5, handshake_timeout_ms=3_600_000)
    async with serving(echo, limits) as served, asyncio.timeout(50):
        port = int(served.address.rpartition(":")[2])
        async with connected(port, b"", 12) as connections:
            for connection in connections[5:]:
                assert await is_closed(connection)
        answer = None
        while answer is None:
            with suppress(NetworkExceptionError):  # Until gRPC has seen that five have gone.
                answer = await served.connection.call(UNARY, Request(), timeout_ms=5_000)


async def test_grpc_keeps_so_many_connections_of_one_address_and_all_of_others() -> None:
    limits = ServerLimits(grpc_connections_per_address_max=5, handshake_timeout_ms=3_600_000)
    async with serving(echo, limits) as served, AsyncExitStack() as stack:
        logged = stack.enter_context(structlog.testing.capture_logs())
        port = int(served.address.rpartition(":")[2])
        greedy = await stack.enter_async_context(connected(port, b"", 12, source="127.0.0.2"))
        modest = await stack.enter_async_context(connected(port, b"", 5, source="127.0.0.3"))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        ends = [group.create_task(is_closed(each)) for each in (*greedy, *modest)]
        async with asyncio.timeout(50):
            while sum(end.done() for end in ends) < 7:
                await asyncio.wait(
                    [end for end in ends if not end.done()], return_when=asyncio.FIRST_COMPLETED
                )
        await served.connection.call(UNARY, Request(), timeout_ms=5_000)
        assert sum(end.done() for end in ends[:12]) == 7
        assert not any(end.done() for end in ends[12:])
        for end in ends:
            end.cancel()
    (warning,) = logged
    assert (warning["address"], warning["ended"]) == ("127.0.0.2", 7)


# -- open files ------------------------------------------------------------------------------------

LIMITS = ServerLimits()


@pytest.fixture
def file_limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], list[tuple[int, int]]]:
    """Give the process limits of open files; returns the limits that it sets."""
    set_: list[tuple[int, int]] = []

    def give(soft: int, hard: int) -> list[tuple[int, int]]:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_.append(limits))
        return set_

    return give


FileLimit = Callable[[int, int], list[tuple[int, int]]]


def test_the_files_of_all_connections_are_counted() -> None:
    assert files_needed(LIMITS, 2) == OWN_FILES + 2_000 + 2_000 + 2 * 4_000


@pytest.mark.parametrize(
    ("soft", "hard", "set_"),
    [
        (1_024, 524_288, [(12_256, 524_288)]),
        (1_024, resource.RLIM_INFINITY, [(12_256, resource.RLIM_INFINITY)]),
        (20_000, 20_000, []),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, []),
    ],
)
def test_the_soft_limit_is_raised_to_the_need(
    soft: int, hard: int, set_: list[tuple[int, int]], file_limit: FileLimit
) -> None:
    given = file_limit(soft, hard)
    assert fit_file_limit(LIMITS, 2) is LIMITS
    assert given == set_


def test_a_hard_limit_that_is_too_low_lowers_the_limits_and_says_so(
    file_limit: FileLimit,
) -> None:
    given = file_limit(512, 1_024)
    with structlog.testing.capture_logs() as logs:
        fitted = fit_file_limit(LIMITS, 2)
    assert given == [(1_024, 1_024)]
    assert files_needed(fitted, 2) <= 1_024
    assert (logs[0]["files_allowed"], logs[0]["files_needed"]) == (1_024, 12_256)
    assert logs[0]["log_level"] == "warning"
    assert min(fitted.streams_max, fitted.visitors_max, fitted.grpc_connections_max) > 100
    assert fitted.visitors_per_address_max <= fitted.visitors_max // 4


def test_a_hard_limit_that_leaves_no_clients_is_refused_with_both_numbers(
    file_limit: FileLimit,
) -> None:
    file_limit(256, 300)
    with pytest.raises(InvalidConfigError, match=r"may open 300 files.* need 12,256"):
        fit_file_limit(LIMITS, 2)
