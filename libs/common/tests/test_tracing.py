"""Trace contexts as text: valid and invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, get_current_span

from semel_common.telemetry import trace_context

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@given(
    trace_id=st.integers(1, (1 << 128) - 1),
    span_id=st.integers(1, (1 << 64) - 1),
    flags=st.sampled_from((0, 1)),
)
def test_written_spans_are_read_again(trace_id: int, span_id: int, flags: int) -> None:
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    text = trace_context.write(context)
    assert len(text) == trace_context.TRACEPARENT_LENGTH
    assert trace_context.read(text) == context
    assert (trace_context.sampled(text) is not None) == bool(flags)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "of call",
        CONTEXT.upper(),
        CONTEXT[:-1],
        f"{CONTEXT}-00",
        f"ff{CONTEXT[2:]}",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        "x" * 10_000,
    ],
)
def test_a_malformed_context_is_ignored(text: str) -> None:
    assert trace_context.read(text) is None
    assert trace_context.sampled(text) is None


@given(st.text())
def test_any_text_is_either_a_context_or_none(text: str) -> None:
    assert trace_context.read(text) is None


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    assert trace_context.read(f"01{CONTEXT[2:]}") is not None


def test_links_are_distinct_and_bounded() -> None:
    def context(number: int) -> SpanContext:
        return SpanContext(1, number, is_remote=True)

    contexts = [context(n) for n in range(1, 300)]
    assert len(trace_context.links(contexts)) == trace_context.LINKS_MAX
    assert len(trace_context.links(contexts, maximum=3)) == 3
    assert len(trace_context.links([contexts[0]] * 3)) == 1


def test_what_is_started_outside_belongs_to_no_span() -> None:
    context = trace_context.read(CONTEXT)
    assert context is not None
    span = NonRecordingSpan(context)
    with trace_context.within((span,)):
        assert trace_context.spans_of_now() == (span,)
        assert get_current_span() is span
        with trace_context.outside():
            assert trace_context.spans_of_now() == ()
            assert not get_current_span().get_span_context().is_valid
        assert trace_context.spans_of_now() == (span,)
    assert trace_context.spans_of_now() == ()


@pytest.mark.parametrize("flags", [0, 1, 3], ids=["not", "sampled", "sampled, random id"])
def test_what_happens_is_recorded_if_the_span_of_now_is(flags: int) -> None:
    assert not trace_context.is_recorded()
    with trace_context.within((NonRecordingSpan(SpanContext(1, 2, False, TraceFlags(flags))),)):
        assert trace_context.is_recorded() is bool(flags & 1)
        with trace_context.outside():
            assert not trace_context.is_recorded()
