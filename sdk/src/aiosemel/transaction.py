"""One transaction as a context manager: how the block ends says what becomes of it."""

import logging
from types import TracebackType
from typing import Self

from aiosemel._producer.transaction_states import TransactionOutcome
from aiosemel._producer.transactions import Transactions
from aiosemel.errors import (
    IllegalStateError,
    RequestTimedOutError,
    SemelError,
    TransactionAbortedError,
)
from aiosemel.prepared import PreparedTransactionId
from aiosemel.transaction_writer import TransactionWriter

_log = logging.getLogger(__name__)


class Transaction(TransactionWriter):
    """One transaction, for ``async with``. Made by ``TransactionalProducer.transaction``.

    The block's end commits; raises as ``commit`` does, but leaves nothing to be called after a
    definite abort: the producer is ready for the next transaction. An exception in the block
    aborts, and goes on. A cancellation aborts in the background, and goes on. Once the block has
    ended, it refuses what is still sent to it: that is not another transaction's.
    """

    def __init__(self, transactions: Transactions, *, wait_until_visible: bool) -> None:
        super().__init__(transactions)
        self._manager = transactions.manager
        self._wait_until_visible = wait_until_visible
        self._number: int | None = None
        self._outcome: TransactionOutcome | None = None

    @property
    def outcome(self) -> TransactionOutcome | None:
        """What became of it; None while it is open."""
        return self._manager.outcome if self._is_latest() else self._outcome

    async def prepare(self) -> PreparedTransactionId:
        """As ``TransactionalProducer.prepare``: then the block's end does nothing more."""
        self._check_writing()
        return await self._transactions.prepare()

    async def __aenter__(self) -> Self:
        if self._number is not None:
            raise IllegalStateError("a transaction can be entered only once: make another")
        await self._transactions.begin_transaction()
        self._number = self._manager.begun
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_latest():
            return  # The block has ended it itself, and begun another.
        try:
            if not self._transactions.is_open:
                pass  # The block has ended it itself, or nobody can.
            elif exc is None:
                await self._commit()
            elif isinstance(exc, Exception):
                await self._abort()
            else:
                self._transactions.abort_in_background()
        finally:
            self._outcome = self._manager.outcome

    async def _commit(self) -> None:
        try:
            await self._transactions.commit(wait_until_visible=self._wait_until_visible)
        except TransactionAbortedError:
            await self._abort()
            raise
        except RequestTimedOutError as error:
            # No commit was sent: so it is ours to say what becomes of it.
            await self._abort()
            raise TransactionAbortedError(f"aborted: {error.message}") from error

    async def _abort(self) -> None:
        """Abort; what goes wrong must not hide why."""
        if not self._transactions.is_open:
            return
        try:
            await self._transactions.abort()
        except SemelError as error:
            _log.warning("abort of %s failed: %s", self._transactions.transactional_id, error)

    def _check_writing(self) -> None:
        if not self._is_latest():
            raise IllegalStateError("this transaction is not open: not yet, or no longer")

    def _is_latest(self) -> bool:
        return self._number is not None and self._number == self._manager.begun
