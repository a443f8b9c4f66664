"""A connector that makes each call a client span of the trace in which it happens.

Calls join a trace, and never begin one: what runs in the background, such as heartbeats, fetches
and metadata, would else be a trace of its own each time.
"""

import asyncio
from collections.abc import Coroutine

from opentelemetry.trace import SpanKind, Tracer

from semel_common.errors import SemelError
from semel_common.telemetry.trace_context import (
    NOT_RECORDED,
    is_recorded,
    links,
    spans_of_now,
    write,
)
from semel_common.wire import rpc_spans
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import Method, Req, Res


class TracedConnection:
    """Calls to one address, traced. Implements ``Connection``."""

    __slots__ = ("_address", "_inner", "_tracer")

    def __init__(self, inner: Connection, address: str, tracer: Tracer) -> None:
        self._inner = inner
        self._address = address
        self._tracer = tracer

    def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Coroutine[None, None, Res]:
        """Make one call; see ``Connection.call``.

        An unrecorded call goes straight on, without an await here.
        """
        if is_recorded() and not traceparent:
            return self._traced(method, request, timeout_ms, cluster_id)
        return self._inner.call(
            method,
            request,
            timeout_ms=timeout_ms,
            traceparent=traceparent or NOT_RECORDED,
            cluster_id=cluster_id,
        )

    async def _traced(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        timeout_ms: int,
        cluster_id: str,
    ) -> Res:
        span = self._tracer.start_span(
            rpc_spans.span_name(method),
            kind=SpanKind.CLIENT,
            attributes=rpc_spans.call_attributes(method)
            | rpc_spans.address_attributes(self._address),
            links=links(span.get_span_context() for span in spans_of_now()[1:]),
        )
        traceparent = write(span.get_span_context())
        try:
            response = await self._inner.call(
                method,
                request,
                timeout_ms=timeout_ms,
                traceparent=traceparent,
                cluster_id=cluster_id,
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


class TracedConnector:
    """Traced connections of another connector, which its owner closes. Implements ``Connector``."""

    def __init__(self, inner: Connector, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer
        self._connections: dict[str, TracedConnection] = {}

    def connect(self, address: str) -> TracedConnection:
        """Return the connection to an address; see ``Connector.connect``."""
        connection = self._connections.get(address)
        if connection is None:
            inner = self._inner.connect(address)
            connection = self._connections[address] = TracedConnection(inner, address, self._tracer)
        return connection

    async def close(self) -> None:
        """Close every connection."""
        self._connections.clear()
        await self._inner.close()
