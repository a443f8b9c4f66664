"""Spans of journal commits: one in each trace that has a request in the commit.

A group commit serves many requests. In each of their traces it is a span below the first of them,
and linked to the others, of whatever trace.
"""

from collections.abc import Sequence
from typing import TypeVar

from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from semel_common.telemetry import trace_context
from semel_runtime.runner.group_commit import Commit
from semel_runtime.runner.runner_options import CommitFigures

NAME = "journal commit"

R = TypeVar("R")


class CommitSpans:
    """Makes the spans of one runner's commits."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, commit: Commit[R]) -> Sequence[Span]:
        """Begin a span in each trace that a commit serves."""
        served = [span.get_span_context() for span in commit.served]
        few = served[: trace_context.SHARED_LINKS_MAX + 1]
        parents: dict[int, SpanContext] = {}
        for context in served:
            parents.setdefault(context.trace_id, context)
        attributes = {
            "semel.journal.offset": commit.at,
            "semel.journal.records": len(commit.encoded),
            "semel.journal.bytes": commit.size_bytes,
            "semel.journal.requests": len(commit.served),
        }
        return [
            self._tracer.start_span(
                NAME,
                context=trace_context.below(parent),
                kind=SpanKind.INTERNAL,
                attributes=attributes,
                links=trace_context.links(
                    (other for other in few if other.span_id != parent.span_id),
                    maximum=trace_context.SHARED_LINKS_MAX,
                ),
            )
            for parent in parents.values()
        ]

    def end(self, spans: Sequence[Span], figures: CommitFigures) -> None:
        """End them: it is on disk."""
        for span in spans:
            span.set_attribute("semel.journal.append_ms", figures.seconds * 1000)
            span.set_attribute("semel.journal.write_ms", figures.write_seconds * 1000)
            span.end()

    def fail(self, spans: Sequence[Span], failure: BaseException) -> None:
        """End the spans: the content of the disk is unknown."""
        for span in spans:
            span.set_status(Status(StatusCode.ERROR, str(failure)))
            span.end()
