"""Patterns of transactional ids in ListTransactions, in RE2's syntax.

RE2 matches a name in time that is linear in its length. Python's engine backtracks: a short pattern
can keep it busy, and the coordinator with it, for hours.
"""

from collections.abc import Callable

import re2

from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import PATTERN_LENGTH_MAX
from semel_runtime.server.form_checks import require_name, shown

_MEMORY_MAX = 64 << 10
"""Bytes of a compiled pattern; the worst pattern within them takes 0.2 ms for a name."""


def pattern(field: str, text: str) -> Callable[[str], bool] | None:
    """Compile a pattern that whole names must match; None if it is empty.

    Raises InvalidRequestError that names the field and says what is wrong with the pattern.
    """
    if not text:
        return None
    require_name(field, text, length_max=PATTERN_LENGTH_MAX)
    try:
        compiled = re2.compile(text, _options())
    except re2.error as error:
        problem = error.args[0].decode(errors="replace")
        raise InvalidRequestError(
            f"{field} {shown(text)!r} is not a pattern that RE2 takes: {problem}", field=field
        ) from error
    return lambda name: compiled.fullmatch(name) is not None


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = _MEMORY_MAX
    options.never_capture = True
    options.log_errors = False
    return options
