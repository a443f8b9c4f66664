"""Spans of a consumer: its polls and the processing, linked to the spans of the writers.

Links, not parents, tie consumers to producers: one poll returns records of many traces.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Tracer

from aiosemel.types.consumer_records import ColumnBatch, ConsumerRecord
from semel_common.record_batches.headers import HeaderPairs
from semel_common.telemetry import trace_context

_NOTHING = nullcontext()


def links_of(records: Iterable[ConsumerRecord]) -> list[Link]:
    """Return links to the spans that wrote records, for a span of yours that processes them."""
    return trace_context.links(_writers(record.headers for record in records))


def polled(
    tracer: Tracer, group_id: str | None, batches: Sequence[ColumnBatch], began_ns: int
) -> None:
    """Make a span of a poll that has returned records."""
    topics = {batch.topic_partition.topic for batch in batches}
    span = _begin(tracer, "poll", SpanKind.CLIENT, topics, group_id, began_ns)
    if span.is_recording():
        span.set_attribute("messaging.batch.message_count", sum(map(len, batches)))
        for link in trace_context.links(
            _writers(pairs for batch in batches for pairs in batch.headers.values())
        ):
            span.add_link(link.context)
    span.end()


def processing(
    tracer: Tracer | None, records: Sequence[ConsumerRecord]
) -> AbstractContextManager[object]:
    """Make a block a span in which records are processed."""
    return _NOTHING if tracer is None else _processing(tracer, records)


@contextmanager
def _processing(tracer: Tracer, records: Sequence[ConsumerRecord]) -> Iterator[None]:
    topics = {record.topic for record in records}
    span = _begin(tracer, "process", SpanKind.CONSUMER, topics, None)
    if span.is_recording():
        span.set_attribute("messaging.batch.message_count", len(records))
        for link in links_of(records):
            span.add_link(link.context)
    try:
        with trace_context.within((span,)):
            yield
    finally:
        span.end()


def _begin(
    tracer: Tracer,
    operation: str,
    kind: SpanKind,
    topics: Iterable[str],
    group_id: str | None,
    began_ns: int | None = None,
) -> Span:
    names = sorted(topics)
    attributes = {
        "messaging.system": "semel",
        "messaging.operation.name": operation,
        "messaging.operation.type": "receive" if operation == "poll" else operation,
    }
    if group_id is not None:
        attributes["messaging.consumer.group.name"] = group_id
    if len(names) == 1:
        attributes["messaging.destination.name"] = names[0]
    name = f"{operation} {names[0]}" if len(names) == 1 else operation
    return tracer.start_span(name, kind=kind, attributes=attributes, start_time=began_ns)


def _writers(headers: Iterable[HeaderPairs]) -> Iterator[SpanContext]:
    """Yield the contexts that headers carry."""
    seen = set()
    for pairs in headers:
        for name, value in pairs:
            if name == trace_context.TRACEPARENT and value is not None and value not in seen:
                seen.add(value)
                context = trace_context.read(value.decode("ascii", "replace"))
                if context is not None:
                    yield context


def now_ns() -> int:
    """Return the time at which a span begins."""
    return time.time_ns()
