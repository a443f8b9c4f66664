"""The transactional producer behind its public face: one call at a time, in front of the machines.

It owns manager, pipeline, registration and ending of one producer, and is to the sender what the
producer is: it says what may be sent, and hears what became of it.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from opentelemetry.trace import SpanContext

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.sending.pipeline import Check, Pipeline
from aiosemel._producer.sending.producer_spans import active, begin, call
from aiosemel._producer.sending.request_encoding import wait_for
from aiosemel._producer.transactions.commit_and_abort import Ending
from aiosemel._producer.transactions.id_renewal import Renewal
from aiosemel._producer.transactions.offset_sending import OffsetSending
from aiosemel._producer.transactions.registration import Registration
from aiosemel._producer.transactions.transaction_errors import one_at_a_time
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import Call, State
from aiosemel._producer.transactions.two_phase_commit import Preparing, kept_prepared
from aiosemel._producer.transactions.unknown_outcome import Resolver
from aiosemel._shared.context import Context
from aiosemel.errors import (
    ClosedError,
    IllegalStateError,
    InconsistentClusterIdError,
    RequestTimedOutError,
    RetriableError,
    SemelError,
    TransactionAbortableError,
    TransactionOutcomeUnknownError,
)
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.offsets import ConsumerGroupMetadata, OffsetAndMetadata, PartitionKey
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel.coordinator.v1.transactions_pb2 import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    JoinTxnRequest,
    JoinTxnResponse,
)
from semel_common.ids import Participant
from semel_common.library_log import get_logger
from semel_common.wire.methods import INIT_PRODUCER_ID, JOIN_TXN

_log = get_logger(__name__)

_OPEN = (State.IN_TRANSACTION, State.PREPARING_TRANSACTION, State.ABORTABLE_ERROR)
_SENDING = (State.IN_TRANSACTION, State.PREPARING_TRANSACTION, State.COMMITTING_TRANSACTION)


class Transactions:
    """Owns the pipeline of a transactional producer. Implements ``Owner``."""

    def __init__(self, context: Context, options: ProducerOptions, transactional_id: str) -> None:
        """Start without an identity: ``init_transactions`` gives it one."""
        self._context = context
        self._cluster = context.cluster
        self._options = options
        self._transactional_id = transactional_id
        self._instance_id = context.new_name()
        self.home = context.cluster.home
        self.manager = TransactionManager(transactional_id)
        self.pipeline = Pipeline(context, options, self)
        self._registration = Registration(
            context, options, transactional_id, self.manager, self._failed, self.pipeline.spans
        )
        self._offsets = OffsetSending(
            context,
            options,
            transactional_id,
            self.manager,
            self._registration,
            self._failed,
            self.pipeline.spans,
        )
        self._ending = Ending(
            context, options, transactional_id, self.manager, self.pipeline, self._registration
        )
        self._preparing = Preparing(
            context, options, transactional_id, self.manager, self._registration, self._ending
        )
        self._renewal = Renewal()
        self._in_progress: Call | None = None
        self.producer_token = b""
        """As the coordinator gave it with the producer id; carried by all that is written."""
        self._closed: SemelError | None = None

    # -- the life of transactions ---------------------------------------------------------------

    async def init_transactions(
        self, *, wait_until_visible: bool, keep_prepared: bool
    ) -> tuple[PreparedTransactionId, ...]:
        """Ask for producer id and epoch, which fences every older instance.

        Returns the prepared transactions that are kept.
        """
        self._begin_call(Call.INIT_TRANSACTIONS)
        self._renewal.keeps_prepared |= keep_prepared
        try:
            request = InitProducerIdRequest(
                transactional_id=self._transactional_id,
                instance_id=self._instance_id,
                init_number=self.manager.init_transactions(),
                transaction_timeout_ms=self._options.transaction_timeout_ms,
                wait=wait_for(wait_until_visible),
                keep_prepared=keep_prepared,
            )
            with call(self.pipeline.spans, "init transactions"):
                return await self._init(request)
        finally:
            self._in_progress = None

    async def _init(self, request: InitProducerIdRequest) -> tuple[PreparedTransactionId, ...]:
        try:
            response = await self._cluster.call(
                self._cluster.coordinator_of(self._transactional_id),
                INIT_PRODUCER_ID,
                request,
                deadline=self._deadline(),
                request_timeout_ms=self._options.request_timeout_ms,
            )
        except (RetriableError, ClosedError):
            raise
        except SemelError as error:
            self.manager.init_failed(error)
            raise
        self._identified(response)
        self._renewal.identified(response.transactional_id_expiration_ms)
        cluster_id = self._context.cluster.identity.cluster_id
        return kept_prepared(self._transactional_id, response, cluster_id)

    async def join(self, request: JoinTxnRequest, parent: SpanContext | None) -> bool:
        """Become a writer of a joint transaction, and open it; False: it is committed already.

        It is never ended here: ``seal`` returns the participants. ``parent`` is that of its span.
        """
        self._begin_call(Call.INIT_TRANSACTIONS)
        try:
            self.manager.init_transactions()
            response = await self._cluster.call(
                self._cluster.coordinator_of(self._transactional_id),
                JOIN_TXN,
                request,
                deadline=self._deadline(),
                request_timeout_ms=self._options.request_timeout_ms,
            )
        finally:
            self._in_progress = None
        if response.already_committed:
            return False
        self._identified(response)
        self.manager.begin_transaction()
        begin(self.pipeline.spans, self.manager, parent)
        return True

    def _identified(self, given: InitProducerIdResponse | JoinTxnResponse) -> None:
        self.producer_token = given.producer_token
        self.manager.initialized(given.producer_id, given.producer_epoch)
        self.pipeline.start_epoch(given.producer_id, given.producer_epoch)

    async def begin_transaction(self) -> None:
        """Open a transaction, once the abort of the one before is answered: sends that again."""
        self._cluster.home.check()
        if self._closed is not None:
            raise self._closed.again()
        if self._in_progress is not Call.ABORT:  # That one is waited for.
            self._check_alone(Call.BEGIN_TRANSACTION)
        await self._ending.settle_abort(self._deadline())
        await self._renew()
        self.manager.begin_transaction()
        self._renewal.begun()
        begin(self.pipeline.spans, self.manager)

    async def _renew(self) -> None:
        """Take the transactional id again if that is due, or was not answered before."""
        manager = self.manager
        if manager.state is State.READY and self._renewal.is_due(manager.producer_epoch):
            manager.outdated()
        if manager.is_outdated:
            keep_prepared = self._renewal.keeps_prepared
            await self.init_transactions(wait_until_visible=False, keep_prepared=keep_prepared)

    def check_same_transaction(self) -> Check:
        """Return the check of a record that waits: its transaction must still be open."""
        return partial(self.manager.check_same, self.manager.begun, Call.SEND)

    async def send_offsets(
        self, offsets: Mapping[PartitionKey, OffsetAndMetadata | int], group: ConsumerGroupMetadata
    ) -> None:
        """Commit offsets within the transaction; one call after the other."""
        deadline = self._deadline()
        self.manager.check(Call.SEND_OFFSETS)
        if not isinstance(group, ConsumerGroupMetadata):
            raise TypeError(f"group must be ConsumerGroupMetadata, not {type(group).__name__}")
        if offsets:
            token = self.producer_token
            await self._offsets.send(offsets, group, producer_token=token, deadline=deadline)

    async def flush(self) -> None:
        """Wait until all sent records are done; fail at once if none of them will be sent again."""
        if self.manager.error is None:
            await self.pipeline.flush(None)

    async def commit(self, *, wait_until_visible: bool) -> None:
        """Wait until all is acknowledged, then end the transaction; see ``Ending``."""
        self._begin_call(Call.COMMIT)
        try:
            self.manager.commit()
            deadline = self._deadline()
            if not self.manager.end_sent:
                await self._wait_for_sends(Call.COMMIT, deadline)
            with active(self.pipeline.spans):
                await self._ending.commit(deadline, wait_until_visible=wait_until_visible)
        except TransactionOutcomeUnknownError as error:
            error.resolver = self._resolver()
            raise
        finally:
            self._in_progress = None
            self._ending.end_span()

    def _resolver(self) -> Resolver:
        return Resolver(
            self._cluster,
            self.manager,
            partial(self.commit, wait_until_visible=False),
            lambda: self._in_progress is not None,
            lambda: self._closed is not None,
            self._transactional_id,
        )

    async def prepare(self) -> PreparedTransactionId:
        """Wait until all is acknowledged, then prepare the transaction; see ``Preparing``."""
        self._begin_call(Call.PREPARE)
        self._renewal.keeps_prepared = True
        try:
            self.manager.prepare()
            deadline = self._deadline()
            if not self.manager.end_sent:
                await self._wait_for_sends(Call.PREPARE, deadline)
            with active(self.pipeline.spans):
                return await self._preparing.prepare(deadline)
        finally:
            self._in_progress = None
            self._ending.end_span()

    async def complete_prepared(
        self, prepared: PreparedTransactionId, *, commit: bool, wait_until_visible: bool
    ) -> None:
        """Decide a prepared transaction, whatever this producer does meanwhile."""
        with call(self.pipeline.spans, "complete prepared transaction"):
            await self._preparing.complete(
                prepared, self._deadline(), commit=commit, wait_until_visible=wait_until_visible
            )

    async def _wait_for_sends(self, asked: Call, deadline: Deadline) -> None:
        try:
            await self._offsets.wait(deadline)
            await self.pipeline.flush(deadline)
            self._cluster.identity.check()
        except asyncio.CancelledError:
            self.manager.withdraw()
            self.abort_in_background(TransactionAbortableError(f"{asked} was cancelled"))
            raise
        except (RequestTimedOutError, InconsistentClusterIdError):
            self.manager.withdraw()
            raise

    async def seal(self) -> tuple[Participant, ...]:
        """Take no more sends, and return the participants if all of them have acknowledged.

        The coordinator knows them by then: it aborts for them, if it is not told to commit.

        Raises TransactionAbortedError when a send has failed; RequestTimedOutError: call it again.
        """
        self._begin_call(Call.COMMIT)
        try:
            self.manager.commit()
            try:
                await self._offsets.wait(self._deadline())
                await self.pipeline.flush(self._deadline())
                await self._registration.settle(self._deadline())
            except (asyncio.CancelledError, RequestTimedOutError):
                self.manager.withdraw()
                raise
            end = self.manager.end_commit()
            return () if end is None else end.participants
        finally:
            self._in_progress = None

    def fail(self, error: SemelError) -> None:
        """Let the transaction only be aborted: the caller has heard that it is over."""
        self._failed(error, self.manager.producer_epoch)

    async def leave(self, error: SemelError) -> None:
        """Stop, and leave the end of the transaction to its owner.

        The owner may know nothing of the sends here, so the coordinator is told.
        """
        self.fail(error)  # Else what still waits for a topic, or for room, would be sent later.
        try:
            await self.pipeline.close(error)
            await self._registration.settle(Deadline.after_ms(self._options.close_timeout_ms))
        except RequestTimedOutError as unanswered:
            _log.warning("%s; they will ask it", unanswered)
        finally:
            self._registration.cancel()

    async def abort(self) -> None:
        """Abort; see ``Ending``."""
        self._begin_call(Call.ABORT)
        try:
            with active(self.pipeline.spans):
                await self._ending.abort(self._deadline())
        finally:
            self._in_progress = None
            self._ending.end_span()

    @property
    def is_open(self) -> bool:
        """Whether there is a transaction that can still be aborted."""
        return self.manager.state in _OPEN

    def abort_in_background(self, because: SemelError) -> None:
        """Abort without waiting, for a reason, if there is something to abort."""
        if self.is_open:
            self._ending.abort_in_background(because)

    async def close(self, error: SemelError) -> None:
        """Abort an open transaction, for a while; then stop."""
        self._closed = error
        if not self.manager.end_sent:
            self.manager.withdraw()  # A commit that still waits for sends would leave it open.
        self.abort_in_background(error)
        try:
            await self._ending.settle_abort(Deadline.after_ms(self._options.close_timeout_ms))
        except RequestTimedOutError:
            _log.warning("closed before the abort of %s was answered", self._transactional_id)
        finally:
            self._registration.cancel()
            await self.pipeline.close(error)

    # -- Owner ----------------------------------------------------------------------------------

    @property
    def transactional_id(self) -> str:
        """The transactional id."""
        return self._transactional_id

    @property
    def may_send(self) -> bool:
        """Whether the transaction is open, and nothing has failed."""
        return self.manager.state in _SENDING and not self.manager.end_sent

    async def identify(self) -> None:
        """Nothing to do: ``init_transactions`` has."""

    def sending(self, request: Request) -> None:
        """Note the partitions; register the new ones of this transaction."""
        partitions = [batch.topic_partition for batch in request.batches]
        new = [partition for partition in partitions if self.manager.sent(partition)]
        if new:
            self._registration.add_partitions(new)

    def acknowledged(self, batch: Batch) -> None:
        """Note the partition, once everything that was sent to it is acknowledged."""
        if not self.pipeline.has_unacknowledged(batch.topic_partition):
            self.manager.acknowledged(batch.topic_partition)

    def failed(self, batch: Batch, error: SemelError) -> None:
        """Let the transaction only be aborted."""
        epoch = batch.producer_epoch if batch.was_drained else self.manager.producer_epoch
        self._failed(error, epoch)

    def broken(self, error: SemelError) -> None:
        """Let the transaction only be aborted."""
        self._failed(error, self.manager.producer_epoch)

    # -- inside ---------------------------------------------------------------------------------

    def _failed(self, error: SemelError, producer_epoch: int) -> None:
        self.manager.failed(error, producer_epoch)
        self._renewal.failed(error)
        if self.manager.error is not None:
            self.pipeline.discard_queued(
                TransactionAbortableError(f"not sent, the transaction failed: {error.message}")
            )
            self.pipeline.interrupt()

    def _begin_call(self, asked: Call) -> None:
        self._check_alone(asked)
        self._in_progress = asked

    def _check_alone(self, asked: Call) -> None:
        """Refuse a call while another one goes on. Raises IllegalStateError."""
        if self._in_progress is not None:
            busy = f"{asked} is not possible while {self._in_progress} goes on"
            raise IllegalStateError(f"{busy}: {one_at_a_time(self._transactional_id)}")

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._options.max_block_ms)
