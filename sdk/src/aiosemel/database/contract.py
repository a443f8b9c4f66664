"""The contract of a layer: transactions of the application's database, and statements."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeVar

Value: TypeAlias = str | int | bytes | None
"""The types of a statement's parameters."""


class Dialect(StrEnum):
    """The SQL that a database understands."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    """MariaDB, too."""


Row: TypeAlias = Sequence[object]
"""One row of a query."""
S_co = TypeVar("S_co", covariant=True)
"""The connection or session of a layer, as handlers get it."""


class DatabaseSession(Protocol[S_co]):
    """One open transaction.

    Statements have ``?`` for each parameter; ``numbered`` and its siblings in
    ``aiosemel.database.placeholders`` turn it into the driver's own.
    """

    @property
    def session(self) -> S_co:
        """The connection or session of the user's layer, as handlers get it."""
        ...

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement; returns the number of rows that it matched.

        What the user's session has not yet written goes to the database first.
        """
        ...

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        """Run a query; returns its rows."""
        ...


class Database(Protocol[S_co]):
    """One database of the application. Any number of tasks may use it at a time."""

    @property
    def dialect(self) -> Dialect:
        """The SQL of this database."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[DatabaseSession[S_co]]:
        """Open a transaction for ``async with``.

        It commits at the end of the block and rolls back at an exception. An exception of the
        commit is raised: the transaction may have taken effect then.
        """
        ...

    def joined(self, session: object) -> DatabaseSession[S_co]:
        """Return the transaction that the caller has open in a session or connection.

        Raises TypeError for an object that is none of this layer.
        """
        ...
