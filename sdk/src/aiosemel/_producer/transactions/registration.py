"""Registering the participants of a long transaction with the coordinator; no send waits for it.

It makes the transaction visible to operators, and quick to abort when this process dies. Safety
rests on the participants' inquiries instead (protocol.md, sections 3 and 6). So a transaction that
ends before ``registration_delay_ms`` is never registered: EndTxn names its participants anyway, and
a request and a durable write of the coordinator are saved.

Writers of a joint transaction register at once, and wait for it before they leave: the owner that
decides for them may have no receipt of theirs.
"""

import asyncio
from collections.abc import Callable, Iterable

from aiosemel._cluster.retry import Deadline
from aiosemel._producer.sending.producer_spans import ProducerSpans, active
from aiosemel._producer.sending.request_encoding import topic_partitions
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._shared.context import Context
from aiosemel.errors import RequestTimedOutError, RetriableError, SemelError
from aiosemel.options.client_options import ProducerOptions
from semel.coordinator.v1.transactions_pb2 import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest
from semel_common.ids import TopicPartition
from semel_common.library_log import get_logger
from semel_common.wire.methods import ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, Method, Req, Res

_log = get_logger(__name__)

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
        spans: ProducerSpans | None,
    ) -> None:
        self._context = context
        self._options = options
        self._transactional_id = transactional_id
        self._manager = manager
        self._failed = failed
        self._spans = spans
        self._partitions: dict[TopicPartition, None] = {}
        self._groups: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Register partitions, if the transaction lasts."""
        self._partitions.update(dict.fromkeys(partitions))
        self._wait()

    def add_offsets(self, group_id: str) -> None:
        """Register a group, if the transaction lasts."""
        self._groups[group_id] = None
        self._wait()

    async def settle(self, deadline: Deadline) -> None:
        """Register all that has gathered, and wait until that is answered, or failed.

        Raises RequestTimedOutError.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._register()
        if not self._tasks:
            return
        _, pending = await asyncio.wait(self._tasks, timeout=deadline.remaining_ms() / 1000)
        if pending:
            raise RequestTimedOutError(
                "the coordinator has not answered the registration of the participants of"
                f" {self._transactional_id}"
                f"{self._context.cluster.trouble.suffix}"
            )

    def cancel(self) -> None:
        """Register no more: the transaction is over."""
        self._partitions.clear()
        self._groups.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._tasks:
            task.cancel()

    def _wait(self) -> None:
        if self._timer is None:
            delay_s = self._options.registration_delay_ms / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._register)

    def _register(self) -> None:
        """Send AddPartitionsToTxn and AddOffsetsToTxn for all that has gathered."""
        self._timer = None
        if self._partitions:
            request = AddPartitionsToTxnRequest(
                transactional_id=self._transactional_id,
                producer_id=self._manager.producer_id,
                producer_epoch=self._manager.producer_epoch,
                topics=topic_partitions(self._partitions),
            )
            self._start(ADD_PARTITIONS_TO_TXN, request)
        for group_id in self._groups:
            offsets = AddOffsetsToTxnRequest(
                transactional_id=self._transactional_id,
                producer_id=self._manager.producer_id,
                producer_epoch=self._manager.producer_epoch,
                group_id=group_id,
            )
            self._start(ADD_OFFSETS_TO_TXN, offsets)
        self._partitions.clear()
        self._groups.clear()

    def _start(self, method: Method[Req, Res], request: Req) -> None:
        epoch = self._manager.producer_epoch
        task = self._context.spawn(self._send(method, request, epoch), name=method.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, method: Method[Req, Res], request: Req, producer_epoch: int) -> None:
        cluster = self._context.cluster
        try:
            with active(self._spans):
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
