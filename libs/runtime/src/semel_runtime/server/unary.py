"""Unary calls: every handler as a method that any gRPC client can call."""

import asyncio
from collections.abc import Iterable
from itertools import groupby

import grpc
from google.protobuf.message import Message
from grpc_status import rpc_status

from semel_common.errors import SemelError
from semel_common.tracing import TRACEPARENT
from semel_common.wire import status
from semel_runtime.server.answer import Answer
from semel_runtime.server.calls import Call, Endpoint, Handlers, Written
from semel_runtime.server.error_status import raise_first, wants_status
from semel_runtime.server.gate import Caller, Gate
from semel_runtime.server.principal import Origin


def unary_handlers(
    handlers: Handlers, gate: Gate, answer: Answer
) -> dict[str, dict[str, "grpc.RpcMethodHandler[Message, Message]"]]:
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
        if endpoint.metrics is not None:
            endpoint.metrics.refused(error.code.name)
        raise


def _method_handler(
    endpoint: Endpoint[Message, Message], gate: Gate, answer: Answer
) -> "grpc.RpcMethodHandler[Message, Message]":
    async def behaviour(
        request: Message, context: "grpc.aio.ServicerContext[Message, Message]"
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
            response = await answer(endpoint, request, call)
            if wants_status(metadata):
                raise_first(response)
        except SemelError as error:
            await context.abort_with_status(rpc_status.to_status(status.to_status(error)))
            raise
        return response

    return grpc.unary_unary_rpc_method_handler(
        behaviour,
        request_deserializer=endpoint.method.request.FromString,
        response_serializer=endpoint.method.response.SerializeToString,
    )
