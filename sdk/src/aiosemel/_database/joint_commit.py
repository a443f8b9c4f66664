"""One decision for a transaction of the database and one of Semel; the database's commit is it.

1. Prepare the transaction of Semel. The cluster promises that it can commit from here on.
2. Commit the transaction of the database, with a row that has the name of the prepared one.
3. Complete the prepared one, in the background.

A commit that fails or is not answered is looked up in the database with a new connection, and never
guessed. A process that ends between 1 and 3 leaves the rest to its successor, and to the resolvers
of all other processes of the application.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from opentelemetry.trace import SpanContext

from aiosemel._admin.admin import Admin
from aiosemel._cluster.retry import growing_pauses_ms
from aiosemel._database.completions import Completions
from aiosemel._database.database_spans import committing
from aiosemel._database.decisions import Decisions
from aiosemel._database.open_session import OpenSession
from aiosemel._database.resolver import Resolver
from aiosemel._shared.context import Context
from aiosemel.database.contract import Database
from aiosemel.errors import DatabaseOutcomeUnknownError, DatabaseUnavailableError
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel_common.library_log import get_logger

_log = get_logger(__name__)

_PAUSE_MS, _PAUSE_MAX_MS = 50, 2_000


class Initializes(Protocol):
    """The part of a transactional producer that takes over its id."""

    @property
    def transactional_id(self) -> str:
        """The id under which its transactions stand."""
        ...

    async def init_transactions(
        self, *, wait_until_visible: bool, keep_prepared: bool
    ) -> tuple[PreparedTransactionId, ...]:
        """As ``TransactionalProducer.init_transactions``."""
        ...


class JointCommit:
    """The decisions of one database on the transactions of one transactional id."""

    def __init__(
        self, context: Context, database: Database[object], *, is_stopping: Callable[[], bool]
    ) -> None:
        self._spawn = context.spawn
        self._tracer = context.tracer
        self._dialect = database.dialect
        self._is_stopping = is_stopping
        self._decisions = Decisions(database, context.clock)
        self._admin = Admin(context.cluster)
        self._completions = Completions(context)
        self._resolver = Resolver(context, self._decisions)

    async def initialize(self, producer: Initializes) -> None:
        """Take over the transactional id, and settle the transactions that were left prepared."""
        await self._decisions.register(producer.transactional_id)
        for prepared in await producer.init_transactions(
            wait_until_visible=False, keep_prepared=True
        ):
            await self._settle(prepared, is_own=False)
        await self._forget_lost(producer.transactional_id)
        self._resolver.start()

    async def _forget_lost(self, transactional_id: str) -> None:
        """Forget decisions of epochs to come: the cluster went back to a backup, and repeats them.

        A transaction is prepared before its decision can be read, and its producer has the next
        epoch from then on: so of the epoch that is asked for after that read, there is none.
        """
        decided = await self._decisions.of(transactional_id)
        if not decided:
            return
        known = await self._admin.describe_transactions(transactional_id)
        lost = sorted(
            str(each)
            for each in decided
            if each.producer_id == known.producer_id and each.producer_epoch >= known.producer_epoch
        )
        if lost:
            _log.warning(
                "the database has decided transactions that the cluster does not know: %s. The"
                " cluster went back to a backup; the records that they sent to topics are lost",
                ", ".join(lost),
            )
            await self._decisions.forget_any(lost)

    async def decide(
        self,
        prepared: PreparedTransactionId,
        opened: OpenSession[object],
        parent: SpanContext | None = None,
    ) -> None:
        """Commit the open transaction of the database, and with it the prepared one.

        Raises the error of the commit, if the database has not committed; then the prepared
        transaction aborts. A cancelled call leaves the decision to the background. ``parent`` is
        what its span is below, if not below the span of now.
        """
        with committing(self._tracer, self._dialect, prepared, parent):
            await self._decide(prepared, opened)

    async def _decide(self, prepared: PreparedTransactionId, opened: OpenSession[object]) -> None:
        try:
            await self._commit(prepared, opened)
        except Exception as error:
            if not await self._settle(prepared, is_own=True):
                raise
            _log.info("the commit of %s had taken effect: %r", prepared, error)
        except BaseException:
            self._spawn(self._settle_alone(prepared), name=f"settle {prepared}")
            raise
        else:
            await self._completions.add(prepared, commit=True, is_own=True)

    async def _commit(self, prepared: PreparedTransactionId, opened: OpenSession[object]) -> None:
        completed = self._completions.take_completed()
        try:
            await self._decisions.note_committed(opened.statements, prepared, completed)
        except BaseException as error:
            await opened.roll_back(error)
            raise
        await opened.commit()

    async def close(self) -> None:
        """Wait for completions that are under way, and stop resolving."""
        await self._resolver.close()
        await self._completions.close()
        try:
            await self._decisions.forget(self._completions.take_completed())
        except DatabaseUnavailableError as error:
            _log.info("decisions that were carried out stay in the database: %s", error)

    async def _settle(self, prepared: PreparedTransactionId, *, is_own: bool) -> bool:
        """Complete a prepared transaction as the database says; returns whether it commits."""
        for pause_ms in growing_pauses_ms(_PAUSE_MS, _PAUSE_MAX_MS):
            try:
                commit = await self._decisions.is_committed(prepared)
            except DatabaseUnavailableError as error:
                if self._is_stopping():
                    raise DatabaseOutcomeUnknownError(
                        f"the database did not say whether {prepared} is committed: {error.message}"
                    ) from error
                _log.warning("asking the database for %s again: %s", prepared, error)
                await asyncio.sleep(pause_ms / 1000)
            else:
                await self._completions.add(prepared, commit=commit, is_own=is_own)
                return commit
        raise AssertionError("the pauses never end")

    async def _settle_alone(self, prepared: PreparedTransactionId) -> None:
        try:
            await self._settle(prepared, is_own=True)
        except DatabaseUnavailableError as error:
            _log.warning("%s stays prepared until a process resolves it: %s", prepared, error)
