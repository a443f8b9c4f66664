"""The operators' part of the admin client: finds transactions that stay open, and ends them.

Every call takes ``default_api_timeout_ms`` of the client at most, with all its attempts; past it,
RequestTimedOutError is raised.
"""

from collections.abc import Iterable

from aiosemel._admin.admin_part import AdminPart
from aiosemel._admin.open_transactions import OpenTransactionSearch
from aiosemel._admin.producer_descriptions import describe_producers
from aiosemel._admin.reader_check import ReaderCheck
from aiosemel._admin.transaction_writes import TransactionWrites
from aiosemel._cluster.audit_calls import list_audit
from aiosemel._shared.value_checks import check_number
from aiosemel.types.audit import AuditLog
from aiosemel.types.offsets import PartitionKey, TopicPartition
from aiosemel.types.open_transactions import (
    AbortedByOperator,
    FencedByOperator,
    OpenTransactions,
    PartitionProducers,
    PartitionWrites,
)
from aiosemel.types.reader_standing import ReaderStanding
from semel.coordinator.v1 import history_pb2 as history
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel_common.wire import methods


class Operators(AdminPart):
    """Looks after transactions. Made by ``Admin.operators``; needs no closing."""

    async def list_open_transactions(
        self, *, open_longer_than_ms: int = 0, limit: int = 1_000
    ) -> OpenTransactions:
        """Return the open transactions of partitions and groups, as coordinators know them.

        The oldest first, ``limit`` at most. Participants ask the coordinator about transactions
        that stay open. A decided transaction that stays open for longer than their inquiry interval
        therefore hints at a broken network or instance. The result names each instance that does
        not answer; this is no error.
        """
        search = OpenTransactionSearch(self._cluster, self._deadline())
        return await search.find(longer_than_ms=open_longer_than_ms, limit=limit)

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
        response = await self._cluster.call(
            self._cluster.coordinator_of(transactional_id),
            methods.ABORT_TRANSACTION,
            request,
            deadline=self._deadline(),
        )
        return AbortedByOperator(
            participants=response.participants,
            already_aborted=response.already_aborted,
            dry_run=dry_run,
        )

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
        response = await self._cluster.call(
            self._cluster.coordinator_of(transactional_id),
            methods.FENCE_PRODUCER,
            request,
            deadline=self._deadline(),
        )
        return FencedByOperator(
            producer_id=response.producer_id,
            fenced_epoch=response.fenced_epoch,
            participants=response.participants,
            dry_run=dry_run,
        )

    async def explain_reader(self, group_id: str, partition: PartitionKey) -> ReaderStanding:
        """Return the first cause why a group sees no new record of a partition.

        Looks at the topic, the partition, the group and its members, at its offset, and at the
        transaction that holds the last stable offset. A group or a topic that is not there is an
        answer, too. Raises what the questions for all these raise.
        """
        check = ReaderCheck(self._cluster, group_id, TopicPartition.named(partition))
        return await check.run()

    async def list_audit(
        self,
        *,
        actions: Iterable[str] = (),
        principal: str | None = None,
        address: str | None = None,
        from_time_ms: int | None = None,
        before_time_ms: int | None = None,
        behind: str | None = None,
        limit: int = 1_000,
    ) -> AuditLog:
        """Return the requests by which operators changed something, the last one first.

        These are the requests to coordinators: about transactions, topics, access rules, quotas,
        and leaders of partitions. ``actions`` are names of RPCs, ``address`` that of the caller,
        times those at which a request was taken up. ``behind`` of the returned part leads to the
        one before. Raises InvalidRequestError; IncompleteListError, which has the part of the
        others, if some coordinators do not answer.
        """
        request = history.ListAuditRequest(
            actions=actions,
            principal=principal or "",
            address=address or "",
            from_time_ms=from_time_ms or 0,
            before_time_ms=before_time_ms or 0,
            behind=behind or "",
        )
        return await list_audit(self._cluster, request, limit, self._deadline())

    async def describe_producers(
        self, partition: PartitionKey, *, limit: int | None = 100
    ) -> PartitionProducers:
        """Return the producers of a partition, and the holder of its last stable offset.

        Producers with open transactions come first, up to ``limit``. None: all producers, however
        many, in the order of their ids. Raises UnknownTopicOrPartitionError.
        """
        wanted = TopicPartition.named(partition)
        return await describe_producers(self._cluster, wanted, limit, self._deadline())

    async def describe_writes(
        self,
        partitions: Iterable[PartitionKey],
        *,
        producer_id: int,
        producer_epoch: int,
        from_time_ms: int,
    ) -> dict[TopicPartition, PartitionWrites]:
        """Return the records that one transaction wrote to partitions, also after it has ended.

        Brokers look at the batches from the first record on that is as late as a time, in
        milliseconds since 1970-01-01 UTC, up to the transaction's marker: choose a time shortly
        before it began. Raises UnknownTopicOrPartitionError.
        """
        writes = TransactionWrites(
            self._cluster,
            check_number("producer_id", producer_id),
            check_number("producer_epoch", producer_epoch),
        )
        wanted = dict.fromkeys(map(TopicPartition.named, partitions))
        return await writes.find(
            wanted, check_number("from_time_ms", from_time_ms), self._deadline()
        )
