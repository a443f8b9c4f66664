"""Durations and results of requests."""

from prometheus_client import CollectorRegistry, Counter, Histogram

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Bounds of histograms of time."""


class RequestMetrics:
    """Of all methods of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register them."""
        self._durations = Histogram(
            "semel_request_duration_seconds",
            "From a request's arrival to its answer, whichever way it came. A Fetch waits for"
            " records in it, a heartbeat for nothing.",
            ("service", "method"),
            buckets=SECONDS,
            registry=registry,
        )
        self._refused = Counter(
            "semel_requests_refused_total",
            "Requests that were answered with an error, or with one for a part of it, by its code.",
            ("service", "method", "code"),
            registry=registry,
        )

    def of(self, service: str, method: str) -> "MethodMetrics":
        """Return those of one method."""
        return MethodMetrics(
            self._durations.labels(service, method), self._refused, (service, method)
        )


class MethodMetrics:
    """Of one method."""

    def __init__(self, duration: Histogram, refused: Counter, name: tuple[str, str]) -> None:
        self._duration = duration
        self._refused = refused
        self._name = name

    def answered(self, seconds: float) -> None:
        """Count an answer, whatever it is."""
        self._duration.observe(seconds)

    def refused(self, code: str) -> None:
        """Count that it is an error, or has one for any of its parts."""
        self._refused.labels(*self._name, code).inc()
