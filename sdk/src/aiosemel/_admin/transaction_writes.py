"""The records of one transaction in partitions: asked until its marker or the end is found."""

from collections.abc import Collection, Sequence
from functools import partial

from aiosemel._cluster.leaders import Leaders
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import RequestTimedOutError, SemelError
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.open_transactions import PartitionWrites
from semel.broker.v1 import producers_pb2 as producers
from semel_common import ids
from semel_common.wire import status
from semel_common.wire.methods import DESCRIBE_WRITES


class TransactionWrites:
    """Looks for the records of one transaction."""

    def __init__(self, cluster: Cluster, producer_id: int, producer_epoch: int) -> None:
        self._cluster = cluster
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch

    async def find(
        self, partitions: Collection[TopicPartition], from_time_ms: int, deadline: Deadline
    ) -> dict[TopicPartition, PartitionWrites]:
        """Return the writes to each partition, from the first record as late as a time on.

        Raises RequestTimedOutError, and what ``Leaders.ask`` raises.
        """
        leaders = Leaders(self._cluster, self._ask)
        found = {each: PartitionWrites(partition=each) for each in partitions}
        questions = {each: partial(_from_time, time_ms=from_time_ms) for each in partitions}
        while questions:
            if deadline.remaining_ms() <= 0:
                raise RequestTimedOutError(
                    f"{len(questions)} partitions were not searched in time"
                    f"{self._cluster.trouble.suffix}"
                )
            answers = await leaders.ask(questions, deadline)
            found |= {each: _added(found[each], answer) for each, answer in answers.items()}
            questions = {
                each: partial(_from_offset, offset=answer.next_offset)
                for each, answer in answers.items()
                if answer.marker_offset < 0 and answer.next_offset < answer.end_offset
            }
        return found

    async def _ask(
        self,
        address: str,
        questions: Sequence[producers.DescribeWritesPartition],
        deadline: Deadline,
    ) -> list[producers.PartitionWrites | SemelError]:
        request = producers.DescribeWritesRequest(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            partitions=questions,
        )
        response = await self._cluster.attempt_at(
            address, DESCRIBE_WRITES, request, deadline=deadline
        )
        return [
            status.from_value(result.error) if result.HasField("error") else result
            for result in response.partitions
        ]


def _from_time(at: ids.TopicPartition, *, time_ms: int) -> producers.DescribeWritesPartition:
    return producers.DescribeWritesPartition(
        topic_id=at.topic_id, partition=at.partition, from_time_ms=time_ms
    )


def _from_offset(at: ids.TopicPartition, *, offset: int) -> producers.DescribeWritesPartition:
    return producers.DescribeWritesPartition(
        topic_id=at.topic_id, partition=at.partition, from_offset=offset
    )


def _added(before: PartitionWrites, answer: producers.PartitionWrites) -> PartitionWrites:
    """Return the sum of the earlier answers and of one that looked behind them."""
    has_records = answer.first_offset >= 0
    is_first = has_records and before.first_offset is None
    return PartitionWrites(
        partition=before.partition,
        first_offset=answer.first_offset if is_first else before.first_offset,
        last_offset=answer.last_offset if has_records else before.last_offset,
        record_count=before.record_count + answer.record_count,
        first_timestamp_ms=answer.first_timestamp_ms if is_first else before.first_timestamp_ms,
        marker_offset=answer.marker_offset if answer.marker_offset >= 0 else None,
    )
