"""AddPartitionsToTxn: a client registers the partitions that its transaction writes to."""

from collections.abc import Iterable
from dataclasses import dataclass

from semel.common.v1.participants_pb2 import TopicPartitions
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.ids import TopicPartition
from semel_coordinator.transactions.machine import TransactionLimits
from semel_coordinator.transactions.rpc import request_fields
from semel_coordinator.transactions.rpc.participant_messages import topic_partitions_from_wire
from semel_coordinator.transactions.rpc.participant_names import has_names
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count


@dataclass(frozen=True, slots=True)
class PartitionAdder:
    """Answers AddPartitionsToTxn."""

    parts: ServiceParts

    async def add_partitions_to_txn(
        self, request: wire.AddPartitionsToTxnRequest, call: Call
    ) -> wire.AddPartitionsToTxnResponse:
        """Register partitions: all of them, or none."""
        parts = self.parts
        parts.claim.check()
        transactional_id = request_fields.transactional_id(request.transactional_id, parts.limits)
        key = request_fields.key(request.producer_id, request.producer_epoch)
        if has_names(request.topics):
            await parts.names.give_ids([request.topics], call)
        partitions = _partitions(request.topics, parts.limits)
        for partition in partitions:
            # Raises UnknownTopicIdError or UnknownTopicOrPartitionError.
            parts.cluster.leader_of(partition)
        now_ms = parts.clock.now_ms()
        await parts.runner.run(
            lambda: parts.machine.add_partitions_to_txn(
                transactional_id,
                key,
                partitions,
                traceparent=request_fields.traceparent(call),
                now_ms=now_ms,
            )
        )
        return wire.AddPartitionsToTxnResponse()


def _partitions(
    topics: Iterable[TopicPartitions], limits: TransactionLimits
) -> list[TopicPartition]:
    """Read the partitions to be registered: at least one."""
    found = topic_partitions_from_wire("topics", topics, limits)
    require_count("topics", found, minimum=1, maximum=limits.participants_max)
    return found
