"""Committing a group's offsets within a transaction: one call after the other."""

import asyncio
from collections.abc import Mapping

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.sending.producer_spans import ProducerSpans, active
from aiosemel._producer.sending.request_encoding import offset_topics
from aiosemel._producer.transactions.registration import Failed, Registration
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._producer.transactions.transaction_states import Call
from aiosemel._shared.change_signal import Signal
from aiosemel._shared.context import Context
from aiosemel.errors import RequestTimedOutError, SemelError, TransactionAbortableError
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.offsets import ConsumerGroupMetadata, OffsetAndMetadata, PartitionKey
from semel.group.v1.group_pb2 import TxnOffsetCommitRequest
from semel_common.ids import GroupId
from semel_common.wire.methods import TXN_OFFSET_COMMIT


class OffsetSending:
    """Sends the offsets of one producer's transactions."""

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        transactional_id: str,
        manager: TransactionManager,
        registration: Registration,
        failed: Failed,
        spans: ProducerSpans | None,
    ) -> None:
        self._cluster = context.cluster
        self._options = options
        self._transactional_id = transactional_id
        self._manager = manager
        self._registration = registration
        self._failed = failed
        self._spans = spans
        self._in_flight = False
        self._answered = Signal()

    async def send(
        self,
        offsets: Mapping[PartitionKey, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata,
        *,
        producer_token: bytes,
        deadline: Deadline,
    ) -> None:
        """Send offsets once those before are answered, and wait for the answer.

        Raises TypeError or InvalidRequestError before anything counts: the transaction goes on.
        """
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=offset_topics(offsets),
            producer_token=producer_token,
        )
        await self._wait_for_turn(deadline)
        manager = self._manager
        request.producer_id = manager.producer_id
        request.producer_epoch = manager.producer_epoch
        request.base_sequence = manager.send_offsets(group.group_id)
        if manager.sent(GroupId(group.group_id)):
            self._registration.add_offsets(group.group_id)
        self._in_flight = True
        try:
            with active(self._spans):
                await self._commit(request, deadline)
        finally:
            self._in_flight = False
            self._answered.notify()

    async def wait(self, deadline: Deadline) -> None:
        """Wait until all sent offsets are answered. Raises RequestTimedOutError."""
        while self._in_flight:
            if not await self._answered.wait(deadline.remaining_ms()):
                raise RequestTimedOutError(
                    f"an earlier send_offsets is not answered yet{self._cluster.trouble.suffix}"
                )

    async def _wait_for_turn(self, deadline: Deadline) -> None:
        """Wait for an earlier call. After a failed wait, no commit may go without these offsets."""
        transaction = self._manager.begun
        try:
            await self.wait(deadline)
        except asyncio.CancelledError:
            if transaction == self._manager.begun:
                self._cancelled(self._manager.producer_epoch)
            raise
        self._manager.check_same(transaction, Call.SEND_OFFSETS)

    async def _commit(self, request: TxnOffsetCommitRequest, deadline: Deadline) -> None:
        epoch = request.producer_epoch
        try:
            await self._cluster.call(
                self._cluster.group_coordinator_of(request.group_id),
                TXN_OFFSET_COMMIT,
                request,
                deadline=deadline,
                request_timeout_ms=self._options.request_timeout_ms,
            )
        except asyncio.CancelledError:
            self._cancelled(epoch)
            raise
        except SemelError as error:
            self._failed(error, epoch)
            raise
        if epoch == self._manager.producer_epoch:
            self._manager.acknowledged(GroupId(request.group_id))

    def _cancelled(self, producer_epoch: int) -> None:
        self._failed(TransactionAbortableError("send_offsets was cancelled"), producer_epoch)
