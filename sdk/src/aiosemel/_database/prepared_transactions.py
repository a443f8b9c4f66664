"""Transactions that commit outputs in the cluster and the database's work in one decision.

The position of the records is a row of the database, as in ``stored_transactions``. The transaction
of Semel has no offsets: a dead instance's pending offsets would make its successor wait.
"""

from collections.abc import Mapping

from aiosemel._consumer.consumer import Consumer
from aiosemel._database.driver_errors import explain_handler_error, passing_errors
from aiosemel._database.group_offsets import GroupOffsets
from aiosemel._database.input_positions import InputPositions
from aiosemel._database.joint_commit import JointCommit
from aiosemel._database.open_session import OpenSession
from aiosemel._database.stored_transactions import (
    begin_patiently,
    explain_commit_error,
    finish_handler,
    patiently,
)
from aiosemel._database.table_check import check_tables
from aiosemel._transform.input_transactions import OpenTransaction
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.poison import Input
from aiosemel._transform.producer_supply import ProducerSupply
from aiosemel._transform.semel_transactions import SemelTransactions
from aiosemel.database.contract import Database
from aiosemel.database.tables import POSITION, PRODUCER, TRANSACTION
from aiosemel.errors import DatabaseUnavailableError, SemelError
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition


class PreparedTransactions:
    """The transactions of one loop. Implements ``InputTransactions``."""

    unknown = 0
    """The database says how each commit ended."""

    def __init__(
        self,
        consumer: Consumer,
        database: Database[object],
        joint: JointCommit,
        producers: ProducerSupply,
        positions: InputPositions,
        offsets: GroupOffsets,
        pausing: Pausing,
    ) -> None:
        self._consumer = consumer
        self._semel = SemelTransactions(consumer, producers, pausing)
        self._database = database
        self._joint = joint
        self._supply = producers
        self._positions = positions
        self._offsets = offsets
        self._pausing = pausing
        self._open: OpenSession[object] | None = None
        self._is_prepared = False

    @property
    def producers(self) -> int:
        """How many producers there have been."""
        return self._supply.made

    async def start(self) -> None:
        """Check the tables, and settle what an earlier process has left prepared."""
        tables = (POSITION, PRODUCER, TRANSACTION)
        await patiently(lambda: check_tables(self._database, tables), self._pausing)
        await patiently(self._semel.start, self._pausing)

    async def find_positions(self, partitions: frozenset[TopicPartition]) -> None:
        """Put the consumer where the database says."""
        self._positions.given(partitions)
        await self._positions.find(partitions)

    async def begin(self) -> OpenTransaction | None:
        """Begin both transactions; waits as long as one of the two does not answer.

        The database's begins last: it may hold locks, and must not wait for the cluster.
        """
        self._is_prepared = False
        begun = await self._semel.begin()
        if begun is None:
            await self._find_all()
            return None
        self._open = await begin_patiently(self._database, self._pausing)
        if self._open is None:  # The loop is to stop, which ends the other transaction.
            return None
        session = self._open.statements.session
        return OpenTransaction((session, *begun.arguments), begun.outputs, explain_handler_error)

    async def commit(self, ends: Mapping[TopicPartition, OffsetAndMetadata], taken: Input) -> None:
        """Prepare, let the database decide, and complete."""
        opened = self._open
        assert opened is not None, "begin has opened it"
        await finish_handler(opened)
        with passing_errors():
            await self._positions.move(opened.statements, ends, taken)
        prepared = await self._supply.present.prepare()
        self._open, self._is_prepared = None, True
        try:
            await self._joint.decide(prepared, opened)
        except SemelError:
            raise
        except Exception as error:
            raise explain_commit_error(error) from error
        self._positions.moved(ends)
        self._offsets.note(ends)

    async def undo(self, taken: Input, error: Exception) -> None:
        """Roll back and abort, and put the consumer where the database says."""
        await self._roll_back(error)
        if not self._is_prepared:  # Else the database has decided already.
            await self._semel.undo(taken, error)
        await self._find_all()

    async def close(self) -> None:
        """End both transactions, and wait for completions that are under way."""
        await self._roll_back(DatabaseUnavailableError("the loop has ended"))
        try:
            await self._semel.close()
        finally:
            await self._joint.close()
            await self._offsets.close()

    async def _find_all(self) -> None:
        """Put the consumer where the database says, in all its partitions.

        A new producer has put it to the group's committed offsets, which follow the database.
        """
        await self._positions.find(self._consumer.assignment())

    async def _roll_back(self, reason: Exception) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.roll_back(reason)
