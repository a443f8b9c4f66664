"""Reading a part of one log that is known beforehand, once, and from one place: no group, no reset.

A consumer follows logs; a range is for jobs that first plan which task reads which records. A range
names its topic by id too: a deleted topic and a new one of the same name have different logs.

Theory of operation. What was fetched waits unopened, because a compressed batch may be many times
as large once it is opened: each read opens as much as it returns. When a fetch arrives, the next
one is asked for before anything of it is opened, so that the broker works meanwhile. So a reader
holds at most two fetches, as they came, and nothing that is opened.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

from aiosemel._answers.batch_outcomes import BATCH_OUTCOMES
from aiosemel._cluster.leaders import Leaders
from aiosemel._cluster.retry import Deadline
from aiosemel._consumer.fetched_batch import open_batch
from aiosemel._consumer.partition_state import Opened
from aiosemel._consumer.prefetched_call import Ahead
from aiosemel._shared.context import Context
from aiosemel.errors import (
    InvalidRequestError,
    InvalidTopicError,
    OffsetOutOfRangeError,
    SemelError,
)
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.batch_outcome import BatchOutcome
from aiosemel.types.consumer_records import ColumnBatch
from aiosemel.types.isolation import ISOLATION
from aiosemel.types.offsets import TopicPartition
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import RecordBatch
from semel.coordinator.v1.outcomes_pb2 import Operator
from semel_common import ids
from semel_common.wire import status
from semel_common.wire.methods import FETCH


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """The records of one partition from ``start_offset`` on, up to before ``end_offset``."""

    topic: str
    topic_id: str
    """As ``Admin.describe_topics`` says it."""
    partition: int
    start_offset: int
    end_offset: int

    def __post_init__(self) -> None:
        """Refuse an invalid range, with InvalidRequestError."""
        if not 0 <= self.start_offset <= self.end_offset:
            raise InvalidRequestError(
                f"start_offset is {self.start_offset}, not within 0 to {self.end_offset}"
            )

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition, by the name of its topic."""
        return TopicPartition(self.topic, self.partition)


