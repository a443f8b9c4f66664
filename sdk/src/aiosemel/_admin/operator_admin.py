"""The operators' part of the admin client: looks for what stays open, and ends it.

Every call takes ``default_api_timeout_ms`` of the client at most, with all its attempts; past it,
RequestTimedOutError is raised.
"""

from aiosemel._admin.operator_calls import OperatorCalls
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.types.offsets import PartitionKey, TopicPartition
from aiosemel.types.open_transactions import (
    AbortedByOperator,
    FencedByOperator,
    OpenTransactions,
    PartitionProducers,
)
from semel.coordinator.v1 import outcomes_pb2 as outcomes


class Operators:
    """Looks after transactions. Made by ``Admin.operators``; needs no closing."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list_open_transactions(
        self, *, open_longer_than_ms: int = 0, limit: int = 1_000
    ) -> OpenTransactions:
        """Return the open transactions of partitions and groups, as coordinators know them.

        The oldest first, ``limit`` at most. Participants ask the coordinator about transactions
        that stay open. A decided transaction that stays open for longer than their inquiry interval
        therefore hints at a broken network or instance. The result names each instance that does
        not answer; this is no error.
        """
        return await self._calls().open_transactions(
            longer_than_ms=open_longer_than_ms, limit=limit
        )

    async def abort_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        operator: str,
        reason: str,
        dry_run: bool = False,
    ) -> AbortedByOperator:
        """Abort an open transaction in its producer's place; the producer is told, and goes on.

        Only this very transaction is hit; a repeat changes nothing. That of a writer of a joint
        transaction ends with its whole version. ``operator`` and ``reason`` go
        into the coordinator's log. Raises InvalidTxnStateError for one that has committed, and
        InvalidProducerIdMappingError, TransactionalIdNotFoundError, InvalidRequestError.
        """
        request = outcomes.AbortTransactionRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            operator=outcomes.Operator(name=operator, reason=reason),
            dry_run=dry_run,
        )
        return await self._calls().abort(request)

    async def fence_producer(
        self, transactional_id: str, *, operator: str, reason: str, dry_run: bool = False
    ) -> FencedByOperator:
        """Take a transactional id from its producer, whose open transaction is aborted.

        That producer can only be closed. ``operator`` and ``reason`` go into the coordinator's log.
        Raises TransactionalIdNotFoundError, and InvalidRequestError for an id of joint
        transactions: there, a new run fences those before it.
        """
        request = outcomes.FenceProducerRequest(
            transactional_id=transactional_id,
            instance_id=self._cluster.random_id(),
            operator=outcomes.Operator(name=operator, reason=reason),
            dry_run=dry_run,
        )
        return await self._calls().fence(request)

    async def describe_producers(
        self, partition: PartitionKey, *, limit: int | None = 100
    ) -> PartitionProducers:
        """Return the producers of a partition, and the holder of its last stable offset.

        Producers with open transactions come first, up to ``limit``. None: all producers, however
        many, in the order of their ids. Raises UnknownTopicOrPartitionError.
        """
        return await self._calls().producers_of(TopicPartition.named(partition), limit)

    def _calls(self) -> OperatorCalls:
        timeout_ms = self._cluster.options.default_api_timeout_ms
        return OperatorCalls(self._cluster, Deadline.after_ms(timeout_ms))
