"""Logs: structlog, an event in a few words and its data as fields."""

import logging
import sys
import time
from collections.abc import Sequence
from typing import TextIO, cast

import structlog
from opentelemetry.trace import get_current_span

from semel_runtime.config import ServiceSettings
from semel_runtime.logs.log_output import LogOutput, occupy_standard_streams

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_OWN_LOGGERS = ("semel_common", "aiosemel")
"""Of the standard library, and of our own: they follow `log_level`, all others begin at WARNING."""
_QUIET_S = 60.0
_LOST_ANSWER = "ExecuteBatchError"
"""What gRPC's server raises when the client of a call has gone; it exports no such class."""

log = structlog.get_logger(__name__)


def take_standard_error() -> LogOutput:
    """Let everything that this process says to standard error go out without ever raising."""
    occupy_standard_streams()
    output = LogOutput()
    sys.stderr = cast("TextIO", output)
    return output


def configure_logging(settings: ServiceSettings, service: str, output: LogOutput) -> None:
    """Write to `output`, as the settings say, with the service and its instance on every line.

    What the standard library logs, and Python's warnings, become lines of the same form.
    """
    renderer: structlog.typing.Processor
    if settings.log_format == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=output.isatty())
    level = _LEVELS[settings.log_level]
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_trace_ids,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        renderer,
    ]
    structlog.configure(
        processors=[_never_raising(processors, output)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(output),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service, instance=settings.instance_id)
    _log_of_standard_library(level)


def log_of_telemetry() -> None:
    """Let the exporter of traces, which logs every attempt by the standard library, log here."""
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    logger.addHandler(_SeldomToStructlog())


class _Lines:
    """What structlog writes its lines with; raises nothing."""

    def __init__(self, output: LogOutput) -> None:
        self._output = output

    def msg(self, line: str) -> None:
        """Write a line, and after it how many were lost before."""
        self._output.write(f"{line}\n")
        if losses := self._output.take_losses():
            log.error("lines of this log were lost", lines=losses.lines, error=losses.why)

    debug = info = warning = error = critical = exception = msg


def _never_raising(
    processors: Sequence[structlog.typing.Processor], output: LogOutput
) -> structlog.typing.Processor:
    """Return a processor of a line that drops the line, and counts it, if one of these fails."""

    def make_line(
        logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.ProcessorReturnValue:
        made: structlog.typing.ProcessorReturnValue = event
        try:
            for processor in processors:
                made = processor(logger, method, made)  # type: ignore[arg-type]  # the last alone ends it
        except Exception as error:
            output.drop(error)
            raise structlog.DropEvent from error
        return made

    return make_line


def _log_of_standard_library(level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_ToStructlog()]
    root.setLevel(logging.WARNING)
    for name in _OWN_LOGGERS:
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=True)


def _is_lost_answer(record: logging.LogRecord) -> bool:
    """Return whether gRPC logs that a call had ended before its answer could be sent.

    gRPC logs that as an error with its traceback, for every client whose deadline has passed.
    """
    kind = record.exc_info[0] if record.exc_info else None
    return record.name.startswith("grpc") and kind is not None and kind.__name__ == _LOST_ANSWER


class _ToStructlog(logging.Handler):
    """Makes a line of this log of a record of the standard library's."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log it, with the logger that it is from."""
        if _is_lost_answer(record):
            log.debug("client was gone before its answer was sent", logger=record.name)
            return
        try:
            log.log(
                min(max(record.levelno, logging.DEBUG), logging.CRITICAL) // 10 * 10,
                record.getMessage(),
                logger=record.name,
                exc_info=record.exc_info,
            )
        except Exception:  # noqa: BLE001 - as each handler of the standard library
            self.handleError(record)


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
