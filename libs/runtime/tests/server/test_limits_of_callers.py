"""What one caller may take of a real server, on both transports, while others are served."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from security_harness import Issuer
from server_harness import UNARY, Request, Response, Served, echo, serving
from visiting import Visitor, offer_of, visiting

from semel.group.v1.group_pb2 import OffsetCommitPartition, OffsetCommitTopic
from semel_common.errors import (
    NetworkExceptionError,
    ProducerFencedError,
    ThrottlingQuotaExceededError,
)
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import Security
from semel_common.wire.grpc_connection import GrpcConnection, GrpcConnector
from semel_common.wire.methods import TXN_OFFSET_COMMIT
from semel_runtime.authentication.listener_gate import ListenerSecurity
from semel_runtime.server.calls import Call
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.testing.virtual_time import after

FRAMES = pytest.mark.parametrize("sockets", [True, False], ids=["sockets", "grpc"])
UNARY_PAUSE_MS = 200


@pytest.fixture
def listener(issuer: Issuer) -> ListenerSecurity:
    return ListenerSecurity(
        tokens=issuer.verifier(), cluster_principals=frozenset({"User:service"})
    )


class Users:
    """Connections of users to one server, each with a token."""

    def __init__(self, served: Served, issuer: Issuer, stack: AsyncExitStack) -> None:
        self._served = served
        self._issuer = issuer
        self._stack = stack

    def connect(self, name: str) -> GrpcConnection:
        connector = GrpcConnector(
            ChannelOptions(refused_stream_pause_ms=UNARY_PAUSE_MS),
            Security(tls=False, token=self._issuer.token(subject=name)),
        )
        self._stack.push_async_callback(connector.close)
        return connector.connect(self._served.address)


@asynccontextmanager
async def users_of(served: Served, issuer: Issuer) -> AsyncIterator[Users]:
    async with AsyncExitStack() as stack:
        yield Users(served, issuer, stack)


async def commit(connection: GrpcConnection, number: int = 1) -> int:
    answer = await connection.call(
        TXN_OFFSET_COMMIT, Request(base_sequence=number), timeout_ms=50_000
    )
    return answer.throttle_time_ms


# -- streams ---------------------------------------------------------------------------------------


@FRAMES
async def test_idle_streams_of_one_user_shut_out_neither_others_nor_the_cluster(
    sockets: bool, issuer: Issuer, listener: ListenerSecurity, caplog: pytest.LogCaptureFixture
) -> None:
    limits = ServerLimits(streams_max=10, principal_share_percent=40, cluster_reserve_percent=20)
    async with (
        serving(echo, limits, sockets=sockets, listener=listener) as served,
        users_of(served, issuer) as users,
    ):
        for _ in range(9):  # The first four have a stream; the others are served without.
            assert await commit(users.connect("greedy")) == 1
        assert served.server.stream_count == 4
        for _ in range(4):
            assert await commit(users.connect("polite"), 2) == 2
        assert served.server.stream_count == 8
        assert await commit(users.connect("third")) == 1
        assert served.server.stream_count == 8, "the rest is kept for the cluster"
        caplog.clear()
        for _ in range(2):
            assert await commit(users.connect("service"), 3) == 3
        assert served.server.stream_count == 10
        assert not caplog.messages, "the cluster is not refused"


@FRAMES
async def test_a_client_without_a_stream_makes_unary_calls_warns_once_and_tries_again(
    sockets: bool, issuer: Issuer, listener: ListenerSecurity, caplog: pytest.LogCaptureFixture
) -> None:
    limits = ServerLimits(streams_max=1, cluster_reserve_percent=0)
    async with (
        serving(echo, limits, sockets=sockets, listener=listener) as served,
        users_of(served, issuer) as users,
    ):
        first, second = users.connect("app"), users.connect("app")
        assert await commit(first) == 1
        assert await asyncio.gather(*(commit(second, number) for number in range(5))) == [*range(5)]
        await after(UNARY_PAUSE_MS)
        assert await commit(second) == 1
        warnings = [record for record in caplog.records if "are unary for now" in record.message]
        assert len(warnings) == 1
        assert "its share is 1" in warnings[0].message
        await first.close()
        async with asyncio.timeout(50):
            while served.server.stream_count:  # noqa: ASYNC110 - the server sees the end later
                await asyncio.sleep(0)
            while not served.server.stream_count:
                assert await commit(second) == 1
                await asyncio.sleep(0)


async def test_without_authentication_an_address_has_a_share() -> None:
    limits = ServerLimits(streams_max=4, principal_share_percent=50, cluster_reserve_percent=0)
    async with serving(echo, limits) as served, AsyncExitStack() as stack:
        for number in range(3):
            connector = GrpcConnector()
            stack.push_async_callback(connector.close)
            assert await commit(connector.connect(served.address), number) == number
        assert served.server.stream_count == 2


async def test_a_hundred_clients_of_one_host_have_their_streams_by_default() -> None:
    async with serving(echo) as served, AsyncExitStack() as stack:
        offers = [await offer_of(served) for _ in range(100)]
        for number, offer in enumerate(offers):
            visitor = await stack.enter_async_context(visiting(offer.port))
            visitor.show(offer.ticket)
            visitor.ask(number)
            assert await visitor.answer() == number
        assert served.server.stream_count == 100


# -- idle streams ----------------------------------------------------------------------------------


async def test_signs_of_life_keep_no_stream_that_carries_no_request() -> None:
    async with serving(echo, ServerLimits(connections_max_idle_ms=300)) as served:
        offer = await offer_of(served)
        assert offer.max_idle_ms == 300
        async with visiting(offer.port) as visitor:
            visitor.show(offer.ticket)
            visitor.ask(1)
            assert await visitor.answer() == 1
            alive = asyncio.create_task(visitor.send_signs_of_life())
            async with asyncio.timeout(50):
                assert await visitor.ends_after_signs_of_life()
            alive.cancel()
        assert served.server.stream_count == 0


@FRAMES
async def test_a_client_ends_an_idle_stream_itself_and_opens_another_without_a_word(
    sockets: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo, ServerLimits(connections_max_idle_ms=400), sockets=sockets) as served:
        for number in range(3):
            assert await commit(served.connection, number) == number
            async with asyncio.timeout(50):
                while served.server.stream_count:  # noqa: ASYNC110 - both ends see it later
                    await asyncio.sleep(0)
    assert not caplog.messages


@FRAMES
async def test_a_stream_is_not_idle_while_a_request_is_in_flight(sockets: bool) -> None:
    release = asyncio.Event()

    async def parked(request: Request, call: Call) -> Response:
        asyncio.get_running_loop().call_later(0.5, release.set)
        await release.wait()
        return await echo(request, call)

    limits = ServerLimits(connections_max_idle_ms=100)
    async with serving(parked, limits, sockets=sockets) as served:
        assert await commit(served.connection, 7) == 7


# -- requests and bytes ----------------------------------------------------------------------------


async def test_unary_calls_that_wait_leave_room_for_others_and_for_the_cluster(
    issuer: Issuer, listener: ListenerSecurity
) -> None:
    release = asyncio.Event()

    async def parked(request: Request, call: Call) -> Response:
        if request.base_sequence:
            await release.wait()
        return await echo(request, call)

    limits = ServerLimits(
        requests_in_flight_max=10, principal_share_percent=40, cluster_reserve_percent=10
    )
    async with (
        serving(parked, limits, listener=listener) as served,
        users_of(served, issuer) as users,
        asyncio.TaskGroup() as group,
    ):
        greedy = users.connect("greedy")
        for _ in range(4):
            group.create_task(greedy.call(UNARY, Request(base_sequence=1), timeout_ms=50_000))
        while len(served.calls) < 4:  # noqa: ASYNC110 - the calls go on by themselves
            await asyncio.sleep(0)
        with pytest.raises(ThrottlingQuotaExceededError, match="its share is 4"):
            await greedy.call(UNARY, Request(), timeout_ms=50_000)
        for name in ("polite", "service"):
            await users.connect(name).call(UNARY, Request(), timeout_ms=50_000)
        release.set()


async def test_frames_past_the_share_are_read_later_and_all_are_answered(
    issuer: Issuer, listener: ListenerSecurity
) -> None:
    limits = ServerLimits(
        requests_in_flight_max=8, principal_share_percent=50, cluster_reserve_percent=0
    )
    async with (
        serving(echo, limits, listener=listener) as served,
        users_of(served, issuer) as users,
    ):
        connections = [users.connect("app") for _ in range(3)]
        answers = await asyncio.gather(
            *(commit(connections[number % 3], number) for number in range(60))
        )
    assert answers == list(range(60))


async def announce(served: Served, size_bytes: int, sent_bytes: int) -> Visitor:
    """Open a stream, and begin a message."""
    offer = await offer_of(served)
    visitor = await Visitor.open(offer.port)
    visitor.show(offer.ticket)
    visitor.announce(size_bytes)
    visitor.send_raw(bytes(sent_bytes))
    return visitor


async def test_announced_lengths_take_no_memory() -> None:
    async with serving(echo) as served, AsyncExitStack() as stack:
        tracemalloc.start()
        try:
            for _ in range(30):
                visitor = await announce(served, 16 << 20, 1_000)
                stack.callback(visitor.close)
            await commit(served.connection)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert served.server.stream_count == 31
    assert peak < 30 << 20


async def test_messages_that_do_not_arrive_hold_a_share_and_end_in_time(
    issuer: Issuer, listener: ListenerSecurity
) -> None:
    """Two of them fill the share; a third waits unread until the first are ended."""
    limits = ServerLimits(
        in_flight_max_bytes=4 << 20,
        message_size_max_bytes=1 << 20,
        arrival_timeout_ms=500,
        cluster_reserve_percent=0,
    )
    async with (
        serving(
            echo,
            limits,
            listener=listener,
            client=Security(tls=False, token=issuer.token(subject="greedy")),
        ) as served,
        users_of(served, issuer) as users,
        AsyncExitStack() as stack,
    ):
        visitors = [await announce(served, 1 << 20, 100 << 10) for _ in range(3)]
        for visitor in visitors:
            stack.callback(visitor.close)
        partition = OffsetCommitPartition(metadata="x" * (900 << 10))
        large = Request(topics=[OffsetCommitTopic(partitions=[partition])], base_sequence=3)
        polite = users.connect("polite")
        answer = await polite.call(TXN_OFFSET_COMMIT, large, timeout_ms=50_000)
        assert answer.throttle_time_ms == 3
        async with asyncio.timeout(50):
            for visitor in visitors:
                assert await visitor.is_sent_away()
        greedy = users.connect("greedy")
        answer = await greedy.call(TXN_OFFSET_COMMIT, large, timeout_ms=50_000)
        assert answer.throttle_time_ms == 3


@FRAMES
async def test_a_stream_that_is_cut_gives_everything_back(
    sockets: bool, issuer: Issuer, listener: ListenerSecurity
) -> None:
    limits = ServerLimits(
        requests_in_flight_max=6, principal_share_percent=50, cluster_reserve_percent=0
    )

    async def parked(request: Request, call: Call) -> Response:
        if request.base_sequence:
            await asyncio.Event().wait()
        return await echo(request, call)

    async with (
        serving(parked, limits, sockets=sockets, listener=listener) as served,
        users_of(served, issuer) as users,
    ):
        for _ in range(3):
            connection = users.connect("app")
            calls = [asyncio.create_task(commit(connection)) for _ in range(5)]
            seen = len(served.calls)
            while len(served.calls) < seen + 3:  # noqa: ASYNC110 - the calls go on by themselves
                await asyncio.sleep(0)
            await connection.close()
            for call in calls:
                with pytest.raises(NetworkExceptionError):
                    await call
            async with asyncio.timeout(50):
                while served.server.requests_in_flight:  # noqa: ASYNC110 - it sees the cut later
                    await asyncio.sleep(0)
            assert served.server.bytes_in_flight == 0
        assert await commit(users.connect("app"), 0) == 0


async def test_answers_that_a_client_has_not_read_are_given_back_when_it_goes() -> None:
    async def large(_: Request, __: Call) -> Response:
        raise ProducerFencedError("x" * (8 << 20))

    async with serving(large) as served:
        offer = await offer_of(served)
        async with visiting(offer.port) as visitor:
            visitor.show(offer.ticket)
            visitor.ask(1)
            while served.server.bytes_in_flight < 8 << 20:  # noqa: ASYNC110 - made by the server
                await asyncio.sleep(0)
        async with asyncio.timeout(50):
            while served.server.bytes_in_flight:  # noqa: ASYNC110 - it sees the end later
                await asyncio.sleep(0)
        assert served.server.requests_in_flight == 0
