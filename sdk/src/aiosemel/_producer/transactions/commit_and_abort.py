"""How transactions end: commit and abort, their answers, and what cancellation leaves behind.

A call that is cancelled before EndTxn(commit) went out aborts the transaction in the background,
and CancelledError goes on. After, the call asks once more, for ``cancelled_commit_grace_ms``: if
the outcome is known then, CancelledError goes on, else TransactionOutcomeUnknownError is raised
from it. Nothing here ever sends an abort after a commit.
"""

import asyncio

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.sending.pipeline import Pipeline
from aiosemel._producer.sending.producer_spans import active
from aiosemel._producer.sending.request_encoding import end_txn_request
from aiosemel._producer.transactions.end_requests import EndTxn
from aiosemel._producer.transactions.registration import Registration
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import State
from aiosemel._shared.context import Context
from aiosemel.errors import (
    ClosedError,
    RequestTimedOutError,
    RetriableError,
    SemelError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from aiosemel.options.client_options import ProducerOptions
from semel.coordinator.v1.transactions_pb2 import EndTxnRequest, EndTxnResponse
from semel_common.library_log import get_logger
from semel_common.wire.methods import END_TXN

_log = get_logger(__name__)


class Ending:
    """Ends the transactions of one producer."""

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        transactional_id: str,
        manager: TransactionManager,
        pipeline: Pipeline,
        registration: Registration,
    ) -> None:
        self._context = context
        self._options = options
        self._transactional_id = transactional_id
        self._manager = manager
        self._pipeline = pipeline
        self._registration = registration
        self._background: asyncio.Task[None] | None = None
        self._unanswered: EndTxn | None = None
        """The abort that no coordinator has answered, for as long as a call may take."""

    # -- commit ---------------------------------------------------------------------------------

    async def commit(self, deadline: Deadline, *, wait_until_visible: bool) -> None:
        """Send EndTxn(commit), and take its answer: all sends are acknowledged, or have failed.

        Raises TransactionAbortedError, TransactionOutcomeUnknownError.
        """
        end = self._manager.end_commit()
        if end is None:
            return
        self._registration.cancel()
        request = self._request(end, wait_until_visible=wait_until_visible)
        try:
            response = await self._send(request, deadline)
        except asyncio.CancelledError as cancelled:
            await self._learn_outcome(self._request(end), cancelled)
            raise
        except SemelError as error:
            raised = self._commit_failed(error)
            if raised is not None:
                raise raised from error
        else:
            self._ended(response)

    async def _learn_outcome(
        self, request: EndTxnRequest, cancelled: asyncio.CancelledError
    ) -> None:
        """Ask once more; raises TransactionOutcomeUnknownError if there is no answer in time."""
        raised: SemelError | None
        try:
            grace = Deadline.after_ms(self._options.cancelled_commit_grace_ms)
            self._ended(await self._send(request, grace))
            return
        except asyncio.CancelledError:
            raised = self._commit_failed(RequestTimedOutError("commit was cancelled"))
        except SemelError as error:
            raised = self._commit_failed(error)
        if isinstance(raised, TransactionOutcomeUnknownError):
            raise raised from cancelled

    def _commit_failed(self, error: SemelError) -> SemelError | None:
        """Return the error to raise; None if the transaction has committed after all."""
        raised = self._manager.commit_failed(error)
        if self._manager.state is State.READY:
            self.start_epoch()
        return raised

    # -- abort ----------------------------------------------------------------------------------

    async def abort(self, deadline: Deadline) -> None:
        """Give up everything, send EndTxn(abort) if anything was sent, and take its answer.

        Raises RequestTimedOutError: the next transaction sends it again, or another call. Any other
        error is fatal.
        """
        if await self.join_abort(deadline):
            self._manager.accept_abort()
            return
        end = self._begin_abort()
        if end is None:
            return
        try:
            self._ended(await self._send(self._request(end), deadline))
        except asyncio.CancelledError:
            self._abort_later(end)
            raise
        except RetriableError:
            self._unanswered = end
            raise
        except SemelError as error:
            self._manager.abort_failed(error)
            raise

    def abort_in_background(self, because: SemelError) -> None:
        """Abort, for a reason, without letting anybody wait for it."""
        end = self._begin_abort(because)
        if end is not None:
            self._abort_later(end)

    async def settle_abort(self, deadline: Deadline) -> None:
        """Wait for an abort in the background; one that is not answered is sent again.

        Raises RequestTimedOutError.
        """
        await self.join_abort(deadline)
        while self._unanswered is not None:
            self._abort_later(self._unanswered)
            await self.join_abort(deadline)

    async def join_abort(self, deadline: Deadline) -> bool:
        """Wait for an abort in the background; returns whether it ended the transaction."""
        if self._background is None:
            return False
        done, _ = await asyncio.wait([self._background], timeout=deadline.remaining_ms() / 1000)
        if not done:
            raise RequestTimedOutError(
                f"the transaction is still being aborted{self._context.cluster.trouble.suffix}"
            )
        self._background = None
        return self._manager.state is State.READY

    def _begin_abort(self, because: SemelError | None = None) -> EndTxn | None:
        end = self._manager.abort(because)
        self._unanswered = None
        self._registration.cancel()
        self._pipeline.discard_all(TransactionAbortedError("the transaction was aborted"))
        if end is None:
            self.start_epoch()
        return end

    def _abort_later(self, end: EndTxn) -> None:
        self._unanswered = None
        try:
            self._background = self._context.spawn(self._abort_quietly(end), name="abort")
        except ClosedError:
            _log.debug("the client is closed: the coordinator will abort by time-out")

    async def _abort_quietly(self, end: EndTxn) -> None:
        try:
            deadline = Deadline.after_ms(self._options.max_block_ms)
            with active(self._pipeline.spans):
                self._ended(await self._send(self._request(end), deadline))
        except RetriableError as error:
            _log.warning("abort of %s not answered: %s", self._transactional_id, error)
            self._unanswered = end
        except SemelError as error:
            self._manager.abort_failed(error)
        finally:
            self.end_span()

    # -- both -----------------------------------------------------------------------------------

    def _request(self, end: EndTxn, *, wait_until_visible: bool = False) -> EndTxnRequest:
        return end_txn_request(end, self._transactional_id, wait_until_visible=wait_until_visible)

    async def _send(self, request: EndTxnRequest, deadline: Deadline) -> EndTxnResponse:
        cluster = self._context.cluster
        return await cluster.call(
            cluster.coordinator_of(self._transactional_id),
            END_TXN,
            request,
            deadline=deadline,
            request_timeout_ms=self._options.request_timeout_ms,
        )

    def _ended(self, response: EndTxnResponse) -> None:
        self._manager.ended(response.producer_id, response.producer_epoch)
        self.start_epoch()

    def end_span(self) -> None:
        """End the span of the transaction, if it is over."""
        spans, manager = self._pipeline.spans, self._manager
        if spans is None or spans.transaction is None:
            return
        if manager.state in (State.READY, State.FATAL_ERROR):
            spans.end(manager.outcome, manager.error)

    def start_epoch(self) -> None:
        """Let the pipeline go on with the epoch that the manager has."""
        self._registration.cancel()
        self._pipeline.start_epoch(self._manager.producer_id, self._manager.producer_epoch)
