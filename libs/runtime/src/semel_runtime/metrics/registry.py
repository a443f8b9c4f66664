"""All metrics of one process."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from semel_runtime.journal.contract import Journal
from semel_runtime.metrics.journal import JournalMetrics
from semel_runtime.metrics.requests import RequestMetrics
from semel_runtime.metrics.server import stream_figures
from semel_runtime.runner import Runner
from semel_runtime.server.grpc_server import GrpcServer

R = TypeVar("R")

Figures = Callable[[], Iterable[Metric]]
"""Looks figures up; is called in the event loop."""

_ANSWER_S = 5.0

disable_created_metrics()  # type: ignore[no-untyped-call]  # One more series for each, unused.


class Metrics:
    """A registry of its own, so that a test can have many processes in one."""

    def __init__(self) -> None:
        """Start with none. To be made in the event loop whose state is shown."""
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        self._loop = asyncio.get_running_loop()

    def look_up(self, figures: Figures) -> None:
        """Ask for these at each scrape."""
        self.registry.register(_InLoop(self._loop, figures))

    def of_journal(self, runner: Runner[R], journal: Journal) -> None:
        """Tell what a journal does from now on."""
        self.look_up(JournalMetrics(self.registry, runner, journal).figures)

    def of_server(self, server: GrpcServer) -> None:
        """Count the connections."""
        self.look_up(partial(stream_figures, server))


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
