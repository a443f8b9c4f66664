"""How many records lie before a reader: asked again, until each log is counted through."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from aiosemel._cluster.leaders import Leaders
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import RequestTimedOutError, SemelError
from aiosemel.types.isolation import ISOLATION, IsolationLevel
from aiosemel.types.offsets import Lag, TopicPartition
from semel.broker.v1 import broker_pb2 as broker
from semel_common import ids
from semel_common.wire import status
from semel_common.wire.methods import COUNT_RECORDS


class _Counted(NamedTuple):
    record_count: int
    first_timestamp_ms: int
    next_offset: int
    end_offset: int


class RecordCounts:
    """Counts what a reader of one isolation level has yet to read."""

    def __init__(self, cluster: Cluster, isolation: IsolationLevel) -> None:
        """Count what a reader of this isolation level sees."""
        self._cluster = cluster
        self._isolation = ISOLATION[isolation]

    async def count(
        self, starts: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, Lag]:
        """Return the records from each offset to where the log ends at first sight.

        Raises what ``Leaders.ask`` raises.
        """
        leaders = Leaders(self._cluster, self._ask)
        counts: Counter[TopicPartition] = Counter()
        times: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        left = dict(starts)
        while left:
            if deadline.remaining_ms() <= 0:
                raise RequestTimedOutError(
                    f"{len(left)} partitions are not counted in time{self._cluster.trouble.suffix}"
                )
            questions = {each: partial(_question, offset=at) for each, at in left.items()}
            for each, counted in (await leaders.ask(questions, deadline)).items():
                counts[each] += counted.record_count
                if counted.record_count:
                    times.setdefault(each, counted.first_timestamp_ms)
                left[each] = counted.next_offset
                if counted.next_offset >= ends.setdefault(each, counted.end_offset):
                    del left[each]
        return {
            each: Lag(records=counts[each], oldest_ms=times.get(each) or None) for each in starts
        }

    async def _ask(
        self, address: str, questions: Sequence[broker.CountRecordsPartition], deadline: Deadline
    ) -> list[_Counted | SemelError]:
        request = broker.CountRecordsRequest(isolation_level=self._isolation, partitions=questions)
        response = await self._cluster.attempt_at(
            address, COUNT_RECORDS, request, deadline=deadline
        )
        return [
            status.from_value(result.error)
            if result.HasField("error")
            else _Counted(
                result.record_count,
                result.first_timestamp_ms,
                result.next_offset,
                result.end_offset,
            )
            for result in response.partitions
        ]


def _question(partition: ids.TopicPartition, *, offset: int) -> broker.CountRecordsPartition:
    return broker.CountRecordsPartition(
        topic_id=partition.topic_id, partition=partition.partition, from_offset=offset
    )
