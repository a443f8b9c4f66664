"""The owner of a joint transaction: one decision for what many processes wrote."""

import asyncio
from collections.abc import Iterable
from enum import StrEnum
from types import TracebackType
from typing import Self

from aiosemel._cluster.retry import Deadline
from aiosemel._joint.joint_trace import joint_span
from aiosemel._joint.keep_alive import KeepAlive
from aiosemel._producer.sending.request_encoding import wait_for
from aiosemel._shared.context import Context
from aiosemel.errors import (
    ApplicationRecoverableError,
    ClosedError,
    IllegalStateError,
    InconsistentClusterIdError,
    InvalidRequestError,
    JointOutcomeUnknownError,
    JointOwnerMismatchError,
    RetriableError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.joint_handle import (
    JointHandle,
    JointReceipt,
    transaction_message,
    writer_message,
)
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1.transactions_pb2 import EndJointTxnRequest, EndJointTxnResponse
from semel_common.library_log import get_logger
from semel_common.wire.methods import END_JOINT_TXN

_log = get_logger(__name__)

_COMMITTED = "COMMITTED"
_ABORTED = "ABORTED"


class JointOutcome(StrEnum):
    """How a version of a joint transaction stands."""

    COMMITTED = "COMMITTED"
    """By this owner's call."""
    ALREADY_COMMITTED = "ALREADY_COMMITTED"
    """Before, by another call: writers that it did not name abort. If the version is done again,
    nothing is missing; ``JointTransaction.repeated_in_run`` says whether it is."""
    ABORTED = "ABORTED"


class JointTransaction:
    """Ends a joint transaction. Made by ``SemelClient.joint_transaction``.

    ::

        async with client.joint_transaction("sink-1", batch_id, owner=query_id) as joint:
            receipts = await run_tasks(joint.handle.to_json())  # each joins, and returns one
            await joint.commit(JointReceipt.from_json(each) for each in receipts)

    The block keeps the transaction alive; an end of the block without a commit aborts it. A
    cancelled block waits for the abort no longer than ``cancelled_commit_grace_ms``. Without the
    block, the writers alone keep the transaction alive.
    """

    def __init__(self, context: Context, options: ProducerOptions, handle: JointHandle) -> None:
        self._context = context
        self._options = options
        self._handle = handle
        self._keep_alive = KeepAlive(context, handle, self._not_open)
        self._sent: EndJointTxnRequest | None = None
        """The last commit, unless it has certainly not taken effect."""
        self._outcome: JointOutcome | None = None
        self._repeated_in_run = False
        self._closed = False

    @property
    def handle(self) -> JointHandle:
        """The handle that writers need to join."""
        return self._handle.in_cluster(self._context.cluster.identity.cluster_id)

    @property
    def outcome(self) -> JointOutcome | None:
        """The outcome; None while it is open or unknown, or a commit may be tried once more."""
        return self._outcome

    @property
    def repeated_in_run(self) -> bool:
        """Whether this run was told before, of another commit, that the version is committed.

        A version is done once in a run. So this commit was about something else, which is missing.
        """
        return self._repeated_in_run

    async def commit(
        self, receipts: Iterable[JointReceipt], *, wait_until_visible: bool = False
    ) -> JointOutcome:
        """Commit the records of these writers, all at once; those of other writers abort.

        Without receipts, the version is committed empty. The commit is durable when this returns;
        readers see it within milliseconds, with ``wait_until_visible=True`` at once. If a partition
        has older open transactions, its readers wait for these first. If a writer was killed
        between a send and its registration, readers of the partition wait until the broker asks
        about the transaction, 10 s. Receipts that say ``already_committed`` may be among them.

        Raises TransactionAbortedError if nothing of it is committed, nor ever will be: a writer was
        lost, because the transaction timed out, or the coordinator saw a newer run (then
        ``__cause__`` is an ApplicationRecoverableError). Do the version again, or give up. Raises
        JointOutcomeUnknownError if no coordinator answered: call it again with the same receipts,
        also after the block. Raises JointOwnerMismatchError unless it was sent before, and
        InvalidRequestError for receipts of another transaction. May be called again after it
        returned, and returns the same for the same receipts. Raises InconsistentClusterIdError, and
        sends nothing, when handle or receipts are of another cluster than the client.

        When it is cancelled, it goes on for ``cancelled_commit_grace_ms`` to learn the outcome, and
        raises JointOutcomeUnknownError if it does not learn the outcome.
        """
        was_unknown = self._is_unknown
        if not was_unknown:  # Nothing is sent then, so the outcome is not unknown.
            self._context.cluster.identity.check()
            await self._check_cluster(self._options.max_block_ms)
        request = self._commit_request(receipts, wait_until_visible=wait_until_visible)
        self._sent = request
        if self._outcome is JointOutcome.ABORTED:
            self._outcome = None  # It is tried once more.
        try:
            response = await self._send(request, self._options.max_block_ms)
        except asyncio.CancelledError as cancelled:
            await self._learn_outcome(request, cancelled)
            raise
        except SemelError as error:
            return self._commit_failed(error, was_unknown=was_unknown)
        return self._committed(response)

    async def abort(self, receipts: Iterable[JointReceipt] = ()) -> JointOutcome:
        """Abort the records of all writers; returns ALREADY_COMMITTED for a committed version.

        With receipts, participants hear of it at once; without, some ask later. After
        RequestTimedOutError, or when it was cancelled, call it again. Raises IllegalStateError
        after a commit whose outcome is unknown, ProducerFencedError and JointOwnerMismatchError.
        """
        return await self._abort(receipts, self._options.max_block_ms)

    async def keep_alive(self) -> None:
        """Keep it alive until it is over, committed or not; for a process that does not end it.

        Between the end of one writer and the start of the next, or the commit, no writer keeps it
        alive. Cancel the call to stop. It waits a third of the timeout before it first asks: a
        transaction without a writer by then counts as over. Raises ClosedError once this object or
        the client is closed, and any error that keeps it from asking, such as an
        AuthorizationError.
        """
        self._check_open()
        await self._check_cluster(self._options.max_block_ms)
        await KeepAlive(self._context, self._handle, _is_over, self._check_open).run()

    async def close(self) -> None:
        """Keep it alive no longer. Ends nothing. May be called twice."""
        self._context.cluster.home.check()
        if not self._closed:
            self._closed = True
            self._context.forget(self)
            await self._keep_alive.close()

    async def __aenter__(self) -> Self:
        self._check_open()
        self._keep_alive.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_cancelled = exc is not None and not isinstance(exc, Exception)
        options = self._options
        try:
            if self._outcome is None and self._sent is None and not self._closed:
                await self._abort_quietly(
                    options.cancelled_commit_grace_ms if is_cancelled else options.max_block_ms
                )
        finally:
            await self.close()

    # -- inside ---------------------------------------------------------------------------------

    async def _abort(self, receipts: Iterable[JointReceipt], timeout_ms: int) -> JointOutcome:
        self._check_open()
        if self._is_unknown:
            raise IllegalStateError("a commit was sent: its outcome must be known first")
        await self._check_cluster(timeout_ms)
        response = await self._send(self._request(receipts, commit=False), timeout_ms)
        if response.result != participants.TRANSACTION_RESULT_COMMIT:
            self._outcome = JointOutcome.ABORTED
            return self._outcome
        if self._outcome is not JointOutcome.COMMITTED:
            self._outcome = JointOutcome.ALREADY_COMMITTED
        return JointOutcome.ALREADY_COMMITTED

    async def _abort_quietly(self, timeout_ms: int) -> None:
        """Abort; what goes wrong must not hide why, and the coordinator aborts by time-out."""
        try:
            await self._abort((), timeout_ms)
        except SemelError as error:
            _log.warning("abort of %s failed: %s", self._handle, error)

    def _commit_request(
        self, receipts: Iterable[JointReceipt], *, wait_until_visible: bool
    ) -> EndJointTxnRequest:
        """Return the commit to send; the same receipts make it a repeat of the one before.

        No other call is legal as long as the outcome is unknown.
        """
        if not self._is_unknown:  # To ask what became of a commit is always possible.
            self._check_open()
        request = self._request(receipts, commit=True)
        if self._sent is not None and list(self._sent.writers) == list(request.writers):
            request.end_id = self._sent.end_id
        elif self._is_unknown:
            raise IllegalStateError(
                "a commit with other receipts was sent: repeat it with those receipts"
            )
        request.wait = wait_for(wait_until_visible)
        return request

    def _request(self, receipts: Iterable[JointReceipt], *, commit: bool) -> EndJointTxnRequest:
        result = (
            participants.TRANSACTION_RESULT_COMMIT
            if commit
            else participants.TRANSACTION_RESULT_ABORT
        )
        name = transaction_message(self._handle)
        request = EndJointTxnRequest(
            transaction=name,
            result=result,
            end_id=f"{self._context.random.getrandbits(128):032x}",
        )
        for receipt in receipts:
            if transaction_message(receipt.handle) != name:
                raise InvalidRequestError(
                    f"a receipt belongs to version {receipt.handle.txn_version} of run"
                    f" {receipt.handle.run!r}, not to version {self._handle.txn_version} of run"
                    f" {self._handle.run!r}"
                )
            self._context.cluster.identity.check_belongs(
                receipt.handle.cluster_id, receipt.handle.what
            )
            if not receipt.already_committed:
                request.writers.append(writer_message(receipt))
        return request

    async def _send(self, request: EndJointTxnRequest, timeout_ms: int) -> EndJointTxnResponse:
        cluster = self._context.cluster
        with joint_span(self._context.tracer, "end joint transaction", self._handle):
            return await cluster.call(
                cluster.coordinator_of(self._handle.transactional_id),
                END_JOINT_TXN,
                request,
                deadline=Deadline.after_ms(timeout_ms),
                request_timeout_ms=self._options.request_timeout_ms,
            )

    def _committed(self, response: EndJointTxnResponse) -> JointOutcome:
        already = response.already_committed
        self._repeated_in_run = response.repeated_in_run
        self._outcome = JointOutcome.ALREADY_COMMITTED if already else JointOutcome.COMMITTED
        return self._outcome

    def _commit_failed(self, error: SemelError, *, was_unknown: bool) -> JointOutcome:
        """Return the outcome if the error tells that it is committed; else raise what it means.

        `was_unknown`: it was sent before, and not answered. What refuses a repeat may be newer than
        the commit, so only an outcome ends the doubt.
        """
        outcome = error.details.get("outcome")
        if outcome == _COMMITTED:
            self._outcome = JointOutcome.COMMITTED
            return self._outcome
        what = self._what
        if outcome == _ABORTED or isinstance(error, TransactionAbortableError):
            self._sent = None
            raise TransactionAbortedError(
                f"{what} is not committed: {error.message}", **error.details
            ) from error
        unclear = (
            RetriableError,
            ApplicationRecoverableError,
            ClosedError,
            InconsistentClusterIdError,
        )
        if was_unknown or isinstance(error, unclear):
            raise self._unknown(error.message) from error
        self._sent = None
        raise error

    async def _learn_outcome(
        self, request: EndJointTxnRequest, cancelled: asyncio.CancelledError
    ) -> None:
        """Ask once more; raises JointOutcomeUnknownError if there is no answer in time."""
        try:
            self._committed(await self._send(request, self._options.cancelled_commit_grace_ms))
        except asyncio.CancelledError:
            raise self._unknown("commit was cancelled") from cancelled
        except SemelError as error:
            try:
                self._commit_failed(error, was_unknown=True)
            except JointOutcomeUnknownError as unknown:
                raise unknown from cancelled
            except SemelError as definite:
                _log.info("a cancelled commit has not taken effect: %s", definite)

    @property
    def _is_unknown(self) -> bool:
        return self._sent is not None and self._outcome is None

    @property
    def _what(self) -> str:
        return f"version {self._handle.txn_version} of {self._handle.transactional_id}"

    def _unknown(self, why: str) -> JointOutcomeUnknownError:
        return JointOutcomeUnknownError(
            f"commit of {self._what} was sent, its outcome is not known: {why}",
            transactional_id=self._handle.transactional_id,
            txn_version=self._handle.txn_version,
        )

    def _not_open(self, error: SemelError) -> bool:
        """Go on, unless it can never be open again: perhaps no writer has joined yet."""
        return not isinstance(error, TransactionAbortableError)

    async def _check_cluster(self, timeout_ms: int) -> None:
        """Raise InconsistentClusterIdError if the handle is of another cluster."""
        handle = self._handle
        deadline = Deadline.after_ms(timeout_ms)
        await self._context.cluster.check_belongs(handle.cluster_id, handle.what, deadline)

    def _check_open(self) -> None:
        self._context.cluster.home.check()
        if self._closed:
            raise ClosedError("the joint transaction is closed")


def _is_over(error: SemelError) -> bool:
    """Say so of a version that is not open, a run that is fenced, an id that another owner took."""
    if not isinstance(
        error, (TransactionAbortableError, ApplicationRecoverableError, JointOwnerMismatchError)
    ):
        raise error
    return True
