"""Observers of a runner: its log, spans and figures. None of them can stop it.

A commit wakes its waiters, and a failure ends the process, whatever becomes of a line of the log, a
span or a metric. The listeners that keep state (`on_durable`, `on_batches`) are another matter: if
one of them fails, the state in memory differs from the disk, so the runner stops.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import structlog
from opentelemetry.trace import Span, Tracer

from semel_runtime.logs.log_rate_limit import Seldom
from semel_runtime.runner.commit_spans import CommitSpans
from semel_runtime.runner.group_commit import Commit
from semel_runtime.runner.runner_options import CommitFigures

R = TypeVar("R")
T = TypeVar("T")

log = structlog.get_logger(__name__)


def tell(write_line: Callable[..., object], event: str, **fields: object) -> None:
    """Write a line of the log if that can be done: `logs` sees to it, if a service has set it up.

    A process without that, such as a user's test, may have a log that raises.
    """
    with suppress(Exception):
        write_line(event, **fields)


def harmless(listener: Callable[[T], None]) -> Callable[[T], None]:
    """Return a listener whose errors are logged, at most once a second, and change nothing."""
    failures = Seldom()
    return lambda value: _attempt(partial(listener, value), failures)


class CommitObservers:
    """Spans and figures of the commits of one runner."""

    def __init__(self, tracer: Tracer | None) -> None:
        """Begin without listeners; without a tracer there are no spans."""
        self._spans = None if tracer is None else CommitSpans(tracer)
        self._failures = Seldom()
        self._listeners: list[Callable[[CommitFigures], None]] = []

    @property
    def traces(self) -> bool:
        """Whether commits become spans."""
        return self._spans is not None

    def add(self, listener: Callable[[CommitFigures], None]) -> None:
        """Call `listener` with the figures of each commit."""
        self._listeners.append(harmless(listener))

    def begin(self, commit: Commit[R]) -> Sequence[Span]:
        """Begin the spans of a commit."""
        if self._spans is None or not commit.served:
            return ()
        return _attempt(partial(self._spans.begin, commit), self._failures) or ()

    def end(self, spans: Sequence[Span], figures: CommitFigures) -> None:
        """Pass on the figures of a commit that is durable, and end its spans."""
        if spans and self._spans is not None:
            _attempt(partial(self._spans.end, spans, figures), self._failures)
        for listener in self._listeners:
            listener(figures)

    def fail(self, spans: Sequence[Span], failure: BaseException) -> None:
        """End the spans of a commit that failed: its effect on the disk is unknown."""
        if spans and self._spans is not None:
            _attempt(partial(self._spans.fail, spans, failure), self._failures)


def _attempt(action: Callable[[], T], failures: Seldom) -> T | None:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - it only looks on
        if count := failures.count():
            tell(log.error, "an observer of commits failed", error=repr(error), count=count)
        return None
