"""Many transactions at once: a pool of transactional producers, one for each open transaction.

Theory of operation. The pool has a fixed number of slots. Each slot has a transactional id of its
own, ``orders-0`` and so on, and one producer. Opening the pool takes over all ids at once: that
fences the producers of the process before this one, and aborts what they left open. A block takes a
slot, first come, first served, and gives it back at its end.

A slot whose producer is not ready at the end of a block is made ready in the background, and is
free again only then: an abort goes on until it is answered, a commit until its outcome is known,
and a producer that is done is replaced. None of this keeps blocks from the other slots.

A producer that was fenced is not replaced: that would fence the process that has taken over, and
the two would take turns for ever. Instead the whole pool ends, and says why.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.pool.fair_queue import Turns
from aiosemel._producer.pool.slot import PoolSlot
from aiosemel._producer.transaction_block import Transaction
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.closing import Closing
from aiosemel._shared.context import Context
from aiosemel.errors import (
    ClosedError,
    IllegalStateError,
    NoFreeProducerError,
    ProducerFencedError,
    RetriableError,
    SemelError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from aiosemel.options.client_options import ProducerOptions
from aiosemel.options.pool_options import PoolOptions, checked_size
from semel_common.library_log import get_logger

_log = get_logger(__name__)


class TransactionPool:
    """Runs transactions at the same time. Made by ``SemelClient.transactions``.

    ::

        async with client.transactions("orders", size=8) as pool:
            async with pool.transaction() as txn:
                await txn.send("orders", b"margherita", key=b"table-7")

    Make one pool for a process, when it starts. Blocks may run in any number of tasks: ``size`` of
    them have a transaction at the same time, the others wait for their turn. A task that enters a
    second block within a block needs two producers at once.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        size: int,
        options: PoolOptions,
        producer_options: ProducerOptions,
    ) -> None:
        """Ask for nothing yet: ``open`` does."""
        self._context = context
        self._name = name
        self._options = options
        self._slots = [
            PoolSlot(
                context,
                producer_options,
                f"{name}-{number}",
                wait_until_visible=options.wait_until_visible,
            )
            for number in range(checked_size(size))
        ]
        self._turns: Turns[PoolSlot] = Turns()
        self._in_use: set[PoolSlot] = set()
        self._returned = Signal()
        self._restoring: set[asyncio.Task[None]] = set()
        self._trouble: SemelError | None = None
        self._opened = False
        self._error: SemelError | None = None
        self._closing = Closing(lambda: context.forget(self))

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """The transactional id of each producer."""
        return tuple(slot.transactional_id for slot in self._slots)

    @property
    def error(self) -> SemelError | None:
        """Why the pool has ended by itself, so that every block raises; None while it works."""
        return self._error

    async def open(self) -> None:
        """Take over all transactional ids, which fences the process that had them before.

        Raises RequestTimedOutError if the cluster does not answer in ``max_block_ms``, and what
        ``TransactionalProducer.init_transactions`` raises. IllegalStateError: a pool can be opened
        once; make another.
        """
        self._context.cluster.home.check()
        if self._opened:
            raise IllegalStateError(f"the pool {self._name!r} was opened before: make another")
        self._opened = True
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots:
                    group.create_task(slot.make_ready(), name=f"init {slot.transactional_id}")
        except BaseExceptionGroup as errors:
            await self.close()
            raise _first(errors) from None
        except BaseException:
            await self.close()
            raise
        for slot in self._slots:
            self._turns.give(slot)

    @asynccontextmanager
    async def transaction(self, *, wait_until_visible: bool = False) -> AsyncIterator[Transaction]:
        """Run a block in a transaction: commits at its end, aborts at an exception.

        As ``TransactionalProducer.transaction``, when a producer is free. The block raises the same
        errors; besides, at its begin, NoFreeProducerError if no producer becomes free in
        ``acquire_timeout_ms``, ClosedError outside of ``async with`` of the pool, and
        ProducerFencedError from the moment on that another process has taken over: make another
        pool under a name that no other process has.
        """
        slot = await self._take()
        try:
            producer = slot.producer
            async with Transaction(
                producer, wait_until_visible=wait_until_visible, may_prepare=False
            ) as transaction:
                yield transaction
        except SemelError as error:
            if isinstance(error, TransactionOutcomeUnknownError) and slot.has_sent(error):
                slot.unknown = error
            if slot.fence is not None:
                raise self._explained(error, slot) from error
            raise
        finally:
            self._give_back(slot)

    async def close(self) -> None:
        """Take no new blocks, wait for the running ones, and stop. May be called twice.

        A block that runs for longer than ``close_timeout_ms`` is aborted: it raises
        TransactionAbortedError at its end.
        """
        self._context.cluster.home.check()
        await self._closing.once(self._close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- taking and giving back ------------------------------------------------------------------

    async def _take(self) -> PoolSlot:
        self._context.cluster.home.check()
        if not self._opened:
            raise ClosedError(f"the pool {self._name!r} is not open: enter it with `async with`")
        try:
            slot = await self._turns.take(self._options.acquire_timeout_ms)
        except TimeoutError:
            raise self._no_free_producer() from None
        self._in_use.add(slot)
        return slot

    def _give_back(self, slot: PoolSlot) -> None:
        self._in_use.discard(slot)
        if slot.fence is not None:
            self._end(self._fenced(slot))
        elif slot.is_ready:
            self._turns.give(slot)
        elif not self._closing.under_way:
            self._restore_later(slot)
        self._returned.notify()

    def _no_free_producer(self) -> NoFreeProducerError:
        options, restoring = self._options, len(self._restoring)
        trouble = "" if self._trouble is None else f", because {self._trouble}"
        being_restored = f", {restoring} wait for the cluster{trouble}" if restoring else ""
        return NoFreeProducerError(
            f"no producer of the pool {self._name!r} was free for {options.acquire_timeout_ms} ms:"
            f" {len(self._in_use)} of {len(self._slots)} are in blocks{being_restored}; end blocks"
            " sooner, or make the pool with a larger size"
        )

    # -- slots that are not ready ----------------------------------------------------------------

    def _restore_later(self, slot: PoolSlot) -> None:
        try:
            task = self._context.spawn(self._restore(slot), name=f"restore {slot.transactional_id}")
        except ClosedError as error:  # The client is: nothing will ever be sent again.
            self._end(error)
            return
        self._restoring.add(task)
        task.add_done_callback(self._restoring.discard)

    async def _restore(self, slot: PoolSlot) -> None:
        """Make a slot ready, however long that takes, and give it to the next block."""
        attempts = 0
        while not slot.is_ready:
            try:
                await slot.make_ready()
            except RetriableError as error:
                attempts += 1
                self._trouble = error
                _log.warning("%s is not ready yet: %s", slot.transactional_id, error)
                await self._context.cluster.pause(attempts)
            except SemelError as error:
                self._end(error if slot.fence is None else self._fenced(slot))
                return
        self._trouble = None
        self._turns.give(slot)

    # -- the end ---------------------------------------------------------------------------------

    def _explained(self, error: SemelError, slot: PoolSlot) -> SemelError:
        """Return an error of a block whose producer was fenced, which says what to do about it."""
        fenced = self._fenced(slot)
        match error:
            case TransactionAbortedError():
                return TransactionAbortedError(f"{error.message}; {fenced.message}")
            case ProducerFencedError():
                return fenced
            case _:
                error.add_note(fenced.message)
                return error

    def _fenced(self, slot: PoolSlot) -> ProducerFencedError:
        return ProducerFencedError(
            f"the pool {self._name!r} has ended: another process, or an operator, has taken its"
            f" transactional id {slot.transactional_id!r}. If two processes use this name at the"
            " same time, give each a name of its own that it keeps over restarts:"
            " client.transactions(prefix, instance='web-1')",
            transactional_id=slot.transactional_id,
        )

    def _end(self, error: SemelError) -> None:
        if self._error is None:
            self._error = error.as_value()
            self._turns.end(self._error)
            if not self._closing.under_way:
                _log.warning("%s", error.message)

    async def _close(self) -> None:
        self._turns.end(ClosedError(f"the pool {self._name!r} is closed"))
        cancelled = False
        try:
            await self._wait_for_blocks()
        except asyncio.CancelledError:
            cancelled = True
            raise
        finally:
            for task in self._restoring:
                task.cancel()
            async with asyncio.TaskGroup() as group:
                closing = [group.create_task(slot.close()) for slot in self._slots]
                await asyncio.sleep(0)  # A task that is cancelled before it begins closes nothing.
                for task in closing if cancelled else ():
                    task.cancel()

    async def _wait_for_blocks(self) -> None:
        deadline = Deadline.after_ms(self._options.close_timeout_ms)
        while self._in_use and not deadline.passed:
            await self._returned.wait(deadline.remaining_ms())
        if self._in_use:
            _log.warning(
                "%d transactions of the pool %r are aborted: their blocks still run after %d ms",
                len(self._in_use),
                self._name,
                self._options.close_timeout_ms,
            )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, which stands for all: they ask the same cluster."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
