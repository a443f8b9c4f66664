"""What servers that cannot be trusted send: errors, unary answers, frames, and offers of frames."""

import asyncio
from collections.abc import Callable, Sequence

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.frames_pb2 import OpenFramesResponse
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.client_errors import InvalidResponseError
from semel_common.error_codes import ErrorCode
from semel_common.errors import (
    NetworkExceptionError,
    SemelError,
)
from semel_common.untrusted_text import natural_number
from semel_common.wire import status
from semel_common.wire.frames.frame_stream import ARRIVED_MAX, FrameStream, Opened
from semel_common.wire.frames.pipe import PipeUser
from semel_common.wire.frames.stream_messages import STREAMS
from semel_common.wire.frames.transport_choice import check_offer
from semel_common.wire.messages.response_parsing import AnswerBounds, parse
from semel_common.wire.methods import BROKER, FETCH, METADATA, PRODUCE

HERE = "127.0.0.1:1"
BOUNDS = AnswerBounds(size_max_bytes=1 << 20, elements_max=100_000)


# -- errors --------------------------------------------------------------------------------------


def failed(trailer: bytes, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> SemelError:
    details = grpc.aio.Metadata(("grpc-status-details-bin", trailer))
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), details, "why")
    return status.from_rpc_error(error, HERE)


@pytest.mark.parametrize("trailer", [b"\xff", b"\x0a", b"\x1a\x02\x0a\x05"])
def test_status_that_cannot_be_read_is_an_invalid_answer(trailer: bytes) -> None:
    error = failed(trailer)
    assert isinstance(error, InvalidResponseError)
    assert error.message.startswith(f"{HERE} answered with an error that cannot be read")


def test_error_info_that_cannot_be_read_is_an_invalid_answer() -> None:
    sent = status_pb2.Status(message="told")
    packed = sent.details.add()
    packed.Pack(error_details_pb2.ErrorInfo(reason="NETWORK_EXCEPTION", domain=status.DOMAIN))
    packed.value = b"\xff"
    assert isinstance(failed(sent.SerializeToString()), InvalidResponseError)


@pytest.mark.parametrize("code", ErrorCode)
def test_details_may_have_any_name(code: ErrorCode) -> None:
    details = {"message": "x", "self": "y", "": "z", "details": "\x1b[2J"}
    error = status.error_for(code, "told", details)
    again = type(error)(error.message, **error.details)
    assert again.details == details | {"details": "\\x1b[2J"}


def test_texts_of_servers_steer_no_terminal_and_have_a_bound() -> None:
    error = status.error_for(7, "\x1b[31mred\r\n" + "x" * 100_000, {})
    assert error.message.startswith("\\x1b[31mred\\r\\nxxx")
    assert error.message.endswith("… (100,010 characters)")
    assert len(error.message) < 2 * status.MESSAGE_MAX_CHARACTERS


@pytest.mark.parametrize("text", ["", "-1", "x", "9" * 5_000, str(1 << 63), "٣", "1.0", "²"])
def test_text_that_is_no_number_is_none(text: str) -> None:
    assert natural_number(text) is None


@pytest.mark.parametrize("number", [0, 7, (1 << 63) - 1])
def test_text_that_is_a_number_is_one(number: int) -> None:
    assert natural_number(str(number)) == number


def test_answer_over_the_limit_of_this_side_is_no_quota() -> None:
    text = "CLIENT: Received message larger than max (100 vs. 10)"
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), text)
    assert isinstance(status.from_rpc_error(error, HERE), InvalidResponseError)


# -- unary answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"\xff", b"\x2a\x05", bytes((1 << 20) + 1), b"\x2a\x00" * 110_000]
)
def test_unary_answer_that_cannot_be_read_names_address_and_rpc(data: bytes) -> None:
    error = parse(METADATA, data, HERE, BOUNDS)
    assert isinstance(error, InvalidResponseError)
    assert error.message.startswith(f"{HERE} answered Metadata: ")


def test_unary_answer_is_parsed() -> None:
    answer = cluster.MetadataResponse(cluster_id="c")
    assert parse(METADATA, answer.SerializeToString(), HERE, BOUNDS) == answer


