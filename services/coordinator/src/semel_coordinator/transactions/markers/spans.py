"""Spans of the fan-out, in the traces of its transactions, from their stored trace contexts.

One request carries the markers of many transactions: it is a client span in each of their traces,
and its markers carry the contexts of these spans on. After a restart the contexts come from the
journal, so a resumed marker joins the trace in which it began.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from google.protobuf.message import Message
from opentelemetry.trace import Span, SpanContext, SpanKind, Tracer

from semel_common.errors import SemelError
from semel_common.ids import transaction_log_partition_of
from semel_common.telemetry import trace_context
from semel_common.wire import rpc_spans
from semel_common.wire.methods import Method
from semel_coordinator.transactions.machine import DecidedTransaction, TransactionKey
from semel_coordinator.transactions.markers.marker import Marker, Target

COMPLETE = "complete transaction"


class MarkerSpans:
    """Makes the spans of one coordinator's markers."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self.pending: dict[TransactionKey, SpanContext] = {}
        """Transactions that are recorded, and decided, and not complete: mostly none."""

    def decided(self, decided: DecidedTransaction) -> None:
        """Remember a transaction that is traced until it is complete."""
        context = trace_context.sampled(decided.traceparent)
        if context is not None:
            self.pending[decided.key] = context

    def left(self, partition: int) -> None:
        """Forget the transactions of a partition that is led elsewhere now."""
        for key in list(self.pending):
            if transaction_log_partition_of(key.producer_id) == partition:
                del self.pending[key]

    @contextmanager
    def sending(
        self,
        method: Method[Message, Message],
        address: str,
        target: Target,
        batch: Sequence[Marker],
    ) -> Iterator[tuple[Sequence[Marker], str]]:
        """Let a block send a batch; yields it with the contexts that are to go with it.

        One of them is for the request itself: without any, participants look for none in its
        markers.
        """
        spans: list[Span] = []
        sent = []
        for marker in batch:
            parent = trace_context.sampled(marker.traceparent)
            if parent is not None:
                spans.append(self._begin(method, address, target, marker, parent, len(batch)))
                own = trace_context.write(spans[-1].get_span_context())
                sent.append(marker._replace(traceparent=own))
            else:
                sent.append(marker)
        _link(spans)
        try:
            yield sent, trace_context.write(spans[0].get_span_context()) if spans else ""
        except SemelError as error:
            for span in spans:
                rpc_spans.failed(span, error)
            raise
        except asyncio.CancelledError:
            for span in spans:
                rpc_spans.cancelled(span)
            raise
        else:
            for span in spans:
                rpc_spans.succeeded(span)
        finally:
            for span in spans:
                span.end()

    @contextmanager
    def completing(self, keys: Sequence[TransactionKey]) -> Iterator[None]:
        """Let a block complete transactions whose last marker is acknowledged."""
        spans = []
        for key in keys:
            parent = self.pending.pop(key, None)
            if parent is not None:
                spans.append(
                    self._tracer.start_span(
                        COMPLETE,
                        context=trace_context.below(parent),
                        kind=SpanKind.INTERNAL,
                    )
                )
        if not spans:
            yield
            return
        try:
            with trace_context.within(spans):
                yield
        finally:
            for span in spans:
                span.end()

    def _begin(
        self,
        method: Method[Message, Message],
        address: str,
        target: Target,
        marker: Marker,
        parent: SpanContext,
        batch_size: int,
    ) -> Span:
        attributes: rpc_spans.Attributes = {
            "rpc.system.name": "grpc",
            "rpc.method": rpc_spans.span_name(method),
            "semel.instance": _instance(target),
            "semel.result": "COMMIT" if marker.commit else "ABORT",
            "semel.participants": len(marker.participants),
            "semel.markers": batch_size,
            "semel.producer_id": marker.key.producer_id,
            "semel.producer_epoch": marker.key.producer_epoch,
        }
        return self._tracer.start_span(
            rpc_spans.span_name(method),
            context=trace_context.below(parent),
            kind=SpanKind.CLIENT,
            attributes=attributes | rpc_spans.address_attributes(address),
        )


def _link(spans: Sequence[Span]) -> None:
    """Tie spans of one request to one another."""
    for span in spans:
        for other in spans[: trace_context.SHARED_LINKS_MAX]:
            if other is not span:
                span.add_link(other.get_span_context())


def _instance(target: Target) -> str:
    return f"{target.role.name.lower().replace('_', '-')}-{target.instance_id}"
