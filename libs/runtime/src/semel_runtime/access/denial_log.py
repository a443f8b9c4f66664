"""What the log says of refused calls: an operator wants to know which principal tries what.

One line for a call, however many items of it are refused, and a bounded number of lines a second
for each principal: a caller may be refused as often as it likes.
"""

import structlog

from semel_common.errors import SemelError
from semel_runtime.logs.log_rate_limit import Seldom

log = structlog.get_logger(__name__)

_REASONS_MAX = 3
"""Refused items that a line names; the others are counted."""
_PRINCIPALS_MAX = 1_000


class Denied:
    """What is refused of one call."""

    def __init__(self) -> None:
        """Nothing is, so far."""
        self.count = 0
        self.reasons: list[str] = []

    def add(self, error: SemelError) -> SemelError:
        """Count one more, and return it."""
        self.count += 1
        if len(self.reasons) < _REASONS_MAX and error.message not in self.reasons:
            self.reasons.append(error.message)
        return error


class Denials:
    """The log's lines about refused calls of one instance."""

    def __init__(self) -> None:
        """Nothing was refused yet."""
        self._seldom: dict[str, Seldom] = {}

    def log(self, principal: str, method: str, denied: Denied) -> None:
        """Write a line, unless this principal has one of this second already."""
        if not denied.count:
            return
        if principal not in self._seldom and len(self._seldom) >= _PRINCIPALS_MAX:
            self._seldom.clear()
        if calls := self._seldom.setdefault(principal, Seldom()).count():
            log.info(
                "authorization failed",
                principal=principal,
                method=method,
                reasons=denied.reasons,
                items=denied.count,
                calls=calls,
            )
