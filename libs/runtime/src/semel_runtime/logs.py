"""Logs: structlog, an event in a few words and its data as fields."""

import logging
import sys
import time

import structlog
from opentelemetry.trace import get_current_span

from semel_runtime.config import ServiceSettings

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_QUIET_S = 60.0

log = structlog.get_logger(__name__)


def configure_logging(settings: ServiceSettings, service: str) -> None:
    """Write to stderr, as the settings say, with the service and its instance on every line."""
    renderer: structlog.typing.Processor
    if settings.log_format == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_trace_ids,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.log_level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service, instance=settings.instance_id)


def log_of_telemetry() -> None:
    """Let the exporter of traces, which logs every attempt by the standard library, log here."""
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    logger.addHandler(_SeldomToStructlog())


def _add_trace_ids(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Say on which request's behalf a line is logged, so that the two are found together."""
    context = get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
        event["span_id"] = f"{context.span_id:016x}"
    return event


class _SeldomToStructlog(logging.Handler):
    """One line a minute says enough of a collector that is away."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._next_at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + _QUIET_S
            self.tell(record.getMessage())

    def tell(self, reason: str) -> None:
        """Write the line."""
        log.warning("spans are not exported", reason=reason)
