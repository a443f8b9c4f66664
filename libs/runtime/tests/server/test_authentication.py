"""Authentication on every transport: bearer tokens and client certificates."""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
import structlog
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from security_harness import (
    AUDIENCE,
    HOUR_S,
    Authority,
    Issuer,
    new_key,
    server_tls,
    takes,
)
from server_harness import TRANSPORTS, UNARY, Request, Response, echo, serving

from semel.common.v1.frames_pb2 import OpenFramesRequest
from semel.group.v1.group_pb2 import OffsetCommitPartition, OffsetCommitTopic
from semel_common.errors import NetworkExceptionError, SaslAuthenticationError, SemelError
from semel_common.wire import status
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import ClientCredentials, Security
from semel_common.wire.frames.socket_pipe import ClientTls, SocketPipe, connect
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import GROUP, OPEN_FRAMES, TXN_OFFSET_COMMIT, Method
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.authentication.principal import Principal
from semel_runtime.server.calls import Call

REFUSED: dict[str, tuple[Callable[[Issuer], str | None], str]] = {
    "no credentials": (lambda _: None, "no token"),
    "no token of any kind": (lambda _: "opensesame", "no token"),
    "wrong audience": (lambda issuer: issuer.token(audience="others"), "claim aud"),
    "no audience": (lambda issuer: issuer.token(audience=None), "claim aud"),
    "wrong issuer": (lambda issuer: issuer.token(issuer="https://other.example"), "claim iss"),
    "expired": (lambda issuer: issuer.token(lives_s=-60), "has expired"),
    "endless": (lambda issuer: issuer.token(lives_s=None), "claim exp"),
    "not yet valid": (lambda issuer: issuer.token(begins_s=60), "not good yet"),
    "nobody": (lambda issuer: issuer.token(subject=None), "claim sub"),
    "unknown key": (lambda issuer: issuer.token(key=new_key("second")), "not known"),
    "other key of that name": (lambda issuer: issuer.token(key=new_key("first")), "signature"),
    "alg none": (Issuer.unsigned, "algorithm"),
    "alg HS256 with the public key": (Issuer.symmetric, "algorithm"),
    "tampered": (Issuer.tampered, "signature"),
}
ACCEPTED: dict[str, Callable[[Issuer], str]] = {
    "right": Issuer.token,
    "of several audiences": lambda issuer: issuer.token(audience=["others", AUDIENCE]),
    "expired within the skew": lambda issuer: issuer.token(lives_s=-10),
    "not yet valid within the skew": lambda issuer: issuer.token(begins_s=10),
}


@TRANSPORTS
@pytest.mark.parametrize("case", list(REFUSED))
async def test_a_caller_without_a_good_token_never_reaches_a_handler(
    case: str, method: Method[Request, Response], sockets: bool, issuer: Issuer
) -> None:
    make, reason = REFUSED[case]
    token = make(issuer)
    listener = ListenerSecurity(tokens=issuer.verifier())
    client = Security(tls=False, token=token)
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        with pytest.raises(SaslAuthenticationError, match=reason) as refused:
            await served.connection.call(method, Request(), timeout_ms=50_000)
        assert served.calls == []
    assert token is None or token not in refused.value.message


@TRANSPORTS
@pytest.mark.parametrize("case", list(ACCEPTED))
async def test_a_good_token_names_the_caller(
    case: str, method: Method[Request, Response], sockets: bool, issuer: Issuer
) -> None:
    listener = ListenerSecurity(
        tokens=issuer.verifier(), cluster_principals=frozenset({"User:other", "app"})
    )
    client = Security(tls=False, token=ACCEPTED[case](issuer))
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        await served.connection.call(method, Request(), timeout_ms=50_000)
        assert str(served.calls[0].origin.principal) == "User:app"
        assert not served.calls[0].origin.principal.is_cluster


@TRANSPORTS
async def test_the_cluster_knows_its_own(
    method: Method[Request, Response], sockets: bool, issuer: Issuer
) -> None:
    listener = ListenerSecurity(
        tokens=issuer.verifier(), cluster_principals=frozenset({"User:app"})
    )
    client = Security(tls=False, token=issuer.token())
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        await served.connection.call(method, Request(), timeout_ms=50_000)
        assert served.calls[0].origin.principal.is_cluster


async def test_refusals_do_not_fill_the_log(issuer: Issuer) -> None:
    listener = ListenerSecurity(tokens=issuer.verifier())
    with structlog.testing.capture_logs() as logs:
        async with serving(echo, listener=listener) as served:
            for _ in range(20):
                with pytest.raises(SaslAuthenticationError):
                    await served.connection.call(UNARY, Request(), timeout_ms=50_000)
    said = [entry for entry in logs if entry["event"] == "authentication failed"]
    assert len(said) < 5
    assert (said[0]["listener"], said[0]["count"]) == ("default", 1)
    assert "127.0.0.1" in said[0]["peer"]


