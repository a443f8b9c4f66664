"""How transactions are prepared and completed: for two-phase commit with a system outside.

A cancelled call of ``prepare`` aborts the transaction in the background: its caller never learned
that it is prepared, so no other program knows it either.
"""

import asyncio

from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._producer.sending.request_encoding import complete_prepared_request, prepare_request
from aiosemel._producer.transactions.commit_and_abort import Ending
from aiosemel._producer.transactions.registration import Registration
from aiosemel._producer.transactions.transaction_manager import TransactionManager
from aiosemel._shared.context import Context
from aiosemel.errors import InvalidRequestError, SemelError, TransactionAbortableError
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel.coordinator.v1.transactions_pb2 import InitProducerIdResponse
from semel_common.wire.methods import COMPLETE_PREPARED_TXN, PREPARE_TXN


class Preparing:
    """Prepares the transactions of one producer, and completes those of its transactional id."""

    def __init__(
        self,
        context: Context,
        options: ProducerOptions,
        transactional_id: str,
        manager: TransactionManager,
        registration: Registration,
        ending: Ending,
    ) -> None:
        self._cluster = context.cluster
        self._options = options
        self._transactional_id = transactional_id
        self._manager = manager
        self._registration = registration
        self._ending = ending

    async def prepare(self, deadline: Deadline) -> PreparedTransactionId:
        """Send PrepareTxn, and take its answer: all sends are acknowledged, or have failed."""
        prepare = self._manager.end_prepare()
        self._registration.cancel()
        try:
            response = await self._cluster.call(
                self._cluster.coordinator_of(self._transactional_id),
                PREPARE_TXN,
                prepare_request(prepare, self._transactional_id),
                deadline=deadline,
                request_timeout_ms=self._options.request_timeout_ms,
            )
        except asyncio.CancelledError:
            if self._manager.loss is None:  # Else it is being aborted: the producer was closed.
                self._ending.abort_in_background(TransactionAbortableError("prepare was cancelled"))
            raise
        except SemelError as error:
            raised = self._manager.prepare_failed(error)
            if raised is error:
                raise
            raise raised from raised.__cause__
        self._manager.prepared(response.producer_id, response.producer_epoch)
        self._ending.start_epoch()
        return PreparedTransactionId(
            transactional_id=self._transactional_id,
            producer_id=prepare.producer_id,
            producer_epoch=prepare.producer_epoch,
            cluster_id=self._cluster.identity.cluster_id,
        )

    async def complete(
        self,
        prepared: PreparedTransactionId,
        deadline: Deadline,
        *,
        commit: bool,
        wait_until_visible: bool,
    ) -> None:
        """Commit or abort what this producer, or one before it, has prepared."""
        if prepared.transactional_id != self._transactional_id:
            raise InvalidRequestError(
                f"{prepared} was not prepared under {self._transactional_id!r}, the transactional"
                " id of this producer"
            )
        await complete_prepared(
            self._cluster,
            prepared,
            deadline,
            commit=commit,
            wait_until_visible=wait_until_visible,
            producer_epoch=self._manager.complete_prepared(),
            request_timeout_ms=self._options.request_timeout_ms,
        )


async def complete_prepared(
    cluster: Cluster,
    prepared: PreparedTransactionId,
    deadline: Deadline,
    *,
    commit: bool,
    wait_until_visible: bool,
    producer_epoch: int | None = None,
    request_timeout_ms: int | None = None,
    operator: Operator | None = None,
) -> None:
    """Send CompletePreparedTxn; ``producer_epoch`` is that of a caller that is a producer.

    Raises InconsistentClusterIdError for a transaction of another cluster.
    """
    what = f"prepared transaction {prepared}"
    await cluster.check_belongs(prepared.cluster_id, what, deadline)
    await cluster.call(
        cluster.coordinator_of(prepared.transactional_id),
        COMPLETE_PREPARED_TXN,
        complete_prepared_request(
            prepared,
            commit=commit,
            producer_epoch=producer_epoch,
            wait_until_visible=wait_until_visible,
            operator=operator,
        ),
        deadline=deadline,
        request_timeout_ms=request_timeout_ms,
    )


def kept_prepared(
    transactional_id: str, response: InitProducerIdResponse, cluster_id: str
) -> tuple[PreparedTransactionId, ...]:
    """Return the transactions that a new producer instance finds prepared."""
    return tuple(
        PreparedTransactionId(
            transactional_id=transactional_id,
            producer_id=response.producer_id,
            producer_epoch=prepared.producer_epoch,
            cluster_id=cluster_id,
        )
        for prepared in response.prepared
    )
