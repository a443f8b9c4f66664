"""All metrics of one process."""

import asyncio
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from semel_runtime.metrics.requests import RequestMetrics

Figures = Callable[[], Iterable[Metric]]
"""Looks figures up; is called in the event loop."""

_ANSWER_S = 5.0

disable_created_metrics()  # type: ignore[no-untyped-call]  # One more series for each: nobody asks.


class Metrics:
    """A registry of its own, so that a test can have many processes in one."""

    def __init__(self) -> None:
        """Start with none. To be made in the event loop whose state is shown."""
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        self._loop = asyncio.get_running_loop()

    def look_up(self, figures: Figures) -> None:
        """Ask for these whenever somebody wants to see the metrics."""
        self.registry.register(_InLoop(self._loop, figures))


class _InLoop(Collector):
    """Asked by a thread of the endpoint; machines are only looked at in the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, figures: Figures) -> None:
        self._loop = loop
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        asked = asyncio.run_coroutine_threadsafe(self._look_up(), self._loop)
        return asked.result(_ANSWER_S)

    async def _look_up(self) -> list[Metric]:
        return list(self._figures())
