"""W3C trace contexts as text, and the current spans, for clients and services.

This module uses OpenTelemetry's API alone; an application that records spans installs an SDK. The
start of a trace decides whether the trace is recorded, and the decision goes with it as the sampled
flag of its ``traceparent``: nothing that joins a trace decides it again. Work that serves several
requests at once, such as a group commit, belongs to several traces; so there may be several spans
of now.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from itertools import islice

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    ProxyTracerProvider,
    Span,
    SpanContext,
    TraceFlags,
    Tracer,
    TracerProvider,
    get_current_span,
    get_tracer_provider,
    set_span_in_context,
)

TRACEPARENT = "traceparent"
"""Its name in gRPC's metadata, and in the headers of records."""
TRACEPARENT_LENGTH = 55
NOT_RECORDED = f"00-{'f' * 32}-{'f' * 16}-00"
"""The caller traces, and this call is in no recorded trace: the service begins no trace either."""
LINKS_MAX = 128
"""A span links to so many others, at most: as many as an SDK keeps."""
SHARED_LINKS_MAX = 8
"""The same of work that many share: each of them has a span of it, with links to the others."""

_FORM = re.compile("(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED_ENDS = frozenset("13579bdf")
_SPANS: ContextVar[tuple[Span, ...]] = ContextVar("semel_spans", default=())
_NOTHING = nullcontext()

spans_of_now: Callable[[], tuple[Span, ...]] = _SPANS.get
"""Return the recorded spans that what happens now belongs to: those of ``within``."""


def tracer_of(provider: TracerProvider | None, name: str) -> Tracer | None:
    """Return a tracer; None: no exporter takes spans.

    Without a provider, it is the global one's, if the application has set one by now.
    """
    if provider is None:
        provider = get_tracer_provider()
        if isinstance(provider, ProxyTracerProvider):
            return None
    return provider.get_tracer(name)


def read(traceparent: str) -> SpanContext | None:
    """Return the context that a text of the W3C form names; None for any other text."""
    match = _FORM.fullmatch(traceparent)
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None


def sampled(traceparent: str) -> SpanContext | None:
    """Return the context of a trace that is recorded; None for any other."""
    # Most traces are not recorded, where they are many: their last digit says so.
    return read(traceparent) if traceparent and traceparent[-1] in _SAMPLED_ENDS else None


def write(context: SpanContext) -> str:
    """Return the W3C form; the opposite of ``read``."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"


def below(parent: SpanContext) -> Context:
    """Return where a span begins as the child of another, which may be anywhere."""
    return set_span_in_context(NonRecordingSpan(parent), Context())


def links(to: Iterable[SpanContext], *, maximum: int = LINKS_MAX) -> list[Link]:
    """Return links to some contexts, each once, not too many."""
    distinct = {(context.trace_id, context.span_id): context for context in to}
    return [Link(context) for context in islice(distinct.values(), maximum)]


def is_recorded() -> bool:
    """Whether what happens now is in a trace that is recorded."""
    # Most calls are in no trace, and skip the look-up: an eighth of its cost.
    here = contexts.get_current()
    return bool(here) and bool(get_current_span(here).get_span_context().trace_flags & 1)


@contextmanager
def within(spans: Sequence[Span]) -> Iterator[None]:
    """Let what happens in the block belong to these spans; OpenTelemetry sees the first."""
    token = _SPANS.set(tuple(spans))
    attached = contexts.attach(set_span_in_context(spans[0]))
    try:
        yield
    finally:
        contexts.detach(attached)
        _SPANS.reset(token)


def is_nowhere() -> bool:
    """Whether what happens now is in no trace at all."""
    here = contexts.get_current()
    return not here or get_current_span(here) is INVALID_SPAN


def outside() -> AbstractContextManager[None]:
    """Let what is started in the block belong to no span: it outlives the one of now."""
    # Mostly there is none, and then nothing is to be hidden.
    return _NOTHING if is_nowhere() and not _SPANS.get() else _outside()


@contextmanager
def _outside() -> Iterator[None]:
    token = _SPANS.set(())
    attached = contexts.attach(set_span_in_context(INVALID_SPAN))
    try:
        yield
    finally:
        contexts.detach(attached)
        _SPANS.reset(token)
