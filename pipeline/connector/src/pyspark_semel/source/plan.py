"""Plans a batch read: which ranges of which logs, each for one task."""

from collections.abc import Collection

from aiosemel import LogRange, OffsetSpec, TopicPartition
from pyspark_semel.source.bounds import AtOffsets
from pyspark_semel.source.data_loss import DataLossReport
from pyspark_semel.source.filters import Narrowing
from pyspark_semel.source.logs import Logs, Seen
from pyspark_semel.source.offsets import Positions
from pyspark_semel.source.options import SourceOptions
from pyspark_semel.source.splits import Task, tasks


async def plan(logs: Logs, options: SourceOptions, narrowing: Narrowing) -> list[Task]:
    """Return what a batch reads, for each task.

    Raises OptionError, UnknownTopicError, and DataLossError for offsets that the
    logs do not hold.
    """
    seen = await logs.look_for_all()
    starting = options.starting or OffsetSpec.EARLIEST
    starts = await logs.starting(seen.partitions, starting)
    ends = await logs.ending(seen.partitions, options.ending)
    if isinstance(starting, AtOffsets) or isinstance(options.ending, AtOffsets):
        losses = DataLossReport(fail=options.fail_on_data_loss)
        starts, ends = await _within(logs, losses, starts, ends)
    wanted = [partition for partition in seen.partitions if narrowing.admits(partition)]
    late_enough = await _late_enough(logs, wanted, narrowing)
    ranges = [
        narrowing.narrow(_range(each, seen, starts[each], ends[each]), late_enough)
        for each in wanted
    ]
    return tasks(seen.cluster_id, ranges, options.spread)


async def _within(
    logs: Logs, losses: DataLossReport, starts: Positions, ends: Positions
) -> tuple[Positions, Positions]:
    """Return offsets that the logs hold; what they do not hold is reported."""
    log_starts, log_ends = await logs.starts(starts), await logs.ends(ends)
    for each, start in starts.items():
        end, log_start, log_end = ends[each], log_starts[each], log_ends[each]
        if min(start, end) < log_start or max(start, end) > log_end:
            losses.report(
                f"{each} is to be read from offset {start} to {end}, and its log holds "
                f"{log_start} to {log_end}"
            )
    return (
        {each: min(max(start, log_starts[each]), log_ends[each]) for each, start in starts.items()},
        {each: min(end, log_ends[each]) for each, end in ends.items()},
    )


def _range(partition: TopicPartition, seen: Seen, start: int, end: int) -> LogRange:
    return LogRange(
        topic=partition.topic,
        topic_id=seen.topic_ids[partition.topic],
        partition=partition.partition,
        start_offset=start,
        end_offset=max(start, end),
    )


async def _late_enough(
    logs: Logs, partitions: Collection[TopicPartition], narrowing: Narrowing
) -> Positions:
    """Return where the first records are that may pass by their timestamps."""
    if narrowing.timestamp_ms is None:
        return {}
    return await logs.since(partitions, narrowing.timestamp_ms)
