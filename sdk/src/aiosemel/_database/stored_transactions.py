"""Transactions that commit what a handler did in the database and the position of its records.

There is no transaction of Semel: the position is a row of the database's own transaction, moved by
compare-and-set. A commit that was not answered is looked up there, and never guessed.
"""

from collections.abc import Awaitable, Callable, Mapping

from aiosemel._database.driver_errors import (
    explain_handler_error,
    is_passing,
    passing_errors,
    unavailable,
)
from aiosemel._database.group_offsets import GroupOffsets
from aiosemel._database.input_positions import InputPositions
from aiosemel._database.open_session import OpenSession
from aiosemel._database.table_check import check_tables
from aiosemel._transform.failures import HandlerError, StopError
from aiosemel._transform.input_transactions import OpenTransaction
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.poison import Input
from aiosemel.database.contract import Database
from aiosemel.database.tables import POSITION
from aiosemel.errors import (
    DatabaseOutcomeUnknownError,
    DatabaseSessionEndedError,
    DatabaseUnavailableError,
    SemelError,
)
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class StoredTransactions:
    """The transactions of one loop. Implements ``InputTransactions``."""

    unknown = 0
    """The database says how each commit ended."""
    producers = 0

    def __init__(
        self,
        database: Database[object],
        positions: InputPositions,
        offsets: GroupOffsets,
        pausing: Pausing,
    ) -> None:
        self._database = database
        self._positions = positions
        self._offsets = offsets
        self._pausing = pausing
        self._open: OpenSession[object] | None = None

    async def start(self) -> None:
        """Check the tables. Raises DatabaseTablesError."""
        await patiently(lambda: check_tables(self._database, [POSITION]), self._pausing)

    async def find_positions(self, partitions: frozenset[TopicPartition]) -> None:
        """Put the consumer where the database says."""
        self._positions.given(partitions)
        await self._positions.find(partitions)

    async def begin(self) -> OpenTransaction | None:
        """Begin a transaction of the database; waits as long as it does not answer."""
        self._open = await begin_patiently(self._database, self._pausing)
        if self._open is None:
            return None
        session = self._open.statements.session
        return OpenTransaction((session,), None, explain_handler_error)

    async def commit(self, ends: Mapping[TopicPartition, OffsetAndMetadata], taken: Input) -> None:
        """Commit, and look up what became of a commit that was not answered."""
        opened = self._open
        assert opened is not None, "begin has opened it"
        await finish_handler(opened)
        with passing_errors():
            await self._positions.move(opened.statements, ends, taken)
        self._open = None
        try:
            await opened.commit()
        except Exception as error:
            if not await self._has_committed(ends):
                raise explain_commit_error(error) from error
            _log.info("the commit had taken effect: %r", error)
        self._positions.moved(ends)
        self._offsets.note(ends)

    async def _has_committed(self, ends: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
        while True:
            try:
                with passing_errors():
                    return await self._positions.have_moved(ends)
            except DatabaseUnavailableError as error:
                if self._pausing.stopping:
                    raise DatabaseOutcomeUnknownError(
                        f"the database did not say whether it has committed: {error.message}"
                    ) from error
                _log.warning("asking the database how a commit ended again: %s", error)
                await self._pausing.pause()

    async def undo(self, taken: Input, error: Exception) -> None:
        """Roll back, and put the consumer where the database says."""
        await self._roll_back(error)
        await self._positions.find(taken.starts())

    async def close(self) -> None:
        """Roll back the open transaction."""
        await self._roll_back(DatabaseUnavailableError("the loop has ended"))
        await self._offsets.close()

    async def _roll_back(self, reason: Exception) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.roll_back(reason)


async def patiently(attempt: Callable[[], Awaitable[object]], pausing: Pausing) -> None:
    """Make an attempt as soon as the database answers; raises its error when the loop stops."""
    while True:
        try:
            await attempt()
        except DatabaseUnavailableError as error:
            if pausing.stopping:
                raise
            _log.warning("starting again: %s", error)
            await pausing.pause()
        else:
            return


async def begin_patiently(
    database: Database[object], pausing: Pausing
) -> OpenSession[object] | None:
    """Begin a transaction as soon as the database answers; None when the loop is to stop."""
    while True:
        try:
            return await OpenSession.begin(database)
        except DatabaseUnavailableError as error:
            if pausing.stopping:
                return None
            _log.warning("beginning again: %s", error)
            await pausing.pause()


async def finish_handler(opened: OpenSession[object]) -> None:
    """Write what the handler's session holds; an error of that is the handler's."""
    try:
        await opened.check()
    except DatabaseSessionEndedError as error:
        raise StopError from error
    except SemelError:
        raise
    except Exception as error:
        raise explain_handler_error(error) from error


def explain_commit_error(error: Exception) -> Exception:
    """Return what an error of a commit that did not take effect stands for.

    What does not pass is the handler's doing, such as a constraint that is checked at the commit.
    """
    return unavailable(error) if is_passing(error) else HandlerError()
