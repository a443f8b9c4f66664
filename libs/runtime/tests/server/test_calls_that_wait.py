"""Long polls over real connections: their waits are capped, and end with their caller's token."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest
from google.protobuf.message import Message
from joserfc import jwt
from security_harness import AUDIENCE, ISSUER, OPTIONS, Issuer

from semel.broker.v1 import broker_pb2 as broker
from semel_common.errors import NetworkExceptionError, SaslAuthenticationError, SemelError
from semel_common.wire import methods
from semel_common.wire.client_security import Security
from semel_common.wire.grpc_connection import GrpcConnection, GrpcConnector
from semel_common.wire.methods import FETCH, Method
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.grpc_server import GrpcServer
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.testing.virtual_time import after

Fetch = Callable[[broker.FetchRequest, Call], Awaitable[broker.FetchResponse]]
UNARY_FETCH = Method(FETCH.service, FETCH.name, FETCH.request, FETCH.response)
TRANSPORTS = pytest.mark.parametrize(
    ("method", "sockets"),
    [(UNARY_FETCH, True), (FETCH, True), (FETCH, False)],
    ids=["unary", "sockets", "grpc"],
)
BROKER_METHODS: list[Method[Message, Message]] = [
    var
    for var in vars(methods).values()
    if isinstance(var, Method)
    and var.service in (methods.BROKER, methods.PARTICIPANT)
    and var not in (methods.GROUP_WRITE_TXN_MARKERS, methods.FETCH)
]
LONGEST_MS = 1_234


async def no_call(_: Message, __: Call) -> Message:
    raise AssertionError


@asynccontextmanager
async def broker_with(
    fetch: Fetch,
    *,
    sockets: bool,
    listener: ListenerSecurity | None = None,
    token: Callable[[], str] | None = None,
) -> AsyncIterator[tuple[GrpcServer, GrpcConnection]]:
    server = GrpcServer(ServerLimits(long_poll_max_ms=LONGEST_MS))
    bound = server.bind(Listener(name="default", host="127.0.0.1", port=0), listener)
    if sockets:
        server.bind_frames(Listener(name="default", host="127.0.0.1", port=0))
    handlers = Handlers()
    for method in BROKER_METHODS:
        handlers.add(method, no_call)
    handlers.add(FETCH, fetch)
    await server.start(handlers)
    connector = GrpcConnector(security=Security(tls=False, token=token))
    try:
        yield server, connector.connect(bound.address)
    finally:
        await connector.close()
        await server.stop(drain_ms=0, grace_ms=1_000)


@pytest.fixture
def listener(issuer: Issuer) -> ListenerSecurity:
    """Ask for tokens, by a clock without skew."""
    return ListenerSecurity(tokens=issuer.verifier(replace(OPTIONS, clock_skew_s=0)))


def short_token(issuer: Issuer, lifetime_s: float) -> str:
    """Return a token that expires soon."""
    claims = {"sub": "app", "aud": AUDIENCE, "iss": ISSUER, "exp": time.time() + lifetime_s}
    return jwt.encode({"alg": "ES256", "kid": issuer.key.kid or ""}, claims, issuer.key)


@TRANSPORTS
@pytest.mark.parametrize(("asked_ms", "given_ms"), [(300_000, LONGEST_MS), (500, 500), (0, 0)])
async def test_a_wait_is_capped(
    asked_ms: int, given_ms: int, method: Method[Message, Message], sockets: bool
) -> None:
    asked: list[int] = []

    async def fetch(request: broker.FetchRequest, _: Call) -> broker.FetchResponse:
        asked.append(request.max_wait_ms)
        return broker.FetchResponse()

    async with broker_with(fetch, sockets=sockets) as (_, connection):
        await connection.call(method, broker.FetchRequest(max_wait_ms=asked_ms), timeout_ms=50_000)
    assert asked == [given_ms]


@TRANSPORTS
async def test_a_wait_ends_before_the_token_of_its_caller(
    method: Method[Message, Message],
    sockets: bool,
    issuer: Issuer,
    listener: ListenerSecurity,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine, the request and the answer need seconds. So the wait ends long before.
    monkeypatch.setattr("semel_runtime.server.calls.ANSWER_MS", 20_000)
    token = short_token(issuer, lifetime_s=20.4)

    async def fetch(request: broker.FetchRequest, call: Call) -> broker.FetchResponse:
        await after(call.remaining_ms(request.max_wait_ms * 100))
        return broker.FetchResponse(throttle_time_ms=7)

    async with broker_with(fetch, sockets=sockets, listener=listener, token=lambda: token) as (
        _,
        connection,
    ):
        request = broker.FetchRequest(max_wait_ms=LONGEST_MS)
        answer = await connection.call(method, request, timeout_ms=60_000)
        assert isinstance(answer, broker.FetchResponse)
        assert answer.throttle_time_ms == 7


@TRANSPORTS
async def test_an_answer_that_comes_after_the_token_has_expired_stays_inside(
    method: Method[Message, Message], sockets: bool, issuer: Issuer, listener: ListenerSecurity
) -> None:
    entered = asyncio.Event()

    async def fetch(_: broker.FetchRequest, call: Call) -> broker.FetchResponse:
        entered.set()
        expires_at = call.origin.principal.expires_at
        assert expires_at is not None
        await after((expires_at - time.time()) * 1000 + 50)
        return broker.FetchResponse(throttle_time_ms=7)

    # In a frame, the stream has ended: the client may come again with another token.
    expected = SaslAuthenticationError if method is UNARY_FETCH else NetworkExceptionError
    lifetime_s = 0.2
    while True:  # A busy machine may need longer to bring the request there.
        lifetime_s *= 2
        token = short_token(issuer, lifetime_s)
        async with broker_with(
            fetch, sockets=sockets, listener=listener, token=partial(str, token)
        ) as (_, connection):
            with pytest.raises(SemelError) as refused:
                await connection.call(method, broker.FetchRequest(), timeout_ms=60_000)
        if entered.is_set():
            break
    assert isinstance(refused.value, expected)
    assert "the token has expired" in str(refused.value)


@pytest.mark.parametrize("sockets", [True, False], ids=["sockets", "grpc"])
async def test_a_stream_ends_with_the_token_of_its_caller_without_a_request(
    sockets: bool,
    issuer: Issuer,
    listener: ListenerSecurity,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("semel_runtime.server.frames.frame_session.EXPIRY_GRACE_S", 0.05)
    tokens: list[str] = []
    parked = asyncio.Event()

    async def fetch(request: broker.FetchRequest, _: Call) -> broker.FetchResponse:
        if request.min_bytes:
            assert server.stream_count == 1
            parked.set()
            await asyncio.Event().wait()
        return broker.FetchResponse()

    async with broker_with(fetch, sockets=sockets, listener=listener, token=lambda: tokens[-1]) as (
        server,
        connection,
    ):
        parking = asyncio.create_task(parked.wait())
        lifetime_s = 0.2
        while True:  # A busy machine may need longer to bring the request there.
            lifetime_s *= 2
            tokens.append(short_token(issuer, lifetime_s))
            waiting = asyncio.create_task(
                connection.call(FETCH, broker.FetchRequest(min_bytes=1), timeout_ms=60_000)
            )
            await asyncio.wait((parking, waiting), return_when=asyncio.FIRST_COMPLETED)
            if parked.is_set():
                break
        async with asyncio.timeout(50):
            while server.stream_count:  # noqa: ASYNC110 - it ends by itself
                await asyncio.sleep(0)
        with pytest.raises(SemelError):
            await waiting
        tokens.append(issuer.token())
        await connection.call(FETCH, broker.FetchRequest(), timeout_ms=50_000)
    assert not caplog.messages
