"""Hostile frames: streams of many requests, some of them changed, broken or repeated."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from random import Random
from typing import cast

from google.protobuf.message import DecodeError, Message

from fuzz.cluster import Cluster, Samples
from fuzz.mutation import broken, edited
from semel.broker.v1 import broker_pb2
from semel.common.v1 import errors_pb2
from semel_common.wire.streams import STREAMS, ResponseFrame, StreamTypes, join
from semel_runtime.server.calls import Endpoint
from semel_runtime.server.frames import Arrived, FrameSession, StreamContext
from semel_runtime.server.limits import ServerLimits

MESSAGES_MAX = 8
FRAMES_MAX = 40
PATIENCE_S = 60.0
"""By then, in virtual time, whatever was sent is answered."""
MAX_WAIT_MS = 5_000
"""So long, at most, does a fetch ask to wait: what asks for days may wait for days."""
BROKEN = errors_pb2.ERROR_CODE_UNKNOWN_SERVER_ERROR
_LIMITS = ServerLimits(stream_in_flight_requests_max=64)


async def attack_stream(
    cluster: Cluster, samples: Samples, random: Random
) -> tuple[int, list[str]]:
    """Open a stream, fill it, close it; returns how many frames it took, and what broke."""
    service = random.choice(tuple(STREAMS))
    types = STREAMS[service]
    of_service = [each for each in samples if each[0].method.stream == service]
    handlers = cluster.handlers[of_service[0][0].address]
    endpoints: Mapping[str, Endpoint[Message, Message]] = {
        each.method.field: each for each in handlers if each.method.stream == service
    }
    requests = [
        arrived
        for _ in range(random.randint(1, MESSAGES_MAX))
        if (arrived := _message(types, of_service, random)) is not None
    ]
    context = _Context(types)
    session = FrameSession(types, endpoints, listener="default", limits=_LIMITS)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await session.serve(_sent(requests), cast("StreamContext", context))
    except TimeoutError:
        return len(context.answers), [f"a stream of {service} did not end"]
    asked = {frame.correlation_id for each in requests for frame in each.message.frames}
    broke = [
        f"{service} answered {frame.correlation_id} with {frame.error.message!r}"
        for frame in context.answers
        if frame.correlation_id not in asked or frame.error.code == BROKEN
    ]
    return sum(len(each.message.frames) for each in requests), broke


class _Context:
    """The writing side of a stream, of which a session knows only ``write``."""

    def __init__(self, types: StreamTypes) -> None:
        self._types = types
        self.answers: list[ResponseFrame] = []

    async def write(self, message: bytes) -> None:
        await asyncio.sleep(0)
        self.answers.extend(self._types.parse_response(message).frames)


async def _sent(requests: Sequence[Arrived]) -> AsyncIterator[Arrived]:
    for each in requests:
        yield each
        await asyncio.sleep(0)


def _message(types: StreamTypes, samples: Samples, random: Random) -> Arrived | None:
    """Make a message of many frames; None if nobody can read it any more."""
    frames = [_frame(types, samples, random) for _ in range(random.randint(1, FRAMES_MAX))]
    data = join(frames)
    if random.random() < 0.3:  # a broken one has all its frames broken
        data = broken(data, random)
    try:
        message = types.parse_request(data)
    except DecodeError:
        return None
    if isinstance(message, broker_pb2.StreamRequest):
        for frame in message.frames:
            if frame.HasField("fetch"):
                frame.fetch.max_wait_ms = min(frame.fetch.max_wait_ms, MAX_WAIT_MS)
    return Arrived(message, len(data))


def _frame(types: StreamTypes, samples: Samples, random: Random) -> bytes:
    of_method = random.choice(samples)
    sample = random.choice(of_method)
    parse = sample.method.request.FromString
    request = parse(sample.data)
    if random.random() < 0.7:  # most are changed
        request = edited(request, [parse(random.choice(of_method).data)], random)
    correlation_id = random.choice((random.randrange(FRAMES_MAX), random.getrandbits(64)))
    return types.write_request(
        correlation_id, random.choice((0, 1, 50)), sample.method.field, request
    )
