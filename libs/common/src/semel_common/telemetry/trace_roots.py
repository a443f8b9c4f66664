"""Spans that may begin a trace: whether it is recorded is found out before a span is made.

A sampler by ratio looks at the id of a trace, and at nothing else. So the id is drawn first: where
it falls into the share that is dropped, OpenTelemetry's SDK is not called at all, which would make
a span of it that records nothing. Where it does not, the SDK makes the span with this id, and asks
its sampler as ever. With any other sampler, it is always asked.
"""

from collections.abc import Mapping
from copy import copy
from typing import Protocol

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer

from semel_common.telemetry import trace_context

_LOW_BITS = (1 << 64) - 1
"""The part of a trace id that samplers by ratio look at."""


class Roots:
    """Begins the spans of one tracer, in one thread."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._ids: _DrawnIds | None = None
        self._bound = _bound(tracer)
        """Where the low bits of a trace id begin to be dropped; None: only the SDK knows."""
        if self._bound is not None:
            self._tracer = copy(tracer)
            self._ids = _DrawnIds(tracer.id_generator)  # type: ignore[attr-defined]  # the SDK's
            self._tracer.id_generator = self._ids  # type: ignore[attr-defined]  # as above

    def begin(
        self,
        name: str,
        *,
        kind: SpanKind,
        context: Context | None = None,
        attributes: Mapping[str, str | int | bool] | None = None,
    ) -> Span | None:
        """Begin a span below ``context``, else below the span of now, else a trace.

        None: it is not recorded.
        """
        if self._drops(context):
            return None
        span = self._tracer.start_span(name, context=context, kind=kind, attributes=attributes)
        return span if span.is_recording() else None

    def _drops(self, context: Context | None) -> bool:
        if self._ids is None or self._bound is None:
            return False
        if context is not None or not trace_context.is_nowhere():
            return False
        return self._ids.draw() & _LOW_BITS >= self._bound


class _Ids(Protocol):
    """What the SDK takes ids from."""

    def generate_trace_id(self) -> int: ...

    def generate_span_id(self) -> int: ...

    def is_trace_id_random(self) -> bool: ...


class _DrawnIds:
    """Ids of another generator, of which the next trace's can be seen before."""

    def __init__(self, inner: _Ids) -> None:
        self._inner = inner
        self._drawn: int | None = None

    def draw(self) -> int:
        """Draw the id of the trace that begins next."""
        self._drawn = self._inner.generate_trace_id()
        return self._drawn

    def generate_trace_id(self) -> int:
        """Return the id that was drawn; else another one."""
        drawn, self._drawn = self._drawn, None
        return self._inner.generate_trace_id() if drawn is None else drawn

    def generate_span_id(self) -> int:
        """Return what the other generator does."""
        return self._inner.generate_span_id()

    def is_trace_id_random(self) -> bool:
        """Return what the other generator does."""
        return self._inner.is_trace_id_random()


def _bound(tracer: Tracer) -> int | None:
    """Return what the sampler of an SDK by ratio compares trace ids with.

    A sampler that asks the parent first has it inside: there is no parent where it matters here.
    """
    sampler = getattr(tracer, "sampler", None)
    bound = getattr(getattr(sampler, "_root", sampler), "bound", None)
    return bound if isinstance(bound, int) and hasattr(tracer, "id_generator") else None
