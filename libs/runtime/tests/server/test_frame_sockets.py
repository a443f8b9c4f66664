"""Frames over a connection of their own need a ticket; other connections are closed."""

import asyncio
import socket
import ssl
import tracemalloc
from contextlib import AsyncExitStack, suppress

import grpc
import pytest
import structlog
from server_harness import echo, serving
from visiting import offer_of, visiting

from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest, OpenFramesResponse
from semel.group.v1 import group_pb2 as group
from semel_common.errors import NetworkExceptionError
from semel_common.wire.methods import GROUP, OPEN_FRAMES, TXN_OFFSET_COMMIT
from semel_runtime.server.calls import Call
from semel_runtime.server.frames.socket_frames import FrameSockets
from semel_runtime.server.limits.server_limits import ServerLimits

Request = group.TxnOffsetCommitRequest
Response = group.TxnOffsetCommitResponse


async def test_a_ticket_lets_its_owner_in() -> None:
    async with serving(echo) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as visitor:
            visitor.show(offer.ticket)
            visitor.ask(3)
            assert await visitor.answer() == 3
            assert served.calls[0].origin.listener == "default"


async def test_no_frame_waits_for_the_receipt_of_the_frame_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []
    receive = FrameSockets._receive

    def noted(
        sockets: FrameSockets, name: str, tls: ssl.SSLContext | None, connection: socket.socket
    ) -> None:
        taken.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        receive(sockets, name, tls, connection)

    monkeypatch.setattr(FrameSockets, "_receive", noted)
    async with serving(echo) as served:
        await served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=5_000)
    assert taken == [1]


async def test_a_ticket_is_good_once() -> None:
    async with serving(echo) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as first, visiting(offer.port) as second:
            first.show(offer.ticket)
            first.ask(1)
            assert await first.answer() == 1
            second.show(offer.ticket)
            assert await second.is_sent_away()


@pytest.mark.parametrize(
    "preface",
    [b"GET / HTTP/1.1", FramesPreface(ticket=bytes(16)).SerializeToString()],
    ids=["another client", "an invented ticket"],
)
async def test_a_visitor_without_a_ticket_is_sent_away(preface: bytes) -> None:
    async with serving(echo) as served:
        async with visiting((await offer_of(served)).port) as visitor:
            visitor.send(preface)
            visitor.ask(1)
            assert await visitor.is_sent_away()
        assert served.calls == []


async def test_a_length_without_a_ticket_gets_no_memory() -> None:
    async with serving(echo) as served, visiting((await offer_of(served)).port) as visitor:
        tracemalloc.start()
        try:
            visitor.announce(64 << 20)
            assert await visitor.is_sent_away()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 1 << 20


async def test_one_visitor_too_many_sends_away_the_visitor_that_waits_longest() -> None:
    async with serving(echo, ServerLimits(visitors_max=1)) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as idle, visiting(offer.port) as quick:
            assert await idle.is_sent_away()
            quick.show(offer.ticket)
            quick.ask(2)
            assert await quick.answer() == 2


async def test_a_refused_caller_does_not_fill_the_log() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(echo) as served:
            port = (await offer_of(served)).port
            for _ in range(20):
                async with visiting(port) as visitor:
                    visitor.show(bytes(16))
                    visitor.show(bytes(16))
                    assert await visitor.is_sent_away()
    said = [log for log in logs if log["event"] == "a connection for frames is refused"]
    assert len(said) < 5
    assert said[0]["count"] == 1


async def test_who_shows_nothing_is_sent_away() -> None:
    limits = ServerLimits(handshake_timeout_ms=50)
    async with serving(echo, limits) as served, visiting((await offer_of(served)).port) as visitor:
        assert await visitor.is_sent_away()


async def test_a_visitor_that_has_shown_nothing_is_sent_away_when_the_server_ends() -> None:
    async with AsyncExitStack() as visits:
        async with serving(echo, ServerLimits(handshake_timeout_ms=3_600_000)) as served:
            offer = await offer_of(served)
            visitor = await visits.enter_async_context(visiting(offer.port))
            witness = await visits.enter_async_context(visiting(offer.port))
            witness.send(b"who came after the visitor, so the visitor is there")
            assert await witness.is_sent_away()
        assert await visitor.is_sent_away()


@pytest.mark.parametrize("turns", range(6))
async def test_who_comes_while_the_server_ends_is_sent_away(turns: int) -> None:
    loop = asyncio.get_running_loop()
    async with serving(echo) as served:
        port = (await offer_of(served)).port
        with socket.create_connection(("127.0.0.1", port)) as knocking:
            knocking.setblocking(False)
            for _ in range(turns):  # of the event loop, at one of which it is accepted
                await asyncio.sleep(0)
            await served.server.close()
            with suppress(ConnectionError):
                assert await loop.sock_recv(knocking, 1) == b""


async def test_a_ticket_does_not_live_long() -> None:
    async with serving(echo, ServerLimits(handshake_timeout_ms=50)) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as early:
            assert await early.is_sent_away()  # It came after the ticket, and its time is over.
        async with visiting(offer.port) as visitor:
            visitor.show(offer.ticket)
            assert await visitor.is_sent_away()


async def test_tickets_do_not_make_more_room() -> None:
    async with serving(echo, ServerLimits(streams_max=1)) as served:
        offers = [await offer_of(served) for _ in range(2)]
        async with visiting(offers[0].port) as first, visiting(offers[1].port) as second:
            first.show(offers[0].ticket)
            first.ask(1)
            assert await first.answer() == 1
            second.show(offers[1].ticket)
            assert await second.is_sent_away()


async def test_a_malformed_request_ends_the_connection() -> None:
    async with serving(echo) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as visitor:
            visitor.show(offer.ticket)
            visitor.send(b"\xff")
            assert await visitor.is_sent_away()


async def test_a_service_that_has_no_such_frames_says_so() -> None:
    async with serving(echo) as served:
        with pytest.raises(NetworkExceptionError, match="another service"):
            await served.connection.call(
                OPEN_FRAMES, OpenFramesRequest(service="semel.nobody"), timeout_ms=5_000
            )


async def test_a_port_that_cannot_be_reached_leaves_grpc(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(echo) as served:
        await served.server.close()
        answer = await served.connection.call(
            TXN_OFFSET_COMMIT, Request(base_sequence=4), timeout_ms=5_000
        )
        assert answer.throttle_time_ms == 4
    assert "go over gRPC" in caplog.text


async def test_a_client_that_goes_away_takes_its_waiting_with_it() -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def parked(_: Request, __: Call) -> Response:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async with serving(parked) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as visitor:
            visitor.show(offer.ticket)
            visitor.ask(1)
            await entered.wait()
        await cancelled.wait()


async def test_every_client_may_open_frames_over_grpc_alone() -> None:
    async with serving(echo, sockets=False) as served:
        assert not (await offer_of(served)).ticket
        async with grpc.aio.insecure_channel(served.address) as channel:
            call = channel.unary_unary(
                OPEN_FRAMES.path,
                OpenFramesRequest.SerializeToString,
                OpenFramesResponse.FromString,
            )
            offer = await call(OpenFramesRequest(service=GROUP))
            assert (offer.port, offer.ticket) == (0, b"")
