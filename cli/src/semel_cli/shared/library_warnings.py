"""Warnings of the SDK on standard error, as sentences: what does not answer, and why."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from semel_cli.shared.output import note

LOGGERS = ("aiosemel", "semel_common")
_LOST_RECORDS = "aiosemel._producer.sending.idempotent_session"
"""Its warnings name records that are lost, and commands count those themselves."""


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.name != _LOST_RECORDS:
            note(f"semel: {record.getMessage()}")


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show warnings while a command runs."""
    handler = _Notes(logging.WARNING)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
