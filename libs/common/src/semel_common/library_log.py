"""The logger of a library: the handlers and filters of its user cannot raise into it.

Handlers of the standard library raise nothing, but handlers that users write may. A batch that is
given up, a heartbeat or a certificate that is loaded again must not depend on them.
"""

import logging
from typing import Any

_OWN_FRAME = 1


class LibraryLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs like the logger that it has, and drops a line whose handler fails."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - as it is declared
        """Log a line; raises nothing."""
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + _OWN_FRAME
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:  # noqa: BLE001 - the library goes on
            if logging.raiseExceptions:  # Shown on standard error, as handlers do it.
                logging.Handler().handleError(_record(self.logger.name, level, msg))


def get_logger(name: str) -> LibraryLogger:
    """Return the logger of a module."""
    return LibraryLogger(logging.getLogger(name), {})


def _record(name: str, level: int, msg: object) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, msg, (), None)
