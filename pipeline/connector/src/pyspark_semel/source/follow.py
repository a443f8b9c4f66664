"""Follows the ends of logs for one run of a query: what its next micro-batch reads.

Theory of operation. Spark asks for the latest offset again and again, without a pause, until it is
another one than it knows. So a call that would tell nothing new waits first, at the brokers, for
records past the ends that the last call has seen. The first call after a micro-batch never waits.
"""

from collections.abc import Mapping

from aiosemel import LogRange, OffsetSpec, TopicPartition

from pyspark_semel.errors import CheckpointError
from pyspark_semel.source.logs import Logs, Seen
from pyspark_semel.source.losses import Losses
from pyspark_semel.source.offsets import OffsetsError, Positions, StreamOffsets
from pyspark_semel.source.options import SourceOptions

IDLE_WAIT_MS = 400
"""How long a call waits for records at most: new topics and partitions are seen no later."""


class Follower:
    """One run of a query."""

    def __init__(self, logs: Logs, options: SourceOptions) -> None:
        self._logs = logs
        self._options = options
        self._losses = Losses(fail=options.fail_on_data_loss)
        self._initial: StreamOffsets | None = None
        self._seen_ends: Positions | None = None
        """Where the logs ended when there was nothing to read; None: there was, or who knows."""
        self.known: StreamOffsets | None = None
        """Where the logs ended at last."""

    async def initial(self) -> StreamOffsets:
        """Return where the query begins: the same at every call."""
        if self._initial is None:
            seen = await self._logs.look_for_all()
            bound = self._options.starting or OffsetSpec.LATEST
            positions = await self._logs.starting(seen.partitions, bound)
            self._initial = StreamOffsets(
                cluster_id=seen.cluster_id,
                topic_ids=seen.topic_ids,
                positions=positions,
                initial=True,
            )
        return self._initial

    async def latest(self, start: StreamOffsets) -> StreamOffsets:
        """Return where the next micro-batch ends; ``start`` itself: there is nothing to read."""
        if self._seen_ends is not None:
            await self._logs.wait_for_records(self._seen_ends, IDLE_WAIT_MS)
        self._seen_ends = None
        seen = await self._logs.look()
        ends = await self._logs.ends(seen.partitions)
        self.known = StreamOffsets(
            cluster_id=seen.cluster_id, topic_ids=seen.topic_ids, positions=ends
        )
        found = StreamOffsets(
            cluster_id=seen.cluster_id,
            topic_ids=seen.topic_ids,
            positions=ends,
            began=start.positions if start.initial else None,
        )
        if found.positions == start.positions and not start.initial:
            self._seen_ends = ends
            return start
        return found

    async def ranges(self, start: StreamOffsets, end: StreamOffsets) -> list[LogRange]:
        """Return what a micro-batch reads, by partition."""
        seen = await self._logs.look()
        begins = start.positions
        return [
            LogRange(
                topic=each.topic,
                topic_id=seen.topic_ids[each.topic],
                partition=each.partition,
                start_offset=begins[each],
                end_offset=stop,
            )
            for each, stop in end.positions.items()
            if begins[each] < stop
        ]
