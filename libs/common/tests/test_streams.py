"""Frames are written piece by piece, and are the same as if protobuf had written them."""

import asyncio
from collections.abc import Sequence

import pytest

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.errors_pb2 import Error
from semel.common.v1.frames_pb2 import Cancel
from semel_common.wire import methods
from semel_common.wire.frames.stream_messages import STREAMS, join
from semel_common.wire.frames.write_queue import (
    FRAMES_PER_MESSAGE_MAX,
    MESSAGE_SIZE_SOFT_MAX_BYTES,
    Outbox,
)
from semel_common.wire.methods import BROKER

FRAMED = [
    var
    for var in vars(methods).values()
    if isinstance(var, methods.Method) and var.stream is not None
]


def request_of(size_bytes: int) -> broker.ProduceRequest:
    """A request of about that size."""
    return broker.ProduceRequest(transactional_id="x" * size_bytes)


@pytest.mark.parametrize("size_bytes", [0, 1, 100, 127, 128, 20_000, 3_000_000])
def test_a_request_frame_is_what_protobuf_would_write(size_bytes: int) -> None:
    types, request = STREAMS[BROKER], request_of(size_bytes)
    written = [
        piece for n in range(3) for piece in types.write_request(7 + n, 500, "produce", request)
    ]
    frames = [
        broker.RequestFrame(correlation_id=7 + n, timeout_ms=500, produce=request) for n in range(3)
    ]
    assert join(written) == broker.StreamRequest(frames=frames).SerializeToString()


@pytest.mark.parametrize("method", FRAMED, ids=lambda each: f"{each.stream} {each.name}")
def test_every_method_of_a_stream_has_a_field_in_its_frames(
    method: methods.Method[broker.ProduceRequest, broker.ProduceResponse],
) -> None:
    types = STREAMS[method.stream or ""]
    written = join(types.write_request(1, 2, method.field, method.request()))
    (request,) = types.parse_request(written).frames
    assert (request.WhichOneof("request"), request.timeout_ms) == (method.field, 2)
    written = types.write_response(1, method.field, method.response())
    (response,) = types.parse_response(written).frames
    assert (response.WhichOneof("response"), response.correlation_id) == (method.field, 1)


@pytest.mark.parametrize("stream", STREAMS)
def test_every_stream_carries_errors_and_cancels(stream: str) -> None:
    types = STREAMS[stream]
    (cancel,) = types.parse_request(join(types.write_request(1, 0, "cancel", Cancel()))).frames
    assert cancel.WhichOneof("request") == "cancel"
    written = types.write_response(1, "error", Error(message="no"))
    (refused,) = types.parse_response(written).frames
    assert refused.error.message == "no"


class Taken:
    """A pipe that notes what it is given, and takes it at once or not."""

    def __init__(self, *, at_once: bool) -> None:
        self.messages: list[list[bytes]] = []
        self._at_once = at_once

    def write(self, parts: Sequence[bytes]) -> bool:
        self.messages.append(list(parts))
        return self._at_once

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


async def test_what_has_queued_goes_out_together_up_to_a_size() -> None:
    sent: list[int] = []
    outbox, pipe = Outbox(sent.append), Taken(at_once=True)
    large = bytes(MESSAGE_SIZE_SOFT_MAX_BYTES)
    for frame in (b"1", b"2", large, b"3"):
        outbox.put(frame)
    outbox.open(pipe)
    for _ in range(4):
        await asyncio.sleep(0)
    assert pipe.messages == [[b"1", b"2"], [large], [b"3"]]
    assert sent == [2, 1, 1]


async def test_a_message_has_a_bounded_number_of_frames() -> None:
    outbox, pipe = Outbox(), Taken(at_once=True)
    for _ in range(FRAMES_PER_MESSAGE_MAX + 1):
        outbox.put(b"1")
    outbox.open(pipe)
    for _ in range(3):
        await asyncio.sleep(0)
    assert [len(message) for message in pipe.messages] == [FRAMES_PER_MESSAGE_MAX, 1]


async def test_a_frame_in_pieces_counts_as_one() -> None:
    sent: list[int] = []
    outbox, pipe = Outbox(sent.append), Taken(at_once=True)
    outbox.put(b"1", bytes(MESSAGE_SIZE_SOFT_MAX_BYTES))
    outbox.put(b"2")
    outbox.open(pipe)
    for _ in range(3):
        await asyncio.sleep(0)
    assert list(map(len, pipe.messages)) == [2, 1]
    assert sent == [1, 1]


async def test_nothing_is_written_before_the_last_message_is() -> None:
    sent: list[int] = []
    blocked: list[bool] = []
    outbox, pipe = Outbox(sent.append, lambda: blocked.append(True)), Taken(at_once=False)
    outbox.open(pipe)
    outbox.put(b"1")
    await asyncio.sleep(0)
    for frame in (b"2", b"3"):
        outbox.put(frame)
    await asyncio.sleep(0)
    assert (pipe.messages, sent, blocked) == ([[b"1"]], [], [True])
    outbox.written()
    await asyncio.sleep(0)
    assert (pipe.messages, sent) == ([[b"1"], [b"2", b"3"]], [1])
