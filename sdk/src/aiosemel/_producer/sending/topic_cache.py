"""The topics that a producer sends to: their partitions, and how large their batches may become.

The limit of a topic is its ``max.message.bytes``, which metadata has, and at most the producer's
``max_request_size_bytes``. A topic without that option has its brokers' limit: a producer learns it
from their refusals (``accumulator``).
"""

from collections.abc import Sequence

from aiosemel._cluster.metadata import ClusterMetadata
from aiosemel._cluster.retry import Deadline
from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch
from aiosemel._producer.batching.columns import EncodedRows, RowColumns, Rows
from aiosemel._producer.batching.conditional_append import ConditionalAppend
from aiosemel._producer.batching.partitioning import Part, TopicPartitions, check_partition
from aiosemel._producer.batching.record_sizes import Slice
from aiosemel._producer.batching.size_limits import check_request_size, limit_of, too_large
from aiosemel._producer.sending.request_encoding import payload_of
from aiosemel._shared.context import Context
from aiosemel.options.client_options import ProducerOptions
from aiosemel.types.offsets import TopicPartition
from semel_common import ids

ALONE = Slice(0, 1, 0)
"""The one row of columns."""


class Topics:
    """The topics of one producer."""

    def __init__(
        self, context: Context, options: ProducerOptions, accumulator: Accumulator
    ) -> None:
        """Know none yet."""
        self._cluster = context.cluster
        self._clock = context.clock
        self._random = context.random
        self._compression = options.compression
        self._size_max_bytes = options.max_request_size_bytes
        self._waits_for_topics = options.waits_for_topics
        self._accumulator = accumulator
        self.known: dict[str, TopicPartitions] = {}
        """By name, as of ``metadata``."""
        self._names: dict[str, str] = {}
        """Of all topics that were sent to, by id, deleted ones included."""
        self.metadata: ClusterMetadata | None = None

    async def partitions_of(
        self, topic: str, partition: int | None, deadline: Deadline
    ) -> TopicPartitions:
        """Return a topic that has a partition of this number, if it does not take too long.

        Raises UnknownTopicOrPartitionError.
        """
        check_partition(partition)
        partitions = await self._ask(topic, deadline)
        if not partitions.has(partition):
            # The topic may have got more of them since.
            await self._cluster.cache.refresh(deadline)
            partitions = await self._ask(topic, deadline)
        if partition is not None:
            partitions.numbered(partition)
        return partitions

    def name_of(self, topic_id: str) -> str:
        """Return the name of a topic that was sent to."""
        return self._names[topic_id]

    def place(self, partition: ids.TopicPartition) -> TopicPartition:
        """Return a partition that was sent to, by the name of its topic."""
        return TopicPartition(self._names[partition.topic_id], partition.partition)

    async def _ask(self, topic: str, deadline: Deadline) -> TopicPartitions:
        metadata = await self._cluster.cache.topic(topic, deadline, waits=self._waits_for_topics)
        if self.metadata is not self._cluster.cache.metadata:
            self.metadata = self._cluster.cache.metadata
            self.known.clear()
            self._accumulator.forget_limits()
        partitions = self.known.get(topic)
        if partitions is None:
            self._names[metadata.topic_id] = topic
            partitions = self.known[topic] = TopicPartitions(
                topic,
                tuple(
                    ids.TopicPartition(metadata.topic_id, p.partition) for p in metadata.partitions
                ),
                self._random.randrange(1 << 16),
                min(self._size_max_bytes, limit_of(metadata) or self._size_max_bytes),
            )
        return partitions

    # -- how large batches may become -----------------------------------------------------------

    def batch_limit(self, topic: TopicPartitions) -> int:
        """Return how large the next batch of a topic may become, in bytes."""
        return self._accumulator.batch_limit(topic.sticky.topic_id, topic.limit_bytes)

    async def cut(
        self, topic: TopicPartitions, parts: Sequence[Part], deadline: Deadline
    ) -> list[list[Slice]]:
        """Cut rows into slices that batches can take; raises MessageTooLargeError for a row."""
        limit_bytes = self.batch_limit(topic)
        cuts = [list(rows.slices(limit_bytes)) for _, rows in parts]
        for (_, rows), slices in zip(parts, cuts, strict=True):
            for piece in slices:
                if piece.size_bytes > topic.limit_bytes:
                    check_request_size(topic.name, 1, piece.size_bytes, self._size_max_bytes)
                    topic = await self.check_fits(topic, rows, piece, deadline)
        return cuts

    async def check_append(
        self, topic: TopicPartitions, append: ConditionalAppend, deadline: Deadline
    ) -> None:
        """Raise MessageTooLargeError for an append that is no batch of its topic."""
        count = len(append.values)
        check_request_size(topic.name, count, append.size_bytes, self._size_max_bytes)
        if append.size_bytes > topic.limit_bytes:
            rows = RowColumns.checked(
                append.values,
                keys=append.keys,
                headers=[append.headers.get(at, ()) for at in range(count)],
                timestamp_ms=None,
                timestamps_ms=append.timestamps_ms,
            )
            await self.check_fits(topic, rows, Slice(0, count, 0), deadline)

    async def check_fits(
        self, topic: TopicPartitions, rows: Rows, at: Slice, deadline: Deadline
    ) -> TopicPartitions:
        """Return the topic as it is now; raises MessageTooLargeError for rows that it cannot take.

        Asks for its limit again first: that may have been raised.
        """
        size_bytes = self._payload_size(topic.partitions[0], rows, at)
        if size_bytes > topic.limit_bytes:
            await self._cluster.cache.refresh(deadline)
            topic = await self._ask(topic.name, deadline)
        if size_bytes > topic.limit_bytes:
            raise too_large(topic.name, at.stop - at.start, size_bytes, topic.limit_bytes)
        return topic

    def _payload_size(self, place: ids.TopicPartition, rows: Rows, at: Slice) -> int:
        batch = Batch(place, number=0, deadline_ms=0, limit_bytes=0)
        start, stop, _ = at
        now_ms = self._clock.now_ms()
        if isinstance(rows, EncodedRows):
            batch.add_encoded(rows.cut(start, stop), rows.times(start, stop, now_ms))
        else:
            batch.add_columns(rows.cut(start, stop), now_ms)
        return sum(map(len, payload_of(batch, self._compression)))
