"""The start and end of logs, offsets by time, and the deletion of records at the start."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from aiosemel._cluster.leaders import Leaders
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import SemelError
from aiosemel.types.isolation import ISOLATION, IsolationLevel
from aiosemel.types.offsets import DeletedRecords, OffsetAndTimestamp, OffsetSpec, TopicPartition
from semel.broker.v1 import broker_pb2 as broker
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel_common import ids
from semel_common.wire import status
from semel_common.wire.methods import DELETE_RECORDS, LIST_OFFSETS

_NO_OFFSET = -1
"""What a broker answers where no record is late enough."""
_SPECS = {
    OffsetSpec.EARLIEST: broker.OFFSET_SPEC_EARLIEST,
    OffsetSpec.LATEST: broker.OFFSET_SPEC_LATEST,
    OffsetSpec.MAX_TIMESTAMP: broker.OFFSET_SPEC_MAX_TIMESTAMP,
}


class AtTime(NamedTuple):
    """The first record with this timestamp, or a later one."""

    timestamp_ms: int


Wanted = Mapping[TopicPartition, OffsetSpec] | Mapping[TopicPartition, OffsetSpec | AtTime]
LogEnd = Literal[OffsetSpec.EARLIEST, OffsetSpec.LATEST]


class LogOffsets:
    """Looks offsets up in the logs of a cluster."""

    def __init__(self, cluster: Cluster, isolation: IsolationLevel) -> None:
        """Look up what a reader of this isolation level sees."""
        self._cluster = cluster
        self._isolation = ISOLATION[isolation]

    async def find(
        self, wanted: Wanted, deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the offsets by partition; None where no record is late enough.

        Raises what ``Leaders.ask`` raises.
        """
        found = await self._find(wanted, deadline)
        return {each: None if at.offset == _NO_OFFSET else at for each, at in found.items()}

    async def ends(
        self, partitions: Iterable[TopicPartition], end: LogEnd, deadline: Deadline
    ) -> dict[TopicPartition, int]:
        """Return where logs begin, or where they end. Raises what ``Leaders.ask`` raises."""
        found = await self._find(dict.fromkeys(partitions, end), deadline)
        return {each: at.offset for each, at in found.items()}

    async def _find(
        self, wanted: Wanted, deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        leaders = Leaders(self._cluster, self._ask)
        questions = {each: partial(_question, at=at) for each, at in wanted.items()}
        return await leaders.ask(questions, deadline)

    async def _ask(
        self, address: str, questions: Sequence[broker.ListOffsetsPartition], deadline: Deadline
    ) -> list[OffsetAndTimestamp | SemelError]:
        request = broker.ListOffsetsRequest(isolation_level=self._isolation, partitions=questions)
        response = await self._cluster.attempt_at(address, LIST_OFFSETS, request, deadline=deadline)
        return [
            status.from_value(result.error)
            if result.HasField("error")
            else OffsetAndTimestamp(result.offset, result.timestamp_ms)
            for result in response.partitions
        ]


class RecordDeletion:
    """Deletes the oldest records of partitions."""

    def __init__(self, cluster: Cluster, operator: Operator, *, validate_only: bool) -> None:
        self._cluster = cluster
        self._operator = operator
        self._validate_only = validate_only

    async def delete(
        self, before: Mapping[TopicPartition, int | None], deadline: Deadline
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete below an offset, None: all that is stable. Raises what ``Leaders.ask`` raises."""
        leaders = Leaders(self._cluster, self._ask)
        questions = {
            each: partial(_deletion, topic=each.topic, before=offset)
            for each, offset in before.items()
        }
        return await leaders.ask(questions, deadline)

    async def _ask(
        self, address: str, questions: Sequence[broker.DeleteRecordsPartition], deadline: Deadline
    ) -> list[DeletedRecords | SemelError]:
        request = broker.DeleteRecordsRequest(
            partitions=questions, validate_only=self._validate_only, operator=self._operator
        )
        response = await self._cluster.attempt_at(
            address, DELETE_RECORDS, request, deadline=deadline
        )
        return [
            status.from_value(result.error)
            if result.HasField("error")
            else DeletedRecords(
                log_start_offset=result.log_start_offset, deleted_offsets=result.deleted_offsets
            )
            for result in response.partitions
        ]


def _question(
    partition: ids.TopicPartition, *, at: OffsetSpec | AtTime
) -> broker.ListOffsetsPartition:
    question = broker.ListOffsetsPartition(
        topic_id=partition.topic_id, partition=partition.partition
    )
    if isinstance(at, AtTime):
        question.timestamp_ms = at.timestamp_ms
    else:
        question.spec = _SPECS[at]
    return question


def _deletion(
    partition: ids.TopicPartition, *, topic: str, before: int | None
) -> broker.DeleteRecordsPartition:
    # The name is for the audit.
    deletion = broker.DeleteRecordsPartition(
        topic=topic, topic_id=partition.topic_id, partition=partition.partition
    )
    if before is None:
        deletion.all = True
    else:
        deletion.before_offset = before
    return deletion
