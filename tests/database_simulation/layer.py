"""The layer of the SDK for the simulated database: what a user would write for a database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiosemel.database import Dialect, Row, Value
from database_simulation.machine import Connection, Machine


class Session:
    """One open transaction. Implements ``DatabaseSession``."""

    def __init__(self, machine: Machine, connection: Connection) -> None:
        self._machine = machine
        self._connection = connection

    @property
    def session(self) -> "Session":
        """See ``DatabaseSession``."""
        return self

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        """See ``DatabaseSession``."""
        return (await self._machine.run(self._connection, statement, parameters))[0]

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        """See ``DatabaseSession``."""
        return (await self._machine.run(self._connection, statement, parameters))[1]


class SimulatedDatabase:
    """Implements ``Database``."""

    dialect = Dialect.SQLITE

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """See ``Database``. The machine forgets a transaction whose block raises."""
        connection = await self._machine.begin()
        yield Session(self._machine, connection)
        await self._machine.commit(connection)

    def joined(self, session: object) -> Session:
        """See ``Database``."""
        if not isinstance(session, Session):
            raise TypeError(f"{session!r} is no session")
        return session
