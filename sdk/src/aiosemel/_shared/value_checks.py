"""Ids, texts and numbers of a call: checked before the call changes or sends anything.

A value that no request can carry would fail where the request is written, after it was counted.
"""

from aiosemel._shared.name_checks import check_str, shown
from aiosemel.errors import InvalidGroupIdError, InvalidRequestError
from semel_common.wire.messages.request_bounds import NAME_LENGTH_MAX

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1


def check_group_id(group_id: object) -> str:
    """Return a group id; raises TypeError, or InvalidGroupIdError for an illegal one."""
    return check_name("group_id", group_id, InvalidGroupIdError)


def check_name(what: str, given: object, error: type[InvalidRequestError]) -> str:
    """Return a name that every service takes; raises TypeError, or ``error``."""
    name = check_str(what, given)
    if not name:
        raise error(f"{what} is empty: give 1 to {NAME_LENGTH_MAX} characters")
    return check_text(what, name, error, length_max=NAME_LENGTH_MAX)


def check_text(
    what: str, given: object, error: type[InvalidRequestError], *, length_max: int | None = None
) -> str:
    """Return a text that can be sent, perhaps an empty one; raises TypeError, or ``error``."""
    text = check_str(what, given)
    if length_max is not None and len(text) > length_max:
        raise error(f"{what} {shown(text)} has {len(text)} characters: give {length_max} at most")
    if not _is_unicode(text):
        raise error(f"{what} {shown(text)} has surrogates, which are no characters: leave them out")
    return text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_number(what: str, given: object, *, minimum: int = 0, maximum: int = INT64_MAX) -> int:
    """Return a number that a request can carry; raises TypeError, InvalidRequestError."""
    if type(given) is not int:
        raise TypeError(f"{what} must be int, not {type(given).__name__}")
    if not minimum <= given <= maximum:
        raise InvalidRequestError(f"{what} is {shown(given)}, not {minimum} to {maximum}")
    return given
