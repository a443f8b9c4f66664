"""A producer whose transactions commit together with one of the application's database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, Self, TypeVar

from aiosemel._database.driver_errors import is_passing
from aiosemel._database.joint_commit import JointCommit
from aiosemel._database.open_session import OpenSession
from aiosemel._database.table_check import check_tables
from aiosemel._producer.sending.producer_spans import ended
from aiosemel._producer.transaction_block import Transaction
from aiosemel._producer.transactions.transaction_driver import Transactions
from aiosemel._shared.context import Context
from aiosemel._shared.value_checks import check_name
from aiosemel.database.contract import Database
from aiosemel.database.tables import PRODUCER, TRANSACTION
from aiosemel.errors import (
    ClosedError,
    DatabaseOutcomeUnknownError,
    DatabaseUnavailableError,
    InvalidConfigError,
    RequestTimedOutError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from aiosemel.options.client_options import ProducerOptions

_PASSING = (DatabaseUnavailableError, RequestTimedOutError, TransactionAbortableError)


S = TypeVar("S")


class DatabaseProducer(Generic[S]):
    """Sends records in transactions that the database decides. Made by ``DatabaseClient.producer``.

    ::

        async with client.with_database(database).producer("orders-1") as producer:
            async with producer.transaction() as (session, txn):
                session.add(order)
                await txn.send("orders", order.json(), key=order.id)

    There is one transaction at a time. Opening it takes over the transactional id, and settles what
    an earlier process has left prepared. While it is open, it also settles what other processes
    left prepared whose transactions this database decides, after 30 s.
    """

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        transactional_id: str,
        database: Database[S],
    ) -> None:
        self._context = context
        self._database = database
        check_name("transactional_id", transactional_id, InvalidConfigError)
        self._transactions = Transactions(context, options, transactional_id)
        self._closed = False
        self._joint = JointCommit(context, database, is_stopping=lambda: self._closed)

    @property
    def transactional_id(self) -> str:
        """The id under which this producer's transactions stand."""
        return self._transactions.transactional_id

    async def open(self) -> None:
        """Check the tables, and take over the transactional id; ``async with`` does it by itself.

        Raises DatabaseTablesError, DatabaseUnavailableError, and as ``init_transactions``.
        """
        await check_tables(self._database, (PRODUCER, TRANSACTION))
        await self._joint.initialize(self._transactions)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[tuple[S, Transaction]]:
        """Open a transaction of both, for ``async with``: the session, and what sends.

        The end of the block commits both, or raises and commits neither: TransactionAbortedError,
        an error of the driver such as that of a constraint, or DatabaseSessionEndedError if the
        block has ended the session's transaction itself. An exception in the block rolls both back.
        DatabaseOutcomeUnknownError says that it may have committed: the producer was closed before
        the database answered. A cancelled commit is settled in the background.
        """
        is_prepared = False
        try:
            async with self._block() as txn:
                # It may hold locks, and must wait for the cluster no longer than it has to: so it
                # begins last, and ends first.
                opened = await OpenSession.begin(self._database)
                try:
                    yield opened.statements.session, txn
                    await opened.check()
                    prepared = await self._transactions.prepare()
                    is_prepared = True
                except BaseException as error:
                    await opened.roll_back(error)
                    raise
                await self._joint.decide(prepared, opened, ended(self._transactions.pipeline.spans))
        except (TransactionAbortedError, DatabaseOutcomeUnknownError):
            raise
        except _PASSING as error:
            raise TransactionAbortedError(f"aborted: {error.message}") from error
        except Exception as error:
            if is_prepared and is_passing(error):
                raise TransactionAbortedError(
                    f"aborted: the database did not commit: {error!r}"
                ) from error
            raise

    def _block(self) -> Transaction:
        return Transaction(self._transactions, wait_until_visible=False, may_prepare=False)

    async def close(self) -> None:
        """Abort an open transaction, and stop. May be called twice."""
        self._closed = True
        try:
            await self._transactions.close(ClosedError("the producer is closed"))
        finally:
            await self._joint.close()
            self._context.forget(self)

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
