"""One transaction of the database that is open for a handler, and how it ends."""

from contextlib import AsyncExitStack
from typing import Generic, TypeVar

from aiosemel._database.driver_errors import (
    is_missing_savepoint,
    is_passing,
    passing_errors,
    unavailable,
)
from aiosemel.database.contract import Database, DatabaseSession, Dialect
from aiosemel.errors import DatabaseSessionEndedError
from semel_common.library_log import get_logger

_log = get_logger(__name__)

_STANDSTILL = {
    Dialect.POSTGRESQL: (
        "SELECT set_config('idle_in_transaction_session_timeout', '30s', true)"
        " WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
    )
}
"""Ends the transaction of a process that stands still, or whose host is gone, while it commits.

Its locks would else hold up every other process, and the decision about what it has prepared. A
time-out of the application's own stays as it is."""
_SAVEPOINT = "semel_handler"
"""A handler that ends the transaction takes the savepoint away with it, however it does that."""


S_co = TypeVar("S_co", covariant=True)


class OpenSession(Generic[S_co]):
    """One transaction, from its begin to its commit or rollback."""

    def __init__(
        self, stack: AsyncExitStack, statements: DatabaseSession[S_co], dialect: Dialect
    ) -> None:
        self._stack = stack
        self._dialect = dialect
        self.statements = statements

    @classmethod
    async def begin(cls, database: Database[S_co]) -> "OpenSession[S_co]":
        """Begin a transaction. Raises DatabaseUnavailableError, and errors of the driver."""
        stack = AsyncExitStack()
        with passing_errors():
            try:
                statements = await stack.enter_async_context(database.transaction())
                await statements.execute(f"SAVEPOINT {_SAVEPOINT}")
            except BaseException as error:
                await stack.__aexit__(type(error), error, error.__traceback__)
                raise
        return cls(stack, statements, database.dialect)

    async def check(self) -> None:
        """Raise DatabaseSessionEndedError if the handler has ended the transaction itself.

        Writes what the user's session has not yet written; errors of that are raised as they are.
        """
        # An error of the flush is the handler's: the savepoint is not to blame for it.
        await self.statements.execute(_STANDSTILL.get(self._dialect, "SELECT 1"))
        try:
            await self.statements.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        except Exception as error:
            if is_passing(error):
                raise unavailable(error) from error
            if not is_missing_savepoint(error):
                raise
            raise DatabaseSessionEndedError(
                "the handler has ended the transaction of its session: it must not commit, roll"
                " back, or (in MySQL) change a schema; Semel commits the handler's writes together"
                " with the position of the records"
            ) from error

    async def commit(self) -> None:
        """Commit. Any error leaves the outcome open."""
        await self._stack.aclose()

    async def roll_back(self, reason: BaseException) -> None:
        """Roll back; what goes wrong must not hide the reason."""
        try:
            await self._stack.__aexit__(type(reason), reason, reason.__traceback__)
        except BaseException as error:
            if error is reason:
                return
            if not isinstance(error, Exception):
                raise
            _log.warning("the rollback failed, so the database does it: %r", error)
