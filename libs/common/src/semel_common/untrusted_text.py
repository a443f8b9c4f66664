"""Texts of strangers, such as names and errors of a server, for programs, terminals and logs."""

_INT64_MAX = (1 << 63) - 1
_DIGITS_MAX = len(str(_INT64_MAX))


def natural_number(text: str) -> int | None:
    """Return the number from 0 to 2^63 - 1 that a text is; None if it is none."""
    if len(text) > _DIGITS_MAX or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= _INT64_MAX else None


def printable(text: str) -> str:
    """Return a text as one line: escapes stand for control characters, which steer a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
