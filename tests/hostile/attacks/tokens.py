"""Tokens of odd shapes, tokens that expire while they are used, and streams beyond a share."""

import asyncio
import json
import time
from contextlib import AsyncExitStack

import grpc
from joserfc.jws import serialize_compact

from hostile.attack import Attack, Sent
from hostile.callers import AUDIENCE, ISSUER, KEY_ID, Caller
from hostile.lines import UNLIMITED, UnaryLine, frame_line, socket_line
from hostile.stage import TOPIC, Stage
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.frames_pb2 import FramesPreface, OpenFramesRequest
from semel_common.wire.methods import BROKER, FETCH, METADATA, OPEN_FRAMES
from semel_local.layout import Role
from semel_runtime.server.limits.server_limits import ServerLimits

_TIMES = ("1" + "0" * 400, "1e400", "NaN", "-Infinity", "-1", '"soon"', "true", "[1]", "{}", "null")
_LIFE_S = 2
_LEEWAY_S = 30
"""The clock skew that services allow, and some moments."""
_STREAMS = 1_040
"""More than the share of one caller."""


def _odd_tokens_of(stage: Stage) -> list[str]:
    head: dict[str, object] = {"alg": "ES256", "kid": KEY_ID}
    whole = {"sub": "admin", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3_600}
    payloads = ["[" * 3_000 + "]" * 3_000, "[]", "7", "{", json.dumps(whole | {"sub": ["admin"]})]
    for claim in ("exp", "nbf", "iat"):
        others = json.dumps({name: value for name, value in whole.items() if name != claim})
        payloads += [f'{others[:-1]}, "{claim}": {value}}}' for value in _TIMES]
    return [serialize_compact(head, payload, stage.issuer.key) for payload in payloads]


async def _odd_tokens(stage: Stage, sent: Sent) -> None:
    address, credentials = stage.target(Role.BROKER).address, stage.issuer.channel_credentials()
    async with grpc.aio.secure_channel(address, credentials, options=UNLIMITED) as channel:
        for token in _odd_tokens_of(stage):
            line = UnaryLine(channel, (("authorization", f"Bearer {token}"),))
            sent.add(await line.call(FETCH.path, b""), len(token))
    sent.expect("SASL_AUTHENTICATION_FAILED")


async def _outlived(stage: Stage, sent: Sent) -> None:
    """Open a stream with a token that expires, and park a Fetch in it for ten minutes."""
    address, credentials = stage.target(Role.BROKER).address, stage.issuer.channel_credentials()
    token = stage.issuer.token(Caller.WRITER.value, lives_s=_LIFE_S - _LEEWAY_S)
    async with grpc.aio.secure_channel(address, credentials, options=UNLIMITED) as channel:
        line = UnaryLine(channel, (("authorization", f"Bearer {token}"),))
        asked = OpenFramesRequest(service=BROKER).SerializeToString()
        result, answer = await line.answer(OPEN_FRAMES.path, asked)
    sent.add(result)
    offer = OPEN_FRAMES.response.FromString(answer)
    async with socket_line(stage, offer.host or address.rpartition(":")[0], offer.port) as frames:
        await frames.send(FramesPreface(ticket=offer.ticket).SerializeToString())
        fetch = broker.FetchRequest(
            partitions=[broker.FetchPartition(topic=TOPIC)], max_wait_ms=600_000, min_bytes=1
        )
        frame = broker.RequestFrame(correlation_id=1, fetch=fetch)
        await frames.send(broker.StreamRequest(frames=[frame]).SerializeToString())
        while await frames.receive(timeout_s=20.0) is not None:
            sent.add("answered")
        if not frames.reader.at_eof():
            sent.violations.append("a stream outlived its token by 20 s")
        sent.add("closed")


async def _beyond_the_share(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.BROKER).address
    async with AsyncExitStack() as stack:
        for _ in range(_STREAMS):
            try:
                await stack.enter_async_context(frame_line(stage, address, BROKER, Caller.WRITER))
            except PermissionError as error:
                sent.add(str(error))
            else:
                sent.add("OK")
    limits = ServerLimits()
    share = limits.streams_max * limits.principal_share_percent // 100
    if sent.results["OK"] > share:
        sent.violations.append(f"one caller got {sent.results['OK']} streams, not {share}")
    sent.expect("OK", "THROTTLING_QUOTA_EXCEEDED")


async def _long_poll(stage: Stage, sent: Sent) -> None:
    """Ask for the longest waits that a number can say, on as many calls as one connection has."""
    address, credentials = (
        stage.target(Role.COORDINATOR).address,
        stage.issuer.channel_credentials(),
    )
    request = METADATA.request(known_version=1 << 62, max_wait_ms=(1 << 31) - 1)
    async with grpc.aio.secure_channel(address, credentials, options=UNLIMITED) as channel:
        line = UnaryLine(channel, stage.issuer.metadata(Caller.WRITER))
        results = await asyncio.gather(
            *(
                line.call(METADATA.path, request.SerializeToString(), timeout_s=3.0)
                for _ in range(900)
            )
        )
    for result in results:
        sent.add(result)


ATTACKS = (
    Attack(
        name="odd-tokens",
        what="A client signs tokens whose times and claims have odd shapes.",
        rpc="Fetch",
        transport="unary",
        caller=Caller.NOBODY,
        run=_odd_tokens,
    ),
    Attack(
        name="outlived-token",
        what="A writer parks a Fetch in a stream whose token expires.",
        rpc="Fetch",
        transport="frames over a socket",
        caller=Caller.WRITER,
        run=_outlived,
    ),
    Attack(
        name="long-polls",
        what="A writer parks Metadata calls for as long as a number can say.",
        rpc="Metadata",
        transport="unary",
        caller=Caller.WRITER,
        run=_long_poll,
    ),
    Attack(
        name="streams-beyond-the-share",
        what="A writer opens more streams than its share.",
        rpc="OpenFrames",
        transport="frames over a socket",
        caller=Caller.WRITER,
        run=_beyond_the_share,
        quick=False,
    ),
)