async def test_any_grpc_client_is_told_why_it_is_refused(issuer: Issuer) -> None:
    listener = ListenerSecurity(tokens=issuer.verifier())
    async with (
        serving(echo, listener=listener) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call = channel.unary_unary(UNARY.path, Request.SerializeToString, Response.FromString)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(Request(), metadata=(("authorization", "Basic YTpi"),))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    answered = rpc_status.from_call(refused.value)  # type: ignore[arg-type]  # it is one
    assert answered is not None
    info = error_details_pb2.ErrorInfo()
    assert answered.details[0].Unpack(info)
    assert info.reason == "SASL_AUTHENTICATION_FAILED"
    assert "no bearer token" in answered.message


@pytest.mark.parametrize(
    ("has_token", "code", "reason"),
    [
        (False, grpc.StatusCode.UNAUTHENTICATED, "SASL_AUTHENTICATION_FAILED"),
        (True, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    ],
    ids=["no token", "a good token"],
)
async def test_a_message_is_looked_at_once_its_sender_is_known(
    has_token: bool, code: grpc.StatusCode, reason: str, issuer: Issuer
) -> None:
    listener = ListenerSecurity(tokens=issuer.verifier())
    metadata = (("authorization", f"Bearer {issuer.token()}"),) if has_token else ()
    async with (
        serving(echo, listener=listener) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call = channel.unary_unary(UNARY.path, bytes, Response.FromString)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"\xff", metadata=metadata)
    assert refused.value.code() is code
    assert status.from_rpc_error(refused.value, served.address).code.name == reason


@pytest.mark.parametrize("sockets", [True, False], ids=["sockets", "grpc stream"])
async def test_a_token_that_expires_ends_its_stream_and_a_fresh_one_opens_another(
    sockets: bool, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [issuer.token(subject="before", lives_s=HOUR_S)]
    listener = ListenerSecurity(tokens=issuer.verifier())
    client = Security(tls=False, token=lambda: tokens[-1])
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:

        async def call() -> str:
            await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=50_000)
            return served.calls[-1].origin.principal.name

        assert await call() == "before"
        later = time.time() + 2 * HOUR_S
        monkeypatch.setattr(
            "semel_runtime.server.handler_call.time", SimpleNamespace(time=lambda: later)
        )
        with pytest.raises(NetworkExceptionError, match="the token has expired"):
            await call()
        with pytest.raises(SaslAuthenticationError, match="the token has expired"):
            await call()
        assert len(served.calls) == 1
        tokens.append(issuer.token(subject="after", lives_s=4 * HOUR_S))
        assert await call() == "after"


@pytest.mark.parametrize("sockets", [True, False], ids=["sockets", "grpc stream"])
async def test_each_request_in_flight_at_the_expiry_is_refused_or_answered(
    sockets: bool, issuer: Issuer
) -> None:
    """The stream stays whole: a request before the expiry is answered, the ones after refused."""
    release = asyncio.Event()

    async def parked(request: Request, call: Call) -> Response:
        await release.wait()
        return await echo(request, call)

    listener = ListenerSecurity(tokens=issuer.verifier())
    client = Security(tls=False, token=issuer.token())
    async with serving(parked, sockets=sockets, listener=listener, client=client) as served:
        calls = [
            asyncio.create_task(
                served.connection.call(
                    TXN_OFFSET_COMMIT, Request(base_sequence=number), timeout_ms=50_000
                )
            )
            for number in range(3)
        ]
        while len(served.calls) < 3:  # noqa: ASYNC110 - the calls go on by themselves
            await asyncio.sleep(0)
        release.set()
        assert [(await each).throttle_time_ms for each in calls] == [0, 1, 2]


# -- certificates ----------------------------------------------------------------------------------


@TRANSPORTS
@pytest.mark.parametrize("case", ["no certificate", "other CA", "expired"])
async def test_a_caller_without_a_good_certificate_never_reaches_a_handler(
    case: str,
    method: Method[Request, Response],
    sockets: bool,
    authority: Authority,
    tmp_path: Path,
) -> None:
    other = Authority(tmp_path / "theirs").client()
    clients = {
        "no certificate": Security(ssl_ca_location=authority.ca),
        "other CA": Security(
            ssl_ca_location=authority.ca,
            ssl_certificate_location=other.ssl_certificate_location,
            ssl_key_location=other.ssl_key_location,
        ),
        "expired": authority.client(expired=True),
    }
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    async with serving(echo, sockets=sockets, listener=listener, client=clients[case]) as served:
        with pytest.raises(NetworkExceptionError):
            await served.connection.call(method, Request(), timeout_ms=50_000)
        assert served.calls == []


@TRANSPORTS
async def test_a_certificate_names_the_caller(
    method: Method[Request, Response], sockets: bool, authority: Authority
) -> None:
    listener = ListenerSecurity(
        tls=server_tls(authority.server(), asks_clients=True),
        cluster_principals=frozenset({"User:app.example"}),
    )
    client = authority.named("app.example", common_name="app by another name")
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        await served.connection.call(method, Request(base_sequence=1), timeout_ms=50_000)
        expected = Principal(name="app.example", is_cluster=True)
        assert served.calls[0].origin.principal == expected


@TRANSPORTS
async def test_a_client_refuses_a_server_that_its_ca_does_not_vouch_for(
    method: Method[Request, Response], sockets: bool, authority: Authority, tmp_path: Path
) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=Authority(tmp_path / "theirs").ca)
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        with pytest.raises(NetworkExceptionError):
            await served.connection.call(method, Request(), timeout_ms=50_000)


@TRANSPORTS
async def test_a_client_refuses_a_server_of_another_name(
    method: Method[Request, Response], sockets: bool, authority: Authority
) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=authority.ca, ssl_server_name="other.example")
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        with pytest.raises(NetworkExceptionError):
            await served.connection.call(method, Request(), timeout_ms=50_000)


