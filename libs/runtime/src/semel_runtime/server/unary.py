"""Unary calls: every handler as a method that any gRPC client can call.

To gRPC, these methods take a stream of messages: on the wire, a call with one message is the same.
So the caller is let in by the metadata before its message is read. Of a caller without a proof,
gRPC holds no more than its window for one stream.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import groupby
from typing import NamedTuple, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from semel_common.errors import InvalidRequestError, RequestTimedOutError, SemelError
from semel_common.telemetry.trace_context import TRACEPARENT
from semel_common.wire.messages.request_scan import check_request
from semel_runtime.authentication.listener_gate import Caller, Gate
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call, Endpoint, Handlers, Written
from semel_runtime.server.handler_call import Answer
from semel_runtime.server.item_errors import raise_first, wants_status
from semel_runtime.server.refusals import refuse

UnaryContext: TypeAlias = "grpc.aio.ServicerContext[bytes, Message]"


class UnaryEdge(NamedTuple):
    """What stands between a listener's unary calls and their handlers."""

    gate: Gate
    answer: Answer
    in_flight: Callable[[Endpoint[Message, Message], Origin], AbstractContextManager[None]]
    """Counts a call for its caller; raises ThrottlingQuotaExceededError without room."""
    arrival_timeout_s: float
    """How long the message of a call that was let in may take to arrive."""


def unary_handlers(
    handlers: Handlers, edge: UnaryEdge
) -> dict[str, dict[str, "grpc.RpcMethodHandler[bytes, Message]"]]:
    """Return gRPC's method handlers by service and method name."""
    ordered = sorted(handlers, key=lambda endpoint: endpoint.method.service)
    return {
        service: {endpoint.method.name: _method_handler(endpoint, edge) for endpoint in endpoints}
        for service, endpoints in groupby(ordered, key=lambda endpoint: endpoint.method.service)
    }


def traceparent_of(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the W3C trace context of a call's metadata, or an empty string."""
    for key, value in metadata:
        if key == TRACEPARENT:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return ""


def _deadline(remaining_s: float | None) -> float | None:
    """Turn gRPC's time remaining, None without a deadline, into event-loop time."""
    return None if remaining_s is None else asyncio.get_running_loop().time() + remaining_s


async def _admitted(endpoint: Endpoint[Message, Message], gate: Gate, caller: Caller) -> Origin:
    """Return where a call comes from; a refusal counts as the method's."""
    try:
        return await gate.admit(caller)
    except SemelError as error:
        _count_refusal(endpoint, error)
        raise


def _parsed(endpoint: Endpoint[Message, Message], message: bytes) -> Message:
    """Return the request that a message is; raises InvalidRequestError."""
    request = endpoint.method.request
    try:
        check_request(request, message)
        return request.FromString(message)
    except InvalidRequestError as error:
        _count_refusal(endpoint, error)
        raise
    except DecodeError as error:
        refusal = InvalidRequestError(
            f"the message of {len(message):,} bytes is no {request.DESCRIPTOR.name}"
        )
        _count_refusal(endpoint, refusal)
        raise refusal from error


def _count_refusal(endpoint: Endpoint[Message, Message], error: SemelError) -> None:
    if endpoint.metrics is not None:
        endpoint.metrics.refused(error.code.name)


def _method_handler(
    endpoint: Endpoint[Message, Message], edge: UnaryEdge
) -> "grpc.RpcMethodHandler[bytes, Message]":
    async def behaviour(_requests: object, context: UnaryContext) -> Message | None:
        written = Written()
        try:
            return await _answered(endpoint, edge, context, written)
        except SemelError as error:
            refusal = error.as_value()
        finally:
            _settle_once_sent(written)
        # Here, where no exception is handled: gRPC's own would be kept with the one in hand.
        await refuse(context, refusal)
        return None

    return grpc.stream_unary_rpc_method_handler(
        behaviour,
        response_serializer=endpoint.method.response.SerializeToString,
    )


async def _answered(
    endpoint: Endpoint[Message, Message],
    edge: UnaryEdge,
    context: UnaryContext,
    written: Written,
) -> Message:
    """Return the answer to a call; raises SemelError."""
    call = Call(
        origin=await _admitted(endpoint, edge.gate, context),
        written=written,
        traceparent=traceparent_of(context.invocation_metadata() or ()),
        deadline=_deadline(context.time_remaining()),
    )
    with edge.in_flight(endpoint, call.origin):
        message = await _message(endpoint, context, edge.arrival_timeout_s)
        response = await edge.answer(endpoint, _parsed(endpoint, message), call)
    if wants_status(context.invocation_metadata() or ()):
        raise_first(response)
    return response


async def _message(
    endpoint: Endpoint[Message, Message], context: UnaryContext, timeout_s: float
) -> bytes:
    """Return the message of a call; a second one is never read. Raises RequestTimedOutError."""
    try:
        async with asyncio.timeout(timeout_s):
            message: object = await context.read()
    except TimeoutError:
        refusal = RequestTimedOutError(
            f"the message of {endpoint.method.name} did not arrive in {timeout_s:g} s"
        )
        _count_refusal(endpoint, refusal)
        raise refusal from None
    if isinstance(message, bytes):
        return message
    missing = InvalidRequestError(f"{endpoint.method.name} was called without a message")
    _count_refusal(endpoint, missing)
    raise missing


def _settle_once_sent(written: Written) -> None:
    """Settle what waits for the answer when gRPC's task for the call has ended.

    A callback of the context would do the same, and keep the call until the garbage collector runs.
    """
    task = asyncio.current_task()
    if written.is_awaited and task is not None:
        task.add_done_callback(lambda _: written.settle())