@pytest.mark.parametrize(
    "offer",
    [
        OpenFramesResponse(port=-1),
        OpenFramesResponse(port=70_000),
        OpenFramesResponse(port=1, host="a b"),
        OpenFramesResponse(port=1, host="a\0"),
        OpenFramesResponse(port=1, host="a" * 300),
        OpenFramesResponse(port=1, ticket=bytes(5_000)),
    ],
    ids=["below 0", "over 65535", "space", "NUL", "too long", "ticket"],
)
def test_offer_of_frames_where_nothing_can_be_is_refused(offer: OpenFramesResponse) -> None:
    with pytest.raises(InvalidResponseError, match="answered OpenFrames with"):
        check_offer(offer, HERE)


# -- frames --------------------------------------------------------------------------------------


class FakePipe:
    """Keeps what is done to it. Implements ``Pipe``."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def write(self, parts: Sequence[bytes]) -> bool:
        self.done.append(f"write {sum(map(len, parts))}")
        return True

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")


class Calling:
    """A stream with one call under way, whose correlation id is 1."""

    def __init__(self) -> None:
        self.pipe = FakePipe()
        self.stream = FrameStream(self._open, STREAMS[BROKER], HERE, BOUNDS)
        self.call = asyncio.create_task(
            self.stream.call(FETCH, broker.FetchRequest(), timeout_ms=60_000)
        )

    async def _open(self, _: PipeUser) -> Opened:
        return Opened(self.pipe, max_idle_ms=0)

    async def answered(self, *messages: bytes) -> SemelError:
        """Receive messages, and return the error of the call."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for message in messages:
            self.stream.received(message)
        with pytest.raises(SemelError) as caught:
            await self.call
        return caught.value


def frames(*of: broker.ResponseFrame) -> bytes:
    return broker.StreamResponse(frames=of).SerializeToString()


def frame(correlation_id: int, field: str = "fetch") -> broker.ResponseFrame:
    made = broker.ResponseFrame(correlation_id=correlation_id)
    getattr(made, field).SetInParent()
    return made


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (lambda: b"\xff\xff", "answered Stream: its 2 bytes are no StreamResponse"),
        (lambda: b"\x0a\x00" * 110_000, "the message has more than 100,000 elements"),
        (lambda: frames(frame(0)), "a frame with correlation id 0, and the last frame sent has 1"),
        (lambda: frames(frame(2)), "a frame with correlation id 2"),
        (lambda: frames(frame(2**64 - 1)), "a frame with correlation id 18446744073709551615"),
    ],
)
async def test_message_that_answers_nothing_breaks_the_stream(
    message: Callable[[], bytes], text: str
) -> None:
    calling = Calling()
    error = await calling.answered(message())
    assert isinstance(error, InvalidResponseError)
    assert text in error.message
    assert calling.stream.broken
    assert calling.pipe.done[-1] == "abort"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (frame(1, "produce"), f"{HERE} answered Fetch with produce"),
        (broker.ResponseFrame(correlation_id=1), f"{HERE} answered Fetch with no response"),
    ],
)
async def test_frame_with_another_answer_fails_its_call_alone(
    answer: broker.ResponseFrame, text: str
) -> None:
    calling = Calling()
    error = await calling.answered(frames(answer))
    assert (type(error), error.message) == (InvalidResponseError, text)
    assert not calling.stream.broken
    await calling.stream.close()


async def test_second_answer_to_a_call_is_passed_over() -> None:
    calling = Calling()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calling.stream.received(frames(frame(1), frame(1)))
    assert await calling.call == broker.FetchResponse()
    calling.stream.received(frames(frame(1)))
    assert not calling.stream.broken
    await calling.stream.close()


async def test_reading_pauses_while_frames_wait_to_be_handed_out() -> None:
    calling = Calling()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calling.stream.received(frames(*[frame(1)] * (ARRIVED_MAX + 100)))
    assert calling.pipe.done[-1] == "pause"
    assert await calling.call == broker.FetchResponse()
    for _ in range(ARRIVED_MAX):
        await asyncio.sleep(0)
    assert calling.pipe.done[-1] == "resume"
    await calling.stream.close()


async def test_pipe_that_fails_by_a_defect_leaves_no_call_waiting() -> None:
    async def broken(_: PipeUser) -> Opened:
        raise ZeroDivisionError

    stream = FrameStream(broken, STREAMS[BROKER], HERE, BOUNDS)
    with pytest.raises(NetworkExceptionError, match="no connection to"):
        await stream.call(PRODUCE, broker.ProduceRequest(), timeout_ms=60_000)
    assert stream.broken
    assert isinstance(stream._opening.exception(), ZeroDivisionError)
