"""The trace of a joint transaction: its ids are made from the handle, so no program passes them on.

Owner and writers may be any number of processes that never meet, such as Spark's tasks and their
driver, in any attempt: all of them find the same trace, and whether it is recorded.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.trace import SpanContext, TraceFlags, Tracer, get_current_span

from aiosemel.types.joint_handle import JointHandle
from semel_common.telemetry import trace_context

_TRACE_ID_BYTES = 16
_SPAN_ID_BYTES = 8


def joint_parent(tracer: Tracer, handle: JointHandle) -> SpanContext:
    """Return what all spans of a joint transaction are below.

    The sampler of an SDK decides by the trace id, so each process decides the same; without a
    sampler, the trace is recorded.
    """
    name = (handle.transactional_id, str(handle.txn_version), handle.owner, handle.run)
    digest = hashlib.sha256("\0".join(name).encode()).digest()
    trace_id = int.from_bytes(digest[:_TRACE_ID_BYTES])
    span_id = int.from_bytes(digest[_TRACE_ID_BYTES : _TRACE_ID_BYTES + _SPAN_ID_BYTES])
    sampler = getattr(tracer, "sampler", None)
    is_sampled = (
        sampler is None
        or sampler.should_sample(None, trace_id, "joint transaction").decision.is_sampled()
    )
    return SpanContext(
        trace_id,
        span_id,
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT),
    )


@contextmanager
def joint_span(tracer: Tracer | None, name: str, handle: JointHandle) -> Iterator[None]:
    """Make a block a span of a joint transaction, linked to the span of now."""
    if tracer is None:
        yield
        return
    caller = get_current_span().get_span_context()
    with tracer.start_as_current_span(
        name,
        context=trace_context.below(joint_parent(tracer, handle)),
        attributes={
            "semel.transactional_id": handle.transactional_id,
            "semel.txn_version": handle.txn_version,
        },
        links=trace_context.links((caller,) if caller.is_valid else ()),
        record_exception=False,
    ):
        yield
