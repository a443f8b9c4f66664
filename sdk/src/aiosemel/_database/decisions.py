"""The database's decisions on prepared transactions: one row each, whose key decides.

A transaction of the database that commits with the row "committed" is the moment of the decision.
Where the row is missing, a process that asks inserts "aborted" first: then the process that
prepared the transaction, should it live after all, cannot insert its own row any more, and its
transaction of the database rolls back.

A decision to commit goes away when its own process knows that it is carried out. Other processes
that carry it out leave it: its own process may live, not know how its commit ended, and ask later.
"""

import re
from collections.abc import Collection

from aiosemel._database.driver_errors import passing_errors
from aiosemel._database.positions_table import insert_new
from aiosemel._shared.context import Clock
from aiosemel.database.contract import Database, DatabaseSession, Dialect
from aiosemel.database.tables import check_key
from aiosemel.errors import TransactionAbortableError
from aiosemel.types.prepared_transaction import PreparedTransactionId

_COMMITTED, _ABORTED = "committed", "aborted"
_KEPT_MS = 24 * 3600 * 1000
"""No process can be left by then that would commit the transaction, or ask how it ended. The time
of a decision is that of another clock, so the cluster is asked before one is forgotten."""


class Decisions:
    """The decisions of one database."""

    def __init__(self, database: Database[object], clock: Clock) -> None:
        self._database = database
        self._dialect = database.dialect
        self._clock = clock
        self._decide = insert_new(
            database.dialect, "semel_transaction", ("name", "outcome", "decided_at_ms")
        )
        # MySQL reads what was committed when a transaction began, unless the read locks.
        self._read = f"{_READ} FOR UPDATE" if self._dialect is Dialect.MYSQL else _READ
        self._register = insert_new(
            database.dialect, "semel_producer", ("transactional_id", "registered_at_ms")
        )

    async def register(self, transactional_id: str) -> None:
        """Note that this database decides the transactions of a transactional id.

        Raises InvalidConfigError for one that the database takes for another one.
        """
        check_key(self._dialect, "transactional_id", transactional_id)
        with passing_errors():
            async with self._database.transaction() as transaction:
                await transaction.execute(self._register, (transactional_id, self._clock.now_ms()))

    async def registered(self) -> frozenset[str]:
        """Return the transactional ids whose transactions this database decides."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                rows = await transaction.fetch("SELECT transactional_id FROM semel_producer")
        return frozenset(str(name) for (name,) in rows)

    async def note_committed(
        self,
        transaction: DatabaseSession[object],
        prepared: PreparedTransactionId,
        completed: Collection[PreparedTransactionId],
    ) -> None:
        """Decide to commit, as a part of a transaction; forget decisions that are carried out.

        Raises TransactionAbortableError if another process has decided to abort.
        """
        if await self._decided(transaction, prepared, _COMMITTED) != _COMMITTED:
            raise TransactionAbortableError(
                f"another process has decided to abort the prepared transaction {prepared}: this"
                " one was too slow"
            )
        for each in completed:
            await transaction.execute(_FORGET, (str(each),))

    async def is_committed(self, prepared: PreparedTransactionId) -> bool:
        """Return the decision; if there is none, decide to abort."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                outcome = await self._decided(transaction, prepared, _ABORTED)
        return outcome == _COMMITTED

    async def _decided(
        self, transaction: DatabaseSession[object], prepared: PreparedTransactionId, outcome: str
    ) -> str:
        """Decide, unless that was done; returns the decision."""
        row = (str(prepared), outcome, self._clock.now_ms())
        inserted = await transaction.execute(self._decide, row)
        if inserted == 1 and self._dialect is not Dialect.MYSQL:
            return outcome
        rows = await transaction.fetch(self._read, (str(prepared),))
        # Only a decision to commit that is carried out goes away between the two statements.
        return str(rows[0][0]) if rows else _COMMITTED

    async def of(self, transactional_id: str) -> tuple[PreparedTransactionId, ...]:
        """Return the transactions of a transactional id that this database has decided."""
        escaped = _WILDCARD.sub(r"!\g<0>", transactional_id)
        with passing_errors():
            async with self._database.transaction() as transaction:
                rows = await transaction.fetch(_OF, (f"%:{escaped}",))
        decided = (PreparedTransactionId.parse(str(name)) for (name,) in rows)
        return tuple(each for each in decided if each.transactional_id == transactional_id)

    async def forget(self, completed: Collection[PreparedTransactionId]) -> None:
        """Forget decisions that are carried out."""
        if not completed:
            return
        with passing_errors():
            async with self._database.transaction() as transaction:
                for each in completed:
                    await transaction.execute(_FORGET, (str(each),))

    async def old(self) -> frozenset[str]:
        """Return the names of old decisions.

        They are of processes that ended after their commit.
        """
        with passing_errors():
            async with self._database.transaction() as transaction:
                rows = await transaction.fetch(_OLD, (self._clock.now_ms() - _KEPT_MS,))
        return frozenset(str(name) for (name,) in rows)

    async def forget_any(self, names: Collection[str]) -> None:
        """Forget decisions, whatever they are, that can never be asked for again."""
        with passing_errors():
            async with self._database.transaction() as transaction:
                for name in names:
                    await transaction.execute(_FORGET_ANY, (name,))


_READ = "SELECT outcome FROM semel_transaction WHERE name = ?"
_FORGET = "DELETE FROM semel_transaction WHERE name = ? AND outcome = 'committed'"
_FORGET_ANY = "DELETE FROM semel_transaction WHERE name = ?"
_OF = "SELECT name FROM semel_transaction WHERE name LIKE ? ESCAPE '!'"
_WILDCARD = re.compile("[%_!]")
_OLD = "SELECT name FROM semel_transaction WHERE decided_at_ms < ?"
