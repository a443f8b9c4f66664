"""Server spans: each request, unary or in a frame, is one in the trace of its caller.

A request without a trace context begins a trace of its own, if it is one that somebody waits for.
A request with markers has the contexts of their transactions as well, and is a span in each of
these traces; what a marker is, the span above it says, which is the coordinator's.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from google.protobuf.message import Message
from msgspec.structs import replace
from opentelemetry.trace import Span, SpanKind, Tracer

from semel.common.v1.participants_pb2 import WriteTxnMarkersRequest
from semel_common import tracing
from semel_common.errors import SemelError
from semel_common.roots import Roots
from semel_common.wire import methods, rpc_spans
from semel_runtime.server.answer import answer
from semel_runtime.server.calls import Call, Endpoint

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

        What is not recorded goes straight on: it is not even awaited here.
        """
        # Who traces says this of most requests: so it is looked at first.
        if call.traceparent == tracing.NOT_RECORDED:
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
            # What is stored of the call, and done later, joins the trace that begins here.
            call = replace(call, traceparent=tracing.write(spans[0].get_span_context()))
        try:
            with tracing.within(spans):
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
            parent = tracing.sampled(traceparent)
            if parent is None:
                return ()
            context = tracing.below(parent)
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
                context=tracing.below(parent),
                kind=SpanKind.SERVER,
                attributes=rpc_spans.call_attributes(endpoint.method),
            )
            for marker in request.markers
            if (given := marker.traceparent) and (parent := tracing.sampled(given)) is not None
        ]
