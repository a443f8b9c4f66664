"""Server spans: each request, unary or in a frame, is one in the trace of its caller.

A request without a trace context begins a trace of its own, if a caller waits for its answer.
A request with markers has the contexts of their transactions as well, and is a span in each of
these traces; the coordinator's span above it says which marker it is.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from google.protobuf.message import Message
from msgspec.structs import replace
from opentelemetry.trace import Span, SpanKind, Tracer

from semel.common.v1.participants_pb2 import WriteTxnMarkersRequest
from semel_common.errors import SemelError
from semel_common.telemetry import trace_context
from semel_common.telemetry.trace_roots import Roots
from semel_common.wire import methods, rpc_spans
from semel_runtime.server.calls import Call, Endpoint
from semel_runtime.server.handler_call import answer

_JOINING_ONLY = frozenset(
    method.path
    for method in (
        methods.CONSUMER_GROUP_HEARTBEAT,
        methods.FETCH,
        methods.FETCH_OFFSETS,
        methods.FIND_COORDINATOR,
        methods.INQUIRE_TRANSACTIONS,
        methods.KEEP_ALIVE_TXN,
        methods.LIST_OFFSETS,
        methods.METADATA,
        methods.OPEN_FRAMES,
        methods.REGISTER_INSTANCE,
    )
)
"""What clients and services ask in the background, again and again: never a trace of its own."""


class ServerSpans:
    """Makes the spans of one server."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._roots = Roots(tracer)

    def answer(
        self, endpoint: Endpoint[Message, Message], request: Message, call: Call
    ) -> Awaitable[Message]:
        """Do as ``answer`` does, within the spans of the request.

        An unrecorded request goes straight on, without an await here.
        """
        # A tracing caller says this of most requests, so this check comes first.
        if call.traceparent == trace_context.NOT_RECORDED:
            return answer(endpoint, request, call)
        spans = self._begin(endpoint, request, call.traceparent)
        if not spans:
            return answer(endpoint, request, call)
        return self._answer(spans, endpoint, request, call)

    async def _answer(
        self,
        spans: Sequence[Span],
        endpoint: Endpoint[Message, Message],
        request: Message,
        call: Call,
    ) -> Message:
        if not call.traceparent:
            # Later work for the call joins the trace that begins here.
            call = replace(call, traceparent=trace_context.write(spans[0].get_span_context()))
        try:
            with trace_context.within(spans):
                response = await answer(endpoint, request, call)
        except SemelError as error:
            for span in spans:
                rpc_spans.failed(span, error, server=True)
            raise
        except asyncio.CancelledError:
            for span in spans:
                rpc_spans.cancelled(span)
            raise
        else:
            for span in spans:
                rpc_spans.succeeded(span)
            return response
        finally:
            for span in spans:
                span.end()

    def _begin(
        self, endpoint: Endpoint[Message, Message], request: Message, traceparent: str
    ) -> Sequence[Span]:
        """Return the recorded spans of a request; none if it is in no trace that is recorded."""
        if isinstance(request, WriteTxnMarkersRequest):
            return self._of_markers(endpoint, request)
        if traceparent:
            parent = trace_context.sampled(traceparent)
            if parent is None:
                return ()
            context = trace_context.below(parent)
        elif endpoint.method.path in _JOINING_ONLY:
            return ()
        else:
            context = None
        span = self._roots.begin(
            rpc_spans.span_name(endpoint.method),
            context=context,
            kind=SpanKind.SERVER,
            attributes=rpc_spans.request_attributes(endpoint.method, request),
        )
        return () if span is None else (span,)

    def _of_markers(
        self, endpoint: Endpoint[Message, Message], request: WriteTxnMarkersRequest
    ) -> Sequence[Span]:
        return [
            self._tracer.start_span(
                rpc_spans.span_name(endpoint.method),
                context=trace_context.below(parent),
                kind=SpanKind.SERVER,
                attributes=rpc_spans.call_attributes(endpoint.method),
            )
            for marker in request.markers
            if (given := marker.traceparent)
            and (parent := trace_context.sampled(given)) is not None
        ]
