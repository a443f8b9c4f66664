"""Ends its own process at a step: a layer of the database and a connector to Semel, both wrapped.

Nothing of the SDK is replaced. What is wrapped is what a program gives to the SDK: the database,
and the connections to Semel.
"""

import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from aiosemel.database import Database, DatabaseSession, Dialect
from aiosemel.database.contract import Row, Value
from database_chaos.steps import BEGUN, COMMITTED, COMMITTING, SENT, after, before
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import PRODUCE, Method, Req, Res

S_co = TypeVar("S_co", covariant=True)
_SEMEL = re.compile(r"(INSERT|UPDATE|DELETE)\b.*?\b(semel_\w+)", re.DOTALL)
_HANDLER_BEGINS = "SAVEPOINT semel_handler"
_WORK = "work"
"""The name of a transaction that has a handler or a block of the user."""


@dataclass(slots=True)
class Killer:
    """Sends this process a signal when it passes a point for the n-th time."""

    point: str = ""
    left: int = 0
    number: signal.Signals = signal.SIGKILL
    """SIGSTOP makes it stand still; it goes on, and passes the point again, without another one."""

    def arm(self, point: str, occurrence: int) -> None:
        """Do so at this point from now on."""
        self.point, self.left = point, occurrence

    def passed(self, point: str) -> None:
        """Hear of a point."""
        if point != self.point:
            return
        self.left -= 1
        if self.left <= 0:
            self.point = ""
            os.kill(os.getpid(), self.number)


class WatchedDatabase(Generic[S_co]):
    """A layer that tells of each statement. Implements ``Database``."""

    def __init__(self, inner: Database[S_co], killer: Killer) -> None:
        self._inner = inner
        self._killer = killer

    @property
    def dialect(self) -> Dialect:
        """That of the layer."""
        return self._inner.dialect

    def transaction(self) -> AbstractAsyncContextManager[DatabaseSession[S_co]]:
        """Open a transaction of the layer."""
        return self._transaction()

    def joined(self, session: object) -> DatabaseSession[S_co]:
        """Return what the layer returns."""
        return WatchedSession(self._inner.joined(session), self._killer)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[DatabaseSession[S_co]]:
        async with self._inner.transaction() as statements:
            watched = WatchedSession(statements, self._killer)
            yield watched
            if watched.last == _WORK:
                self._killer.passed(COMMITTING)
        if watched.last == _WORK:
            self._killer.passed(COMMITTED)
        elif watched.last:
            self._killer.passed(after(f"{watched.last}, COMMIT"))


class WatchedSession(Generic[S_co]):
    """A transaction that tells of each statement. Implements ``DatabaseSession``."""

    def __init__(self, inner: DatabaseSession[S_co], killer: Killer) -> None:
        self._inner = inner
        self._killer = killer
        self.last = ""
        """The last statement of Semel's that changes something, or that it is one of the user."""

    @property
    def session(self) -> S_co:
        """That of the layer."""
        return self._inner.session

    async def execute(self, statement: str, parameters: Sequence[Value] = ()) -> int:
        """Run a statement, and tell of it."""
        found = _SEMEL.match(statement)
        # A check of the tables changes no row, and is no step.
        name = f"{found[1]} {found[2]}" if found and "1 = 0" not in statement else ""
        if name:
            self._killer.passed(before(name))
        rows = await self._inner.execute(statement, parameters)
        if name:
            self.last = self.last if self.last == _WORK else name
            self._killer.passed(after(name))
        elif statement == _HANDLER_BEGINS:
            self.last = _WORK
            self._killer.passed(BEGUN)
        return rows

    async def fetch(self, statement: str, parameters: Sequence[Value] = ()) -> Sequence[Row]:
        """Run a query."""
        return await self._inner.fetch(statement, parameters)


class WatchedConnector:
    """Connections that tell of each call. Implements ``Connector``."""

    def __init__(self, inner: Connector, killer: Killer) -> None:
        self._inner = inner
        self._killer = killer

    def connect(self, address: str) -> Connection:
        """Return a connection that tells of each call."""
        return WatchedConnection(self._inner.connect(address), self._killer)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()


class WatchedConnection:
    """Tells of each call. Implements ``Connection``."""

    def __init__(self, inner: Connection, killer: Killer) -> None:
        self._inner = inner
        self._killer = killer

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        """Make one call, and tell of it."""
        self._killer.passed(before(method.name))
        answer = await self._inner.call(
            method,
            request,
            timeout_ms=timeout_ms,
            traceparent=traceparent,
            cluster_id=cluster_id,
        )
        self._killer.passed(SENT if method is PRODUCE else after(method.name))
        return answer
