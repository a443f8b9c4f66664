"""Regular expressions of users."""

import re
from collections.abc import Callable

from semel_common.errors import InvalidRequestError
from semel_runtime.server.checks import require_name, shown

_LENGTH_MAX = 255


def pattern(field: str, text: str) -> Callable[[str], object] | None:
    """Compile a pattern that whole names must match; None if it is empty.

    Raises InvalidRequestError naming the field.
    """
    if not text:
        return None
    require_name(field, text, length_max=_LENGTH_MAX)
    try:
        return re.compile(text).fullmatch
    except re.error as error:
        raise InvalidRequestError(
            f"{field} {shown(text)!r} is no regular expression: {error}", field=field
        ) from error
