"""Where logs begin and end, and where a moment is in them."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from aiosemel._cluster import Cluster
from aiosemel._isolation import ISOLATION, IsolationLevel
from aiosemel._retry import Deadline
from aiosemel.errors import (
    RefreshRetriableError,
    RequestTimedOutError,
    RetriableError,
    SemelError,
    UnknownTopicOrPartitionError,
)
from aiosemel.offsets import OffsetAndTimestamp, OffsetSpec, TopicPartition
from semel.broker.v1 import broker_pb2 as broker
from semel_common import ids
from semel_common.wire import status
from semel_common.wire.methods import LIST_OFFSETS

NO_OFFSET = -1
_SPECS = {
    OffsetSpec.EARLIEST: broker.OFFSET_SPEC_EARLIEST,
    OffsetSpec.LATEST: broker.OFFSET_SPEC_LATEST,
}


class AtTime(NamedTuple):
    """The first record with this timestamp, or a later one."""

    timestamp_ms: int


Wanted = Mapping[TopicPartition, OffsetSpec | AtTime]
Found = dict[TopicPartition, OffsetAndTimestamp]


class LogOffsets:
    """Looks offsets up in the logs of a cluster."""

    def __init__(self, cluster: Cluster, isolation: IsolationLevel) -> None:
        """Look up what a reader of this isolation level sees."""
        self._cluster = cluster
        self._isolation = ISOLATION[isolation]

    async def find(self, wanted: Wanted, deadline: Deadline) -> Found:
        """Return an offset for each partition, NO_OFFSET where no record is late enough.

        Raises UnknownTopicOrPartitionError, RequestTimedOutError, and whatever else is refused.
        """
        found: Found = {}
        pauses = self._cluster.backoff()
        while missing := {each: at for each, at in wanted.items() if each not in found}:
            error = await self._ask_once(missing, found, deadline)
            if error is None:
                continue
            pause_ms = next(pauses)
            if deadline.remaining_ms() <= pause_ms:
                raise RequestTimedOutError(f"not done in time: {error.message}") from error
            await asyncio.sleep(pause_ms / 1000)
            if isinstance(error, RefreshRetriableError):
                await self._cluster.refresh(deadline)
        return found

    async def _ask_once(
        self, wanted: Wanted, found: Found, deadline: Deadline
    ) -> RetriableError | None:
        """Ask every leader once; returns the last error after which asking again may help."""
        last: RetriableError | None = None
        asked: defaultdict[str, dict[TopicPartition, broker.ListOffsetsPartition]]
        asked = defaultdict(dict)
        for each, at in wanted.items():
            partition = await self._identify(each, deadline)
            try:
                address = self._cluster.leader_address(partition)
            except RetriableError as error:
                last = error
            else:
                asked[address][each] = _question(partition, at)
        for address, questions in asked.items():
            try:
                await self._ask(address, questions, found, deadline)
            except RetriableError as error:
                last = error
        return last

    async def _identify(self, wanted: TopicPartition, deadline: Deadline) -> ids.TopicPartition:
        topic = await self._cluster.topic(wanted.topic, deadline)
        if not 0 <= wanted.partition < len(topic.partitions):
            raise UnknownTopicOrPartitionError(
                f"topic {wanted.topic} has {len(topic.partitions)} partitions, "
                f"no partition {wanted.partition}"
            )
        return ids.TopicPartition(topic.topic_id, wanted.partition)

    async def _ask(
        self,
        address: str,
        questions: Mapping[TopicPartition, broker.ListOffsetsPartition],
        found: Found,
        deadline: Deadline,
    ) -> None:
        request = broker.ListOffsetsRequest(
            isolation_level=self._isolation, partitions=questions.values()
        )
        response = await self._cluster.attempt_at(address, LIST_OFFSETS, request, deadline=deadline)
        errors: list[SemelError] = []
        for each, result in zip(questions, response.partitions, strict=True):
            if result.HasField("error"):
                errors.append(status.from_value(result.error))
            else:
                found[each] = OffsetAndTimestamp(result.offset, result.timestamp_ms)
        for error in errors:
            raise error


def _question(
    partition: ids.TopicPartition, at: OffsetSpec | AtTime
) -> broker.ListOffsetsPartition:
    question = broker.ListOffsetsPartition(
        topic_id=partition.topic_id, partition=partition.partition
    )
    if isinstance(at, AtTime):
        question.timestamp_ms = at.timestamp_ms
    else:
        question.spec = _SPECS[at]
    return question
