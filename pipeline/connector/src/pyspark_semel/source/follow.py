"""Follows the ends of logs for one run of a query: what its next micro-batch reads.

Theory of operation. Spark asks for the latest offset again and again, without a pause, until it is
another one than it knows. So a call that would tell nothing new waits first, at the brokers, for
records past the ends that the last call has seen. The first call after a micro-batch never waits.

The first micro-batch of a query may be empty: it is planned at once, because only with it Spark
stores anything, and so where the query has begun.
"""

import asyncio
import logging
import time

from aiosemel import OffsetSpec
from aiosemel.errors import SemelError
from pyspark_semel.source.checkpoint_check import CheckpointCheck
from pyspark_semel.source.lag import Lag
from pyspark_semel.source.limits import Patience, cap, size
from pyspark_semel.source.logs import Logs, Seen
from pyspark_semel.source.offsets import Positions, StreamOffsets
from pyspark_semel.source.options import SourceOptions
from pyspark_semel.source.splits import Task, tasks

IDLE_WAIT_MS = 400
"""How long a call waits for records at most: new topics and partitions are seen no later."""

_log = logging.getLogger(__name__)


class Follower:
    """One run of a query."""

    def __init__(self, logs: Logs, options: SourceOptions, lag: Lag) -> None:
        self._logs = logs
        self._lag = lag
        self._options = options
        self._checkpoint_check = CheckpointCheck(logs, options)
        self._initial: StreamOffsets | None = None
        self._target: StreamOffsets | None = None
        """Where a run ends that reads what is available now."""
        self._idle_ends: Positions | None = None
        """The ends of the logs when there was nothing to read; None: there was, or unknown."""
        self._missing: tuple[str, ...] = ()
        self._patience = Patience(max_delay=options.max_trigger_delay_ms / 1000)
        self._reported: Positions = {}
        self.known: StreamOffsets | None = None
        """Where the logs ended at last."""

    async def initial(self) -> StreamOffsets:
        """Return where the query begins: the same at every call."""
        if self._initial is None:
            seen = await self._logs.look_for_all()
            bound = self._options.starting or OffsetSpec.LATEST
            positions = await self._logs.starting(seen.partitions, bound)
            self._initial = _offsets(seen, positions, initial=True)
        return self._initial

    async def prepare_for_available_now(self) -> None:
        """Read up to the ends of this moment, and no further."""
        self._target = await self._ends()

    async def latest(
        self, start: StreamOffsets, *, maximum: int | None, minimum: int | None
    ) -> StreamOffsets:
        """Return where the next micro-batch ends; ``start`` itself: there is nothing to read yet.

        ``maximum`` and ``minimum`` are numbers of offsets.
        """
        await self._report(start)
        ends = self._target or await self._ends()
        begins, going_on = await self._begins(start, ends)
        stops = {each: max(end, begins[each]) for each, end in ends.positions.items()}
        same_logs = _same_logs(start, ends)
        if same_logs and (stops == start.positions or self._waits(size(begins, stops), minimum)):
            self._idle_ends = ends.positions
            return start
        self._patience = self._patience.begun(_now())
        if maximum is not None:
            stops = dict(cap(begins, stops, maximum))
        newest = ends if self.known is None else self.known
        await self._lag.note(stops, newest.positions, newest.topic_ids, time.time_ns() // 1_000_000)
        return StreamOffsets(
            cluster_id=ends.cluster_id,
            topic_ids=ends.topic_ids,
            positions=stops,
            began=going_on if start.initial else None,
        )

    async def tasks(self, start: StreamOffsets, end: StreamOffsets) -> list[Task]:
        """Return what a micro-batch reads, for each task."""
        ranges = await self._checkpoint_check.between(start, end)
        return tasks(end.cluster_id, ranges, self._options.spread)

    async def _ends(self) -> StreamOffsets:
        if self._idle_ends is not None:
            await self._logs.wait_for_records(self._idle_ends, IDLE_WAIT_MS)
            self._idle_ends = None
        seen = await self._logs.look()
        self._missing = seen.missing
        self.known = _offsets(seen, await self._logs.ends(seen.partitions))
        return self.known

    async def _begins(
        self, start: StreamOffsets, ends: StreamOffsets
    ) -> tuple[Positions, Positions]:
        """Return the next offsets of all partitions, and of the earlier ones."""
        going_on = await self._checkpoint_check.going_on(start, ends)
        if self._missing and self._options.fail_on_data_loss:
            self._logs.refuse(self._missing)
        new = [position for position in ends.positions if position not in going_on]
        return {**going_on, **(await self._logs.starts(new))}, going_on

    def _waits(self, offsets: int, minimum: int | None) -> bool:
        """Whether to wait until there is more to read."""
        if minimum is None or self._target is not None:
            return False
        return self._patience.holds(offsets, _now(), minimum=minimum)

    async def _report(self, done: StreamOffsets) -> None:
        """Tell the consumer group, if there is one, how far the query is; it is not to fail."""
        group_id = self._options.group_id
        if group_id is None or done.positions == self._reported:
            return
        try:
            # An outage of the group's coordinator is not to hold the query up.
            async with asyncio.timeout(self._options.api_timeout_ms / 1000):
                await self._logs.report(group_id, done.positions)
        except (SemelError, TimeoutError) as error:
            _log.warning("progress is not reported to group %s: %s", group_id, error)
        else:
            self._reported = done.positions


def _same_logs(start: StreamOffsets, ends: StreamOffsets) -> bool:
    """Whether nothing needs to be stored but progress; new partitions may wait for records."""
    return (
        not start.initial
        and start.topic_ids == ends.topic_ids
        and start.positions.keys() <= ends.positions.keys()
    )


def _now() -> float:
    return asyncio.get_running_loop().time()


def _offsets(seen: Seen, positions: Positions, *, initial: bool = False) -> StreamOffsets:
    return StreamOffsets(
        cluster_id=seen.cluster_id,
        topic_ids=seen.topic_ids,
        positions=positions,
        initial=initial,
    )
