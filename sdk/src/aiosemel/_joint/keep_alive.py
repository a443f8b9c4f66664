"""Keeps a joint transaction from timing out, for as long as a process works on it."""

import asyncio
from collections.abc import Callable

from aiosemel._cluster.retry import Deadline
from aiosemel._shared.background_task import end_task
from aiosemel._shared.context import Context
from aiosemel.errors import RetriableError, SemelError, TransactionAbortableError
from aiosemel.types.joint_handle import JointHandle, transaction_message
from semel.coordinator.v1.transactions_pb2 import KeepAliveTxnRequest
from semel_common.library_log import get_logger
from semel_common.wire.methods import KEEP_ALIVE_TXN

_log = get_logger(__name__)

_TIMES = 3
"""How often within the timeout, so that one or two may get lost."""


class KeepAlive:
    """Asks the coordinator again and again, from ``start`` to ``close``."""

    def __init__(
        self,
        context: Context,
        handle: JointHandle,
        ended: Callable[[SemelError], bool],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Do nothing yet. ``ended`` hears why the transaction is not open; True: stop.

        ``check`` may raise before each question.
        """
        self._context = context
        self._handle = handle
        self._ended = ended
        self._check = check
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; the first request goes after a third of the timeout."""
        assert self._task is None, "started twice"
        self._task = self._context.spawn(self.run(), name="keep alive")

    async def close(self) -> None:
        """Stop. May be called twice, and before ``start``."""
        task, self._task = self._task, None
        await end_task(task)

    async def run(self) -> None:
        """Ask until ``ended`` says that it is enough."""
        pause_s = self._handle.transaction_timeout_ms / 1000 / _TIMES
        while True:
            await asyncio.sleep(pause_s)
            self._check()
            error = await self._keep_alive()
            if error is not None and self._ended(error):
                return

    async def _keep_alive(self) -> SemelError | None:
        cluster = self._context.cluster
        try:
            response = await cluster.call(
                cluster.coordinator_of(self._handle.transactional_id),
                KEEP_ALIVE_TXN,
                KeepAliveTxnRequest(transaction=transaction_message(self._handle)),
                deadline=Deadline.after_ms(self._handle.transaction_timeout_ms / _TIMES),
            )
        except RetriableError as error:
            _log.debug("joint transaction not kept alive: %s", error)
            return None
        except SemelError as error:
            return error
        if response.already_committed:
            return TransactionAbortableError(
                f"version {self._handle.txn_version} of {self._handle.transactional_id} is"
                " committed already"
            )
        return None
