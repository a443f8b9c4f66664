"""What a process of Spark finds in its environment: OpenTelemetry's own variables (OTEL_…).

Driver and executors have environments of their own: ``spark.executorEnv.OTEL_…`` sets that of the
executors.
"""

import logging
import os
from functools import cache

from aiosemel.tracing import Telemetry, open_telemetry

SERVICE_NAME = "pyspark-semel"
FLUSH_TIMEOUT_S = 1.0
"""How long a task, or a commit, waits at its end for its spans to be sent."""

_log = logging.getLogger(__name__)


def telemetry() -> Telemetry | None:
    """Return where the spans of this process go; None: tracing is off."""
    return _telemetry(os.getpid())


def flush_spans() -> None:
    """Send what there is: Spark ends its processes without a word."""
    found = telemetry()
    if found is not None:
        found.flush(FLUSH_TIMEOUT_S)


@cache
def _telemetry(_process: int) -> Telemetry | None:
    """Set it up once for each process: a thread that sends does not survive a fork."""
    try:
        return open_telemetry(os.environ, SERVICE_NAME)
    except ValueError as problem:
        _log.warning("no traces: %s", problem)
        return None
