"""Unary calls: every handler as a method that any gRPC client can call.

What was sent is parsed once its caller is let in: it may make a message of many times its size.
"""

import asyncio
from collections.abc import Iterable
from itertools import groupby

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_status import rpc_status

from semel_common.errors import InvalidRequestError, SemelError
from semel_common.tracing import TRACEPARENT
from semel_common.wire import status
from semel_runtime.server.answer import Answer
from semel_runtime.server.calls import Call, Endpoint, Handlers, Written
from semel_runtime.server.error_status import raise_first, wants_status
from semel_runtime.server.gate import Caller, Gate
from semel_runtime.server.principal import Origin


def unary_handlers(
    handlers: Handlers, gate: Gate, answer: Answer
) -> dict[str, dict[str, "grpc.RpcMethodHandler[bytes, Message]"]]:
    """Return gRPC's method handlers by service and method name."""
    ordered = sorted(handlers, key=lambda endpoint: endpoint.method.service)
    return {
        service: {
            endpoint.method.name: _method_handler(endpoint, gate, answer) for endpoint in endpoints
        }
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
    try:
        return endpoint.method.request.FromString(message)
    except DecodeError as error:
        name = endpoint.method.request.DESCRIPTOR.name
        refusal = InvalidRequestError(f"the message of {len(message)} bytes is no {name}")
        _count_refusal(endpoint, refusal)
        raise refusal from error


def _count_refusal(endpoint: Endpoint[Message, Message], error: SemelError) -> None:
    if endpoint.metrics is not None:
        endpoint.metrics.refused(error.code.name)


def _method_handler(
    endpoint: Endpoint[Message, Message], gate: Gate, answer: Answer
) -> "grpc.RpcMethodHandler[bytes, Message]":
    async def behaviour(
        message: bytes, context: "grpc.aio.ServicerContext[bytes, Message]"
    ) -> Message:
        written = Written()
        context.add_done_callback(lambda _: written.settle())  # type: ignore[arg-type]  # stubs want a class
        metadata = tuple(context.invocation_metadata() or ())
        try:
            call = Call(
                origin=await _admitted(endpoint, gate, context),
                written=written,
                traceparent=traceparent_of(metadata),
                deadline=_deadline(context.time_remaining()),
            )
            response = await answer(endpoint, _parsed(endpoint, message), call)
            if wants_status(metadata):
                raise_first(response)
        except SemelError as error:
            await context.abort_with_status(rpc_status.to_status(status.to_status(error)))
            raise
        return response

    return grpc.unary_unary_rpc_method_handler(
        behaviour,
        response_serializer=endpoint.method.response.SerializeToString,
    )
