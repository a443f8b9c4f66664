"""Names of producer objects and members: a name of their client, if it has one, and chance."""

import re

_NAME = re.compile(r"(?:(?P<client_id>.+)-)?[0-9a-f]{32}", re.DOTALL)


def new_name(client_id: str, bits: int) -> str:
    """Return the name of one object of a client; ``bits`` are 128 random ones."""
    return f"{client_id}-{bits:032x}" if client_id else f"{bits:032x}"


def client_id_of(name: str) -> str:
    """Return the client's name in it; empty: it has none, or another rule made the name."""
    found = _NAME.fullmatch(name)
    return "" if found is None else found["client_id"] or ""
