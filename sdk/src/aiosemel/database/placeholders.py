"""The placeholders of drivers, for statements that have ``?`` for each parameter."""

import re
from functools import cache
from itertools import count

_PLACEHOLDER = re.compile(r"\?")


@cache
def numbered(statement: str) -> str:
    """Return the statement with ``$1``, ``$2`` and so on: asyncpg's way."""
    numbers = count(1)
    return _PLACEHOLDER.sub(lambda _: f"${next(numbers)}", statement)


@cache
def formatted(statement: str) -> str:
    """Return the statement with ``%s``: the way of psycopg, of Django, and of MySQL's drivers."""
    return statement.replace("%", "%%").replace("?", "%s")


@cache
def named(statement: str) -> str:
    """Return the statement with ``:p0``, ``:p1`` and so on: SQLAlchemy's way."""
    numbers = count()
    return _PLACEHOLDER.sub(lambda _: f":p{next(numbers)}", statement)
