"""A connector that makes each call a client span of the trace in which it happens.

Calls join a trace, and never begin one: what runs in the background, such as heartbeats, fetches
and metadata, would else be a trace of its own each time.
"""

import asyncio
from dataclasses import dataclass

from opentelemetry.trace import SpanKind, Tracer, get_current_span

from semel_common.errors import SemelError
from semel_common.tracing import links, spans_of_now, write
from semel_common.wire import rpc_spans
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.methods import Method, Req, Res


@dataclass(frozen=True, slots=True)
class TracedConnection:
    """Calls to one address, traced. Implements ``Connection``."""

    inner: Connection
    address: str
    tracer: Tracer

    async def call(
        self, method: Method[Req, Res], request: Req, *, timeout_ms: int, traceparent: str = ""
    ) -> Res:
        """Make one call; see ``Connection.call``."""
        context = get_current_span().get_span_context()
        if traceparent or not context.is_valid:
            return await self.inner.call(
                method, request, timeout_ms=timeout_ms, traceparent=traceparent
            )
        if not context.trace_flags.sampled:
            return await self.inner.call(
                method, request, timeout_ms=timeout_ms, traceparent=write(context)
            )
        return await self._traced(method, request, timeout_ms)

    async def _traced(self, method: Method[Req, Res], request: Req, timeout_ms: int) -> Res:
        span = self.tracer.start_span(
            rpc_spans.span_name(method),
            kind=SpanKind.CLIENT,
            attributes=rpc_spans.request_attributes(method, request)
            | rpc_spans.address_attributes(self.address),
            links=links(span.get_span_context() for span in spans_of_now()[1:]),
        )
        traceparent = write(span.get_span_context())
        try:
            response = await self.inner.call(
                method, request, timeout_ms=timeout_ms, traceparent=traceparent
            )
        except SemelError as error:
            rpc_spans.failed(span, error)
            raise
        except asyncio.CancelledError:
            rpc_spans.cancelled(span)
            raise
        else:
            rpc_spans.succeeded(span)
            return response
        finally:
            span.end()


@dataclass(frozen=True, slots=True)
class TracedConnector:
    """Traced connections of another connector, which its owner closes. Implements ``Connector``."""

    inner: Connector
    tracer: Tracer

    def connect(self, address: str) -> TracedConnection:
        """Return the connection to an address; see ``Connector.connect``."""
        return TracedConnection(self.inner.connect(address), address, self.tracer)

    async def close(self) -> None:
        """Close every connection."""
        await self.inner.close()
