"""The logger of a library: the handlers and filters of its user cannot raise into it.

Handlers of the standard library raise nothing, but handlers that users write may. A batch that is
given up, a heartbeat or a certificate that is loaded again must not depend on them.
"""

import logging

_CALLER = 3
"""Frames from the standard library's logger to the caller of a method below."""


class LibraryLogger:
    """Logs as the standard library does, and drops a line whose handler fails."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, text: str, *values: object) -> None:
        """Log at the level DEBUG, like all others with `%` for each value."""
        self._write(logging.DEBUG, text, values)

    def info(self, text: str, *values: object) -> None:
        """Log at the level INFO."""
        self._write(logging.INFO, text, values)

    def warning(self, text: str, *values: object) -> None:
        """Log at the level WARNING."""
        self._write(logging.WARNING, text, values)

    def exception(self, text: str, *values: object) -> None:
        """Log at the level ERROR, with the exception that is handled now."""
        self._write(logging.ERROR, text, values, exc_info=True)

    def log(self, level: int, text: str, *values: object) -> None:
        """Log at any level."""
        self._write(level, text, values)

    def _write(
        self, level: int, text: str, values: tuple[object, ...], *, exc_info: bool = False
    ) -> None:
        try:
            self._logger.log(level, text, *values, exc_info=exc_info, stacklevel=_CALLER)
        except Exception:  # noqa: BLE001 - the library goes on
            record = logging.LogRecord(self._logger.name, level, "", 0, text, values, None)
            logging.Handler().handleError(record)  # Shown as an error of any handler is.


def get_logger(name: str) -> LibraryLogger:
    """Return the logger of a module."""
    return LibraryLogger(name)
