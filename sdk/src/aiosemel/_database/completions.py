"""Tells the cluster what the database has decided: in the background, until the cluster knows.

The next transaction of a producer does not wait for the completion of the one before. A completion
is not fenced by an epoch: the database has decided, so any process may tell.
"""

import asyncio
from contextlib import AbstractContextManager

from aiosemel._admin.admin import Admin
from aiosemel._cluster.retry import growing_pauses_ms
from aiosemel._database.database_spans import place_in_trace
from aiosemel._shared.context import Context
from aiosemel.errors import (
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    SemelError,
    TransactionalIdNotFoundError,
)
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel_common.library_log import get_logger

_log = get_logger(__name__)

PREPARED_MAX = 48
"""How many transactions of a producer may wait for their completion. The cluster takes 64."""
_CLOSE_TIMEOUT_S = 5.0
_PAUSE_MS, _PAUSE_MAX_MS = 50, 5_000
_LOST = (InvalidTxnStateError, InvalidProducerIdMappingError, TransactionalIdNotFoundError)


class Completions:
    """The completions of one transactional id that are under way."""

    def __init__(self, context: Context) -> None:
        self._admin = Admin(context.cluster)
        self._spawn = context.spawn
        self._room = asyncio.Semaphore(PREPARED_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._completed: list[PreparedTransactionId] = []

    def take_completed(self) -> list[PreparedTransactionId]:
        """Return the own transactions that the cluster has committed, each once."""
        taken, self._completed = self._completed, []
        return taken

    async def add(self, prepared: PreparedTransactionId, *, commit: bool, is_own: bool) -> None:
        """Complete a transaction in the background; waits while too many are under way.

        ``is_own``: this process prepared it. The decision on another process's transaction must
        stay in the database: that process may live, and ask for it later.
        """
        place = place_in_trace()
        await self._room.acquire()
        completing = self._complete(prepared, place, commit=commit, forget=commit and is_own)
        task = self._spawn(completing, name=f"complete {prepared}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def close(self) -> None:
        """Wait for completions under way, for a while: other processes do the rest."""
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=_CLOSE_TIMEOUT_S)
        for task in self._tasks:
            task.cancel()

    async def _complete(
        self,
        prepared: PreparedTransactionId,
        place: AbstractContextManager[object],
        *,
        commit: bool,
        forget: bool,
    ) -> None:
        with place:
            await self._insist(prepared, commit=commit)
        if forget:
            self._completed.append(prepared)

    async def _insist(self, prepared: PreparedTransactionId, *, commit: bool) -> None:
        for pause_ms in growing_pauses_ms(_PAUSE_MS, _PAUSE_MAX_MS):
            try:
                await complete(self._admin, prepared, commit=commit)
            except SemelError as error:
                _log.warning("completing %s again: %s", prepared, error)
                await asyncio.sleep(pause_ms / 1000)
            else:
                return


async def complete(admin: Admin, prepared: PreparedTransactionId, *, commit: bool) -> None:
    """Complete a transaction. Logs an error if the cluster has ended it otherwise."""
    try:
        await admin.complete_prepared(prepared, commit=commit)
    except _LOST as error:
        if commit:
            _log.warning(
                "the database has committed %s, and the cluster has not: %s. The cluster went back"
                " to a backup; the records that this transaction sent to topics are lost",
                prepared,
                error,
            )
