"""The logs of a simulation: failed tasks of the SDK count, and nothing is written."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


class FailedTasks(logging.Handler):
    """Counts a failed task of the SDK as a defect."""

    def __init__(self, failures: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._failures.append(f"{record.getMessage()}: {error!r}")


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing for a while: it costs more than the simulation."""
    sdk = logging.getLogger("aiosemel")
    services_before, sdk_before = structlog.get_config(), sdk.level
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sdk.setLevel(logging.ERROR)
    try:
        yield
    finally:
        sdk.setLevel(sdk_before)
        structlog.configure(**services_before)
