"""The producer with transactions: records and offsets become visible together, or not at all."""

from typing import Self

from aiosemel._producer.sends import TransactionSends
from aiosemel._producer.transaction_block import Transaction
from aiosemel._producer.transactions.transaction_driver import Transactions
from aiosemel._shared.context import Context
from aiosemel._shared.process_and_loop import running_loop
from aiosemel._shared.value_checks import check_name
from aiosemel.errors import ClosedError, InvalidConfigError
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.prepared_transaction import PreparedTransactionId


class TransactionalProducer(TransactionSends):
    """Sends records in transactions. Made by ``SemelClient.transactional_producer``.

    ::

        await producer.init_transactions()
        async with producer.transaction() as txn:
            await txn.send("payments", b"42", key=b"alice")
            await txn.send_offsets(offsets, consumer.group_metadata())

    There is one transaction at a time for each producer; tasks that run at the same time share a
    pool, ``SemelClient.transactions``.

    The calls, one by one and by Kafka's rules, are ``init_transactions`` once, then again and again
    ``begin_transaction``, sends, and ``commit`` or ``abort``. A call out of order raises
    IllegalStateError, which names the state; it changes nothing. After an
    AbortableTransactionError, call ``abort``; after an ApplicationRecoverableError, such as
    ProducerFencedError, close this producer and make another.
    """

    def __init__(self, context: Context, options: ProducerOptions, transactional_id: str) -> None:
        check_name("transactional_id", transactional_id, InvalidConfigError)
        self._context = context
        super().__init__(Transactions(context, options, transactional_id))
        self._closed = False

    @property
    def transactional_id(self) -> str:
        """The id under which this producer's transactions stand."""
        return self._transactions.transactional_id

    async def init_transactions(
        self, *, wait_until_visible: bool = True, keep_prepared: bool = False
    ) -> tuple[PreparedTransactionId, ...]:
        """Take over the transactional id: fence its older producers, abort what they left open.

        Partitions may still store what an older producer sends, until this one sends there. Nothing
        of it ever becomes visible, and the older producer's commit is refused.
        Also waits until readers see the outcomes of all earlier transactions of this id. If the
        older producer was killed before it registered a partition (``registration_delay_ms``),
        readers of the partition wait until it has asked, some 10 s. With
        ``wait_until_visible=False``, the call does not wait: enough for a producer that restores
        only offsets. With ``keep_prepared=True``, prepared transactions stay prepared, and the call
        returns them, the oldest first: complete each as the outside system says. Without it, they
        abort.
        After RequestTimedOutError, or when it was cancelled, call it again. Any other error is
        final.
        """
        self._check_writer()
        return await self._transactions.init_transactions(
            wait_until_visible=wait_until_visible, keep_prepared=keep_prepared
        )

    async def begin_transaction(self) -> None:
        """Begin a transaction. Sends nothing yet.

        An abort that is not answered yet is sent again first. Raises RequestTimedOutError if no
        answer comes in ``max_block_ms``: then call it again.
        """
        self._check_writer()
        await self._transactions.begin_transaction()

    def transaction(self, *, wait_until_visible: bool = False) -> Transaction:
        """Return a transaction for ``async with``: commits at the end, aborts at an exception."""
        return Transaction(self._transactions, wait_until_visible=wait_until_visible)

    async def flush(self) -> None:
        """Wait until all that was sent so far is stored, or given up. ``commit`` does it too.

        Returns at once when the transaction can only be aborted.
        """
        self._check_writer()
        await self._transactions.flush()

    async def commit(self, *, wait_until_visible: bool = False) -> None:
        """Commit the transaction: it is durable, and decided, when this returns.

        Readers see it within milliseconds; with ``wait_until_visible=True``, at once. Where others
        have older transactions open in a partition, readers wait for these in any case.

        Raises TransactionAbortedError if it did not commit and never will: call ``abort`` then, or,
        if its ``__cause__`` is an ApplicationRecoverableError, close this producer. Raises
        TransactionOutcomeUnknownError if no coordinator answered: await its ``resolve()``, or call
        ``commit`` again. Raises RequestTimedOutError if some records were not acknowledged in
        ``max_block_ms``, and so no commit was sent: call ``commit`` again, or ``abort``.

        Cancelled before the commit was sent, it aborts in the background. Cancelled after that, it
        goes on for ``cancelled_commit_grace_ms`` to learn the outcome, and raises
        TransactionOutcomeUnknownError without.
        """
        self._check_writer()
        await self._transactions.commit(wait_until_visible=wait_until_visible)

    async def prepare(self) -> PreparedTransactionId:
        """Prepare the transaction: from here on it can be committed, and never times out.

        For two-phase commit with a system outside, such as a database: store what is returned
        there, in the same transaction as what belongs to it; then ``complete_prepared``. The
        producer may begin its next transaction at once.

        Raises TransactionAbortedError if it is not prepared and never will be: then as ``commit``.
        Raises RequestTimedOutError if it may be prepared or not: call ``prepare`` again, or
        ``abort``. Any other error is final. Cancelled, it aborts in the background.
        """
        self._check_writer()
        return await self._transactions.prepare()

    async def complete_prepared(
        self, prepared: PreparedTransactionId, *, commit: bool, wait_until_visible: bool = False
    ) -> None:
        """Commit or abort a transaction that was prepared under this transactional id.

        By this producer, or by one before it. May be called again, and at any time after
        ``init_transactions``. The decision is durable when this returns; with
        ``wait_until_visible=True``, readers see it.

        Raises ProducerFencedError if another producer has taken over, which has to complete it.
        Raises InvalidTxnStateError if it has ended otherwise; ``details["outcome"]`` says how. An
        outcome that is older than 256 transactions of this id is not known any more.
        """
        self._check_writer()
        await self._transactions.complete_prepared(
            prepared, commit=commit, wait_until_visible=wait_until_visible
        )

    async def abort(self) -> None:
        """Abort the transaction: none of it ever becomes visible.

        After RequestTimedOutError, call it again, or begin the next transaction, which does the
        same. Any other error is final. Cancelled, it goes on in the background.
        """
        self._check_writer()
        await self._transactions.abort()

    async def close(self) -> None:
        """Abort an open transaction, and stop. May be called twice.

        A block that is still open raises TransactionAbortedError at its end.
        """
        self._context.cluster.home.check()
        self._closed = True
        try:
            await self._transactions.close(_closed())
        finally:
            self._context.forget(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _check_writer(self) -> None:
        self._home.check()
        if self._closed:
            raise _closed()

    def _check_send(self) -> None:
        if running_loop() is not self._home.loop or self._closed or not self._manager.takes_records:
            super()._check_send()


def _closed() -> ClosedError:
    return ClosedError("the producer is closed")
