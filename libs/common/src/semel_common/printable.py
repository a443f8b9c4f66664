"""Texts of strangers, such as names and errors of a server, for terminals and logs."""


def printable(text: str) -> str:
    """Return a text as one line: escapes stand for control characters, which steer a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