class LogRangeReader:
    """Reads one range. Made by ``SemelClient.read_range``; holds nothing that needs closing.

    ::

        reader = client.read_range(log_range)
        while batches := await reader.read():
            ...

    Not to be read by two tasks at a time.
    """

    def __init__(
        self,
        context: Context,
        log_range: LogRange,
        options: ConsumerOptions,
        *,
        with_outcomes: bool = False,
        operator: Operator | None = None,
    ) -> None:
        """Do no I/O yet."""
        self._spawn = context.spawn
        self._cluster = context.cluster
        self._range = log_range
        self._options = options
        self._isolation = ISOLATION[options.isolation_level]
        self._with_outcomes = with_outcomes
        self._operator = operator
        """For the audit, until a broker has noted the range."""
        self._open = open_batch(options)
        self._fetched: deque[tuple[RecordBatch, BatchOutcome | None]] = deque()
        """Not opened yet."""
        self._fetch_offset = log_range.start_offset
        self._ahead: Ahead[broker.FetchPartitionResult] | None = None
        """The fetch at the fetch offset, if it is asked for already."""
        self.position = log_range.start_offset
        """The offset to read next; ``end_offset``, or past it, when all is read."""

    async def read(self) -> Sequence[ColumnBatch]:
        """Return the next records, of about ``max_partition_fetch_bytes``; none: that was all.

        Compressed records count with their size after opening, and the call opens no more than
        that. A cancelled call has returned nothing, and moved nothing. Raises OffsetOutOfRangeError
        for offsets that the log does not hold (any more), InvalidTopicError if the topic is a new
        one of the same name, UnknownTopicOrPartitionError, CorruptMessageError, and
        RequestTimedOutError if no broker answers within ``default_api_timeout_ms`` of the client.
        """
        self._cluster.home.check()
        deadline = Deadline.after_ms(self._cluster.options.default_api_timeout_ms)
        while self.position < self._range.end_offset:
            if not self._fetched:
                await self._fetch_next(deadline)
            if batches := self._open_some():
                return batches
        return ()

    def _open_some(self) -> list[ColumnBatch]:
        """Open as many of the fetched records as one read returns, and move past them."""
        batches: list[ColumnBatch] = []
        room_bytes = self._options.max_partition_fetch_bytes
        while self._fetched and room_bytes > 0:
            batch, outcome = self._fetched[0]
            try:
                opened = self._within(batch)
            except SemelError:
                if batches:
                    break  # Those before it come first; it is opened again.
                self._fetch_anew()
                raise
            self._fetched.popleft()
            self.position = max(self.position, batch.base_offset + batch.record_count)
            if opened is not None:
                records = opened.records
                batches.append(records if outcome is None else replace(records, outcome=outcome))
                room_bytes -= opened.size_bytes
        if not self._fetched:
            self.position = max(self.position, self._fetch_offset)
        return batches

    def _within(self, batch: RecordBatch) -> Opened | None:
        """Return the records of a batch that are in the range; None where there are none."""
        start, end = self.position, self._range.end_offset
        if batch.control or batch.base_offset >= end:
            return None
        records, size_bytes = self._open(self._range.topic_partition, batch)
        inside = records.between(start, end)
        return Opened(inside, size_bytes) if inside else None

    # -- fetching --------------------------------------------------------------------------------

    async def _fetch_next(self, deadline: Deadline) -> None:
        """Take the next fetch, and ask for the one after it."""
        answer = None if self._ahead is None else await self._ahead.answer()
        self._ahead = None
        if answer is None:
            answer = await self._fetch(deadline)
        outcomes = map(BATCH_OUTCOMES.get, answer.batch_outcomes or repeat(0))
        self._fetched.extend(zip(answer.batches, outcomes, strict=False))
        if answer.next_offset <= self._fetch_offset:
            self._check_not_past_the_end(deadline)
            return
        self._fetch_offset = answer.next_offset
        if self._fetch_offset < self._range.end_offset:
            await self._ask_ahead()

    async def _ask_ahead(self) -> None:
        deadline = Deadline.after_ms(self._cluster.options.default_api_timeout_ms)
        name = f"fetch ahead {self._range.topic_partition}"
        self._ahead = Ahead(self._spawn, partial(self._fetch, deadline), name)
        await self._ahead.left()

    def _fetch_anew(self) -> None:
        """Forget the fetched records, and the request for the ones after them."""
        self._fetched.clear()
        self._ahead, self._fetch_offset = None, self.position

    async def _fetch(self, deadline: Deadline) -> broker.FetchPartitionResult:
        known = self._cluster.cache.cached_topic(self._range.topic)
        if known is not None and known.topic_id != self._range.topic_id:
            self._cluster.cache.forget_topic(self._range.topic)  # the maker of the range knows more
        leaders = Leaders(self._cluster, self._ask)
        answers = await leaders.ask({self._range.topic_partition: self._question}, deadline)
        return answers[self._range.topic_partition]

    def _question(self, partition: ids.TopicPartition) -> broker.FetchPartition:
        if partition.topic_id != self._range.topic_id:
            raise InvalidTopicError(
                f"topic {self._range.topic} with id {self._range.topic_id} is gone, "
                f"its id is {partition.topic_id}",
                topic=self._range.topic,
            )
        return broker.FetchPartition(
            topic_id=partition.topic_id,
            partition=partition.partition,
            fetch_offset=self._fetch_offset,
            partition_max_bytes=self._options.max_partition_fetch_bytes,
        )

    async def _ask(
        self, address: str, questions: Sequence[broker.FetchPartition], deadline: Deadline
    ) -> list[broker.FetchPartitionResult | SemelError]:
        request = broker.FetchRequest(
            isolation_level=self._isolation,
            min_bytes=1,
            max_bytes=self._options.max_partition_fetch_bytes,
            max_wait_ms=self._options.fetch_max_wait_ms,
            batch_outcomes=self._with_outcomes,
            partitions=questions,
            operator=self._operator,
        )
        response = await self._cluster.attempt_at(address, FETCH, request, deadline=deadline)
        self._operator = None
        return [
            status.from_value(result.error) if result.HasField("error") else result
            for result in response.partitions
        ]

    def _check_not_past_the_end(self, deadline: Deadline) -> None:
        """Give up if the log does not come to the end of the range within the time there is."""
        if deadline.remaining_ms() <= self._options.fetch_max_wait_ms:
            raise OffsetOutOfRangeError(
                f"{self._range.topic_partition} has nothing to read at offset {self.position}, and "
                f"the range goes to {self._range.end_offset}",
                topic=self._range.topic,
                partition=self._range.partition,
                offset=self.position,
            )
