"""What a server does about clients that do not read: their answers take room until they do."""

import asyncio

import grpc
import pytest
from server_harness import serving

from semel.group.v1 import group_pb2 as group
from semel.group.v1.group_pb2_grpc import GroupServiceStub
from semel_common.errors import GroupIdNotFoundError, ProducerFencedError
from semel_common.wire.methods import LIST_GROUPS, TXN_OFFSET_COMMIT
from semel_runtime.server.calls import Call
from semel_runtime.server.limits.server_limits import ServerLimits

Request = group.TxnOffsetCommitRequest
Response = group.TxnOffsetCommitResponse

LARGE = 8 << 20
"""More than a client takes that does not read."""


class Held:
    """Answers that are large, and whether they have been written."""

    def __init__(self) -> None:
        self.made = 0
        self.written = 0
        self.changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, request: Request, call: Call) -> Response:
        self.made += 1
        call.when_written(self._note_written)
        await self._tell()
        if request.base_sequence == 1:
            raise ProducerFencedError("x" * LARGE)
        return Response()

    async def until(self, *, made: int | None = None, written: int | None = None) -> None:
        """Wait until so many answers have been made, or written."""
        async with self.changed, asyncio.timeout(20):
            await self.changed.wait_for(
                lambda: made in (None, self.made) and written in (None, self.written)
            )

    def _note_written(self) -> None:
        self.written += 1
        task = asyncio.create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()


def requests(first: int, count: int, *, large: bool) -> group.StreamRequest:
    return group.StreamRequest(
        frames=[
            group.RequestFrame(
                correlation_id=first + number, txn_offset_commit=Request(base_sequence=int(large))
            )
            for number in range(count)
        ]
    )


async def test_a_stream_is_not_read_while_its_answers_are_not() -> None:
    held = Held()
    limits = ServerLimits(stream_in_flight_max_bytes=3 * LARGE)
    unlimited = [("grpc.max_receive_message_length", -1)]
    async with (
        serving(held.answer, limits) as served,
        grpc.aio.insecure_channel(served.address, options=unlimited) as channel,
    ):
        stream = GroupServiceStub(channel).Stream()
        await stream.write(requests(0, 6, large=True))
        await held.until(made=6)
        await stream.write(requests(6, 1, large=False))
        for _ in range(9):
            await served.connection.call(LIST_GROUPS, group.ListGroupsRequest(), timeout_ms=50_000)
        assert held.made == 6
        answered = 0
        while answered < 7:
            message = await stream.read()
            assert isinstance(message, group.StreamResponse)
            answered += len(message.frames)
        await held.until(made=7, written=7)
        stream.cancel()


async def test_a_stream_whose_answers_no_client_reads_is_ended_and_its_room_is_given_back() -> None:
    held = Held()
    async with (
        serving(held.answer, ServerLimits(write_timeout_ms=100)) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        stream = GroupServiceStub(channel).Stream()
        await stream.write(requests(0, 3, large=True))
        await held.until(made=3, written=3)
        stream.cancel()


async def test_answers_of_unary_calls_take_room_until_they_are_written() -> None:
    held = Held()
    async with serving(held.answer) as served:
        channel = grpc.aio.insecure_channel(served.address)
        stub = GroupServiceStub(channel)
        await stub.TxnOffsetCommit(Request())
        await held.until(made=1, written=1)
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.TxnOffsetCommit(Request(base_sequence=1), timeout=50)
        await held.until(made=2, written=2)
        await channel.close()


async def test_a_request_that_is_cancelled_gives_its_room_back() -> None:
    held = Held()
    started = asyncio.Event()

    async def never(request: Request, call: Call) -> Response:
        await held.answer(request, call)
        started.set()
        await asyncio.Event().wait()
        raise GroupIdNotFoundError("no caller gets here")

    async with serving(never) as served:
        calling = asyncio.create_task(
            served.connection.call(TXN_OFFSET_COMMIT, Request(), timeout_ms=60_000)
        )
        await started.wait()
        calling.cancel()
        await held.until(written=1)
