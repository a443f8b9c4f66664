"""Roots of traces: what is recorded is what OpenTelemetry's SDK alone would record."""

from random import Random

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    ParentBased,
    Sampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, Tracer

from semel_common.telemetry import trace_context
from semel_common.telemetry.trace_roots import Roots

COUNT = 400


class Seeded(IdGenerator):
    """Ids by chance, the same in each run; counts those of spans."""

    def __init__(self) -> None:
        self._random = Random(20261122)
        self.spans = 0

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128)

    def generate_span_id(self) -> int:
        self.spans += 1
        return self.spans


def a_tracer(sampler: Sampler, ids: IdGenerator | None = None) -> Tracer:
    provider = TracerProvider(sampler=sampler, id_generator=ids, shutdown_on_exit=False)
    return provider.get_tracer("test")


@pytest.mark.parametrize("rate", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("parent_based", [True, False])
def test_the_traces_recorded_are_those_of_the_sdk(rate: float, parent_based: bool) -> None:
    share = TraceIdRatioBased(rate)
    sampler = ParentBased(share) if parent_based else share
    alone = a_tracer(sampler, Seeded())
    of_sdk = [alone.start_span("order") for _ in range(COUNT)]
    ids = Seeded()
    roots = Roots(a_tracer(sampler, ids))
    begun = [roots.begin("order", kind=SpanKind.INTERNAL) for _ in range(COUNT)]
    recorded = [span.get_span_context().trace_id for span in begun if span is not None]
    assert recorded == [span.get_span_context().trace_id for span in of_sdk if span.is_recording()]
    assert ids.spans == len(recorded), "what is dropped makes no span"


@pytest.mark.parametrize(
    ("sampler", "is_recorded"),
    [(ALWAYS_ON, True), (ALWAYS_OFF, False), (ParentBased(ALWAYS_ON), True)],
)
def test_other_samplers_are_asked(sampler: Sampler, is_recorded: bool) -> None:
    span = Roots(a_tracer(sampler)).begin("order", kind=SpanKind.INTERNAL)
    assert (span is not None) is is_recorded


@pytest.mark.parametrize("flags", [0, 1])
def test_what_has_a_parent_goes_with_it_whatever_the_share_of_roots(flags: int) -> None:
    parent = SpanContext(1 << 64 | 7, 2, is_remote=True, trace_flags=TraceFlags(flags))
    roots = Roots(a_tracer(ParentBased(TraceIdRatioBased(1 - flags))))
    below = roots.begin("order", kind=SpanKind.INTERNAL, context=trace_context.below(parent))
    assert (below is not None) == bool(flags)
    with trace_context.within((NonRecordingSpan(parent),)):
        inside = roots.begin("order", kind=SpanKind.INTERNAL)
    assert (inside is not None) == bool(flags)
    if below is not None:
        assert below.get_span_context().trace_id == parent.trace_id


def test_the_tracer_of_others_keeps_its_ids() -> None:
    tracer = a_tracer(TraceIdRatioBased(0.5))
    before = tracer.id_generator  # type: ignore[attr-defined]  # the SDK's
    Roots(tracer)
    assert tracer.id_generator is before  # type: ignore[attr-defined]  # as above
