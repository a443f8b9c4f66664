"""Telling the coordinator who takes part, beside the first send to each: nobody waits for it.

It makes the transaction visible to operators, and quick to abort when this process dies. Safety
rests on the participants' inquiries instead (protocol.md, sections 3 and 6).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from aiosemel._context import Context
from aiosemel._producer.encode import topic_partitions
from aiosemel._producer.transaction_manager import TransactionManager
from aiosemel._retry import Deadline
from aiosemel.errors import RetriableError, SemelError
from aiosemel.options import ProducerOptions
from semel.coordinator.v1.transactions_pb2 import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest
from semel_common.ids import TopicPartition
from semel_common.wire.methods import ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, Method, Req, Res

_log = logging.getLogger(__name__)

Failed = Callable[[SemelError, int], None]
"""Is told of an error that is not retriable, and of the epoch that it belongs to."""


class Registration:
    """Registers the participants of one producer's transactions."""

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        transactional_id: str,
        manager: TransactionManager,
        failed: Failed,
    ) -> None:
        self._context = context
        self._options = options
        self._transactional_id = transactional_id
        self._manager = manager
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Send AddPartitionsToTxn."""
        request = AddPartitionsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._manager.producer_id,
            producer_epoch=self._manager.producer_epoch,
            topics=topic_partitions(partitions),
        )
        self._start(ADD_PARTITIONS_TO_TXN, request)

    def add_offsets(self, group_id: str) -> None:
        """Send AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._manager.producer_id,
            producer_epoch=self._manager.producer_epoch,
            group_id=group_id,
        )
        self._start(ADD_OFFSETS_TO_TXN, request)

    def cancel(self) -> None:
        """Register no more: the transaction is over."""
        for task in self._tasks:
            task.cancel()

    def _start(self, method: Method[Req, Res], request: Req) -> None:
        epoch = self._manager.producer_epoch
        task = self._context.spawn(self._send(method, request, epoch), name=method.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, method: Method[Req, Res], request: Req, producer_epoch: int) -> None:
        cluster = self._context.cluster
        try:
            await cluster.call(
                cluster.coordinator_of(self._transactional_id),
                method,
                request,
                deadline=Deadline.after_ms(self._options.transaction_timeout_ms),
                request_timeout_ms=self._options.request_timeout_ms,
            )
        except RetriableError as error:
            _log.debug("%s not answered: %s", method.name, error)
        except SemelError as error:
            self._failed(error, producer_epoch)
