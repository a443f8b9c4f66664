"""One transaction as a context manager: how the block ends says what becomes of it."""

from types import TracebackType
from typing import Self

from aiosemel._producer.sends import TransactionSends
from aiosemel._producer.transactions.transaction_driver import Transactions
from aiosemel._producer.transactions.transaction_states import TransactionOutcome
from aiosemel._shared.process_and_loop import running_loop
from aiosemel.errors import (
    IllegalStateError,
    RequestTimedOutError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class Transaction(TransactionSends):
    """One transaction, for ``async with``. Made by ``TransactionalProducer.transaction``.

    The block's end commits; raises as ``commit`` does, but leaves nothing to be called after a
    definite abort: the producer is ready for the next transaction, or done. A block that ends
    without an exception has committed, unless it has called ``abort`` or ``prepare`` itself. An
    exception in the block aborts, and goes on. A cancellation aborts in the background, and goes
    on. If the coordinator does not answer an abort, the next block sends it again before it begins.
    Its sends are those of ``TransactionalProducer``, and never outside of this transaction.
    """

    def __init__(
        self, transactions: Transactions, *, wait_until_visible: bool, may_prepare: bool = True
    ) -> None:
        super().__init__(transactions)
        self._may_prepare = may_prepare
        self._wait_until_visible = wait_until_visible
        self._number: int | None = None
        self._outcome: TransactionOutcome | None = None

    @property
    def outcome(self) -> TransactionOutcome | None:
        """The outcome; None while the transaction is open."""
        return self._manager.outcome if self._is_latest() else self._outcome

    async def prepare(self) -> PreparedTransactionId:
        """As ``TransactionalProducer.prepare``: then the block's end does nothing more.

        Raises IllegalStateError in a block of a pool, which cannot complete it.
        """
        self._check_writer()
        if not self._may_prepare:
            raise IllegalStateError(
                "a block of a pool cannot prepare, because the pool cannot complete a prepared"
                " transaction: use a producer, client.transactional_producer(id)"
            )
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
        self._home.check()
        if not self._is_latest():
            return  # The block has ended it itself, and begun another.
        try:
            if exc is None:
                await self._commit()
            elif isinstance(exc, Exception):
                await self._abort()
            else:
                cancelled = TransactionAbortableError("the block was cancelled")
                self._transactions.abort_in_background(cancelled)
        finally:
            self._outcome = self._manager.outcome

    async def _commit(self) -> None:
        if not self._transactions.is_open and self._manager.loss is None:
            return  # The block has ended it itself.
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

    def _check_writer(self) -> None:
        self._home.check()
        if self._number != self._manager.begun:
            raise IllegalStateError(
                "this transaction is not open: its block has not begun, or has ended"
            )

    def _check_send(self) -> None:
        if (
            running_loop() is not self._home.loop
            or self._number != self._manager.begun
            or not self._manager.takes_records
        ):
            super()._check_send()

    def _is_latest(self) -> bool:
        return self._number is not None and self._number == self._manager.begun
