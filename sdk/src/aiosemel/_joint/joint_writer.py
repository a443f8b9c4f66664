"""A writer of a joint transaction: records in, a receipt out."""

from dataclasses import replace
from typing import Self

from aiosemel._cluster.retry import Deadline
from aiosemel._joint.joint_trace import joint_parent, joint_span
from aiosemel._joint.keep_alive import KeepAlive
from aiosemel._producer.sends import TransactionSends
from aiosemel._producer.transactions.transaction_driver import Transactions
from aiosemel._shared.context import Context
from aiosemel.errors import ClosedError, IllegalStateError, SemelError
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.client_names import new_name
from aiosemel.types.joint_handle import JointHandle, JointReceipt, transaction_message
from semel.coordinator.v1.transactions_pb2 import JoinTxnRequest


class JointWriter(TransactionSends):
    """One of many writers of a joint transaction. Made by ``SemelClient.join``.

    ::

        async with client.join(handle) as writer:
            if not writer.already_committed:
                await writer.send_columns("payments", values)
            receipt = await writer.finish()

    What it sends becomes visible when the owner commits with its receipt, together with what all
    others sent that the owner names. Without, it never does. Any number of writers may be at work
    for the same task: the owner chooses.
    """

    def __init__(
        self, context: Context, options: ProducerOptions, handle: JointHandle, name: str
    ) -> None:
        self._context = context
        self._handle = handle
        self._max_block_ms = options.max_block_ms
        self._name = new_name(name, context.random.getrandbits(128))
        # The owner of the transaction may never hear of this writer: it failed, or another one did
        # the same work. Readers would wait until its participants inquire about the outcome.
        at_once = replace(options, registration_delay_ms=0)
        super().__init__(Transactions(context, at_once, handle.transactional_id))
        self._keep_alive = KeepAlive(context, handle, self._ended)
        self._already_committed: bool | None = None
        self._receipt: JointReceipt | None = None
        self._closed = False

    @property
    def handle(self) -> JointHandle:
        """The transaction that it writes to."""
        return self._handle.in_cluster(self._context.cluster.identity.cluster_id)

    @property
    def already_committed(self) -> bool:
        """Whether there is nothing to do: this version, or a later one, is committed.

        Raises IllegalStateError before ``join``.
        """
        if self._already_committed is None:
            raise IllegalStateError("the writer has not joined yet")
        return self._already_committed

    async def join(self) -> None:
        """Join the transaction; the first writer opens it. ``async with`` does it by itself.

        Raises InconsistentClusterIdError for the handle of another cluster, and
        ProducerFencedError when a newer run was seen, JointOwnerMismatchError when the id
        belongs to another owner. Waits as long as another version of this run is open. After
        RequestTimedOutError, or when it was cancelled, call it again; TransactionAbortableError
        when the version was aborted meanwhile: a new writer can join its next attempt.
        """
        self._check_open()
        if self._already_committed is not None:
            raise IllegalStateError("the writer has joined already")
        handle = self._handle
        await self._context.cluster.check_belongs(
            handle.cluster_id, handle.what, Deadline.after_ms(self._max_block_ms)
        )
        request = JoinTxnRequest(
            transaction=transaction_message(handle),
            writer=self._name,
            transaction_timeout_ms=handle.transaction_timeout_ms,
            reset=handle.reset,
            one_shot=handle.one_shot,
        )
        tracer = self._context.tracer
        with joint_span(tracer, "join", handle):
            parent = None if tracer is None else joint_parent(tracer, handle)
            self._already_committed = not await self._transactions.join(request, parent)
        self._check_open()  # A close during the start would never end the task that keeps it alive.
        if not self._already_committed:
            self._keep_alive.start()

    async def finish(self) -> JointReceipt:
        """Wait until all is stored, and return what the owner needs to commit it.

        Nothing can be sent after it. A repeat returns the same. Raises TransactionAbortedError when
        a send has failed or the transaction is over; RequestTimedOutError when not everything was
        acknowledged in ``max_block_ms``: call it again, as also when it was cancelled.
        """
        self._check_open()
        if self._receipt is None:
            self._receipt = await self._finish()
        return self._receipt

    async def close(self) -> None:
        """Stop. Records without a receipt abort when the owner ends the transaction.

        May be called twice.
        """
        self._context.cluster.home.check()
        self._closed = True
        try:
            await self._keep_alive.close()
        finally:
            try:
                await self._transactions.leave(_closed())
            finally:
                self._context.forget(self)

    async def __aenter__(self) -> Self:
        try:
            await self.join()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _finish(self) -> JointReceipt:
        if self.already_committed:
            return JointReceipt(handle=self.handle, already_committed=True)
        manager = self._transactions.manager
        key = (manager.producer_id, manager.producer_epoch)
        participants = await self._transactions.seal()
        return JointReceipt(
            handle=self.handle,
            producer_id=key[0],
            producer_epoch=key[1],
            participants=participants,
        )

    def _ended(self, error: SemelError) -> bool:
        """Let nothing more be sent: the transaction is over."""
        self._transactions.fail(error)
        return True

    def _check_writer(self) -> None:
        self._check_open()
        if self.already_committed:
            raise IllegalStateError("the version is committed already: there is nothing to write")

    def _check_open(self) -> None:
        self._context.cluster.home.check()
        if self._closed:
            raise _closed()


def _closed() -> ClosedError:
    return ClosedError("the writer is closed")
