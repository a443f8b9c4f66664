"""Hostile frames: streams of many requests, some of them changed, broken or repeated."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from google.protobuf.message import DecodeError, Message

from fuzz.cluster import Cluster, Samples
from fuzz.mutation import broken, edited
from semel.broker.v1 import broker_pb2
from semel.common.v1 import errors_pb2
from semel_common.errors import InvalidRequestError, NetworkExceptionError
from semel_common.wire.frames.stream_messages import (
    STREAMS,
    RefusedFrame,
    RequestFrame,
    ResponseFrame,
    StreamTypes,
    join,
)
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Endpoint
from semel_runtime.server.frames.frame_session import FrameSession
from semel_runtime.server.handler_call import answer
from semel_runtime.server.limits.caller_shares import Ledger
from semel_runtime.server.limits.server_limits import ServerLimits

MESSAGES_MAX = 8
FRAMES_MAX = 40
PATIENCE_S = 90.0
"""By then, in virtual time, every request is answered: a long poll ends after a minute."""
MAX_WAIT_MS = 5_000
"""The longest wait that a fetch asks for: a fetch that asks for days may wait for days."""
BROKEN = errors_pb2.ERROR_CODE_UNKNOWN_SERVER_ERROR
_LIMITS = ServerLimits(stream_in_flight_requests_max=64)


async def attack_stream(
    cluster: Cluster, samples: Samples, random: Random
) -> tuple[int, list[str]]:
    """Open a stream, fill it, close it; returns the number of frames it took, and the error."""
    service = random.choice(tuple(STREAMS))
    types = STREAMS[service]
    of_service = [sample for sample in samples if sample[0].method.stream == service]
    handlers = cluster.handlers[of_service[0][0].address]
    endpoints: Mapping[str, Endpoint[Message, Message]] = {
        handler.method.field: handler for handler in handlers if handler.method.stream == service
    }
    messages = [_message(types, of_service, random) for _ in range(random.randint(1, MESSAGES_MAX))]
    pipe = _Pipe(types, random)
    ended = asyncio.Event()
    origin = Origin(listener="default")
    session = FrameSession(
        types,
        endpoints,
        pipe,
        origin=origin,
        limits=_LIMITS,
        shares=Ledger(_LIMITS).of(origin),
        answer=answer,
        ended=lambda _: ended.set(),
    )
    pipe.session = session
    try:
        async with asyncio.timeout(PATIENCE_S):
            await _send(messages, session, pipe)
            await pipe.closed.wait()
    except TimeoutError:
        return len(pipe.answers), [f"a stream of {service} did not end"]
    session.lost(NetworkExceptionError("the client is gone"))
    await ended.wait()
    requests = _readable(messages, types)
    asked = {frame.correlation_id for request in requests for frame in request}
    broke = [
        f"{service} answered {frame.correlation_id} with {frame.error.message!r}"
        for frame in pipe.answers
        if frame.correlation_id not in asked or frame.error.code == BROKEN
    ]
    return sum(map(len, requests)), broke


class _Pipe:
    """What a session writes to: takes a message at once, or later."""

    def __init__(self, types: StreamTypes, random: Random) -> None:
        self._types = types
        self._random = random
        self.session: FrameSession | None = None
        self.answers: list[ResponseFrame] = []
        self.readable = asyncio.Event()
        self.readable.set()
        self.closed = asyncio.Event()

    def write(self, parts: Sequence[bytes]) -> bool:
        self.answers.extend(self._types.parse_response(b"".join(parts)).frames)
        at_once = self._random.random() < 0.5
        if not at_once:
            assert self.session is not None
            asyncio.get_running_loop().call_soon(self.session.written)
        return at_once

    def pause_reading(self) -> None:
        self.readable.clear()

    def resume_reading(self) -> None:
        self.readable.set()

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.closed.set()


async def _send(messages: Sequence[bytes], session: FrameSession, pipe: _Pipe) -> None:
    """Send messages as long as they are read; one that is none ends the stream."""
    for message in messages:
        await pipe.readable.wait()
        if pipe.closed.is_set():
            return
        session.received(message)
        await asyncio.sleep(0)
    session.finished()


def _readable(
    messages: Sequence[bytes], types: StreamTypes
) -> list[Sequence[RequestFrame | RefusedFrame]]:
    """Return the frames of the messages before the first that a service cannot read."""
    readable = []
    for message in messages:
        try:
            readable.append(types.read_requests(message))
        except (DecodeError, InvalidRequestError):
            break
    return readable


def _message(types: StreamTypes, samples: Samples, random: Random) -> bytes:
    """Make a message of many frames, perhaps one that a service cannot read."""
    data = join(_frame(types, samples, random) for _ in range(random.randint(1, FRAMES_MAX)))
    if random.random() < 0.3:  # a broken one has all its frames broken
        data = broken(data, random)
    try:
        message = types.parse_request(data)
    except DecodeError:
        return data
    if isinstance(message, broker_pb2.StreamRequest):
        for frame in message.frames:
            if frame.HasField("fetch"):
                frame.fetch.max_wait_ms = min(frame.fetch.max_wait_ms, MAX_WAIT_MS)
    return message.SerializeToString()


def _frame(types: StreamTypes, samples: Samples, random: Random) -> bytes:
    of_method = random.choice(samples)
    sample = random.choice(of_method)
    parse = sample.method.request.FromString
    request = parse(sample.data)
    if random.random() < 0.7:  # most are changed
        request = edited(request, [parse(random.choice(of_method).data)], random)
    correlation_id = random.choice((random.randrange(FRAMES_MAX), random.getrandbits(64)))
    return join(
        types.write_request(correlation_id, random.choice((0, 1, 50)), sample.method.field, request)
    )