@TRANSPORTS
async def test_a_token_over_tls_names_the_caller_in_spite_of_the_certificate(
    method: Method[Request, Response], sockets: bool, authority: Authority, issuer: Issuer
) -> None:
    listener = ListenerSecurity(
        tls=server_tls(authority.server(), asks_clients=True), tokens=issuer.verifier()
    )
    certificate = authority.client("door")
    client = Security(
        ssl_ca_location=authority.ca,
        ssl_certificate_location=certificate.ssl_certificate_location,
        ssl_key_location=certificate.ssl_key_location,
        ssl_server_name="localhost",
        token=issuer.token(subject="ada"),
    )
    async with serving(echo, sockets=sockets, listener=listener, client=client) as served:
        await served.connection.call(method, Request(), timeout_ms=50_000)
        assert served.calls[0].origin.principal.name == "ada"


async def test_frames_of_a_listener_with_tls_are_encrypted_too(authority: Authority) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=authority.ca)
    async with serving(echo, listener=listener, client=client) as served:
        offer = await served.connection.call(
            OPEN_FRAMES, OpenFramesRequest(service=GROUP), timeout_ms=50_000
        )
        context = ssl.create_default_context(cafile=authority.ca)
        _, writer = await asyncio.open_connection("127.0.0.1", offer.port, ssl=context)
        await closed(writer)
        reader, writer = await asyncio.open_connection("127.0.0.1", offer.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(100)
        await closed(writer)


async def test_a_frame_socket_that_asks_for_certificates_asks_everybody(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """With the ticket of another client."""
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=True))
    async with serving(echo, listener=listener, client=authority.client()) as served:
        offer = await served.connection.call(
            OPEN_FRAMES, OpenFramesRequest(service=GROUP), timeout_ms=50_000
        )
        assert await takes(offer.port, authority.client())
        assert not await takes(offer.port, Security(ssl_ca_location=authority.ca))
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=50_000)
    assert "go over gRPC" not in caplog.text


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


class Deaf:
    """Uses a pipe, and hears nothing."""

    def received(self, message: bytes | bytearray) -> None:
        pass

    def written(self) -> None:
        pass

    def lost(self, error: SemelError) -> None:
        pass


async def test_a_frame_socket_of_another_server_is_refused(authority: Authority) -> None:
    """It is for the name that the channel is for, though the other side says where it is."""
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=authority.ca)
    credentials = ClientCredentials(client).certificates()
    assert credentials is not None
    async with serving(echo, listener=listener, client=client) as served:
        offer = await served.connection.call(
            OPEN_FRAMES, OpenFramesRequest(service=GROUP), timeout_ms=50_000
        )
        options = ChannelOptions().as_socket_options()

        async def pipe_to(name: str) -> SocketPipe:
            tls = ClientTls(credentials.context, name)
            return await connect("127.0.0.1", offer.port, b"", Deaf(), options, tls)

        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            await pipe_to("other.example")
        pipe = await pipe_to("localhost")
        assert pipe.write((b"small",)), "what the kernel takes is written at once"
        pipe.abort()


async def test_large_messages_and_pauses_pass_through_tls(authority: Authority) -> None:
    listener = ListenerSecurity(tls=server_tls(authority.server(), asks_clients=False))
    client = Security(ssl_ca_location=authority.ca)

    async def large(request: Request, _: Call) -> Response:
        assert len(request.topics[0].partitions[0].metadata) == 3 << 20
        return Response(throttle_time_ms=request.base_sequence)

    async with serving(large, listener=listener, client=client) as served:
        offset = OffsetCommitPartition(metadata="x" * (3 << 20))
        topics = [OffsetCommitTopic(partitions=[offset])]
        answers = await asyncio.gather(
            *(
                served.connection.call(
                    TXN_OFFSET_COMMIT,
                    Request(topics=topics, base_sequence=number),
                    timeout_ms=50_000,
                )
                for number in range(20)
            )
        )
    assert [answer.throttle_time_ms for answer in answers] == list(range(20))


async def test_a_token_is_not_sent_in_clear_text_to_another_machine() -> None:
    connector = GrpcConnector(security=Security(tls=False, token="t"))
    with pytest.raises(SemelError, match="without TLS"):
        connector.connect("broker.example:9092")
    await connector.close()
