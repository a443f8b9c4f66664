"""Spans of a producer: one for its transaction, and below it one for each batch.

The span of a transaction begins with ``begin_transaction`` and ends with its outcome; everything
that is asked of the cluster for it is below it. Records carry the context of their batch's span in
the header ``traceparent``: so consumers find what wrote them. Without a transaction, a batch is
below what its first record was sent in, or begins a trace.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from opentelemetry.trace import (
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    Tracer,
    set_span_in_context,
    use_span,
)

from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from semel_common.telemetry import trace_context
from semel_common.telemetry.trace_roots import Roots

_NOTHING = nullcontext()


class ProducerSpans:
    """Makes the spans of one producer."""

    def __init__(self, tracer: Tracer, transactional_id: str | None) -> None:
        self._tracer = tracer
        self._roots = Roots(tracer)
        self._transactional_id = transactional_id or ""
        self.transaction: Span | None = None
        """If it is recorded."""
        self.ended: SpanContext | None = None
        """The transaction that has ended last, if it was recorded."""
        self.is_dropped = transactional_id is not None
        """Whether there is none, or one that is not recorded."""

    # -- a transaction --------------------------------------------------------------------------

    def begin(
        self, producer_id: int, producer_epoch: int, parent: SpanContext | None = None
    ) -> None:
        """Begin the span of a transaction: below ``parent``, else below the span of now."""
        if self.transaction is not None:
            self.end("UNKNOWN")
        context = None if parent is None else trace_context.below(parent)
        span = self._roots.begin("transaction", context=context, kind=SpanKind.INTERNAL)
        self.transaction = span
        self.is_dropped = span is None
        if span is None:
            return
        span.set_attributes(
            {
                "semel.transactional_id": self._transactional_id,
                "semel.producer_id": producer_id,
                "semel.producer_epoch": producer_epoch,
            }
        )

    def end(self, outcome: str | None, error: Exception | None = None) -> None:
        """End it, if there is one."""
        span, self.transaction = self.transaction, None
        self.ended = None if span is None else span.get_span_context()
        if span is None:
            return
        if outcome is not None:
            span.set_attribute("semel.outcome", str(outcome))
        if error is not None:
            span.set_status(StatusCode.ERROR, str(error))
        span.end()

    def active(self) -> AbstractContextManager[object]:
        """Let what is asked for in a block be below the transaction."""
        if self.transaction is None:
            return _NOTHING
        return use_span(self.transaction, record_exception=False, set_status_on_exception=False)

    def call(self, name: str) -> AbstractContextManager[object]:
        """Make a block a span of its own."""
        return self._tracer.start_as_current_span(
            name,
            attributes={"semel.transactional_id": self._transactional_id},
            record_exception=False,
        )

    # -- batches --------------------------------------------------------------------------------

    def sending(self, topic: str, batch: Batch) -> None:
        """Begin the span of a batch with its first record, unless all is dropped."""
        transaction = self.transaction
        batch.span = span = self._roots.begin(
            f"send {topic}",
            context=None if transaction is None else set_span_in_context(transaction),
            kind=SpanKind.PRODUCER,
        )
        if span is not None:
            span.set_attributes(
                {
                    "messaging.system": "semel",
                    "messaging.operation.name": "send",
                    "messaging.operation.type": "send",
                    "messaging.destination.name": topic,
                    "messaging.destination.partition.id": str(batch.topic_partition.partition),
                }
            )


def spans_of(request: Request) -> Sequence[Span]:
    """Return the spans of a request's batches: it is below the first, and linked to the others."""
    spans = []
    for batch in request.batches:
        if batch.span is not None:
            if batch.record_count > 1 and batch.span.is_recording():
                batch.span.set_attribute("messaging.batch.message_count", batch.record_count)
            spans.append(batch.span)
    return spans


def settled(batch: Batch) -> None:
    """End the span of a batch, which is stored or given up; of a cut one, with its first part."""
    span = batch.span
    if span is None or not span.is_recording():
        return
    if batch.attempts > 1:
        span.set_attribute("semel.attempts", batch.attempts)
    if batch.error is None:
        span.set_attribute("semel.base_offset", batch.base_offset)
    else:
        span.set_attribute("error.type", batch.error.code.name)
        span.set_status(StatusCode.ERROR, batch.error.message)
    span.end()


def begin(
    spans: ProducerSpans | None, manager: TransactionManager, parent: SpanContext | None = None
) -> None:
    """Begin the span of a transaction that has begun, if there are spans."""
    if spans is not None:
        spans.begin(manager.producer_id, manager.producer_epoch, parent)


def active(spans: ProducerSpans | None) -> AbstractContextManager[object]:
    """Do as ``ProducerSpans.active`` does, if there are spans."""
    return _NOTHING if spans is None or spans.transaction is None else spans.active()


def call(spans: ProducerSpans | None, name: str) -> AbstractContextManager[object]:
    """Do as ``ProducerSpans.call`` does, if there are spans."""
    return _NOTHING if spans is None else spans.call(name)


def ended(spans: ProducerSpans | None) -> SpanContext | None:
    """Return the transaction that has ended last, if there are spans and it was recorded."""
    return None if spans is None else spans.ended
