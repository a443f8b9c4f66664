"""Whether offsets still mean what they meant: the logs they name may be gone, or be other ones.

Missing records are reported as a loss: an error, unless ``failOnDataLoss`` is false; then the query
goes on with the present records, and reads a new log from its start.
"""

from collections.abc import Collection, Mapping

from aiosemel import LogRange, TopicPartition
from pyspark_semel.errors import CheckpointError
from pyspark_semel.source.data_loss import DataLossReport
from pyspark_semel.source.logs import Logs, Seen
from pyspark_semel.source.offsets import Positions, StreamOffsets
from pyspark_semel.source.options import SourceOptions
from pyspark_semel.source.subscriptions import subscribes


class CheckpointCheck:
    """Compares stored offsets with the logs that are there."""

    def __init__(self, logs: Logs, options: SourceOptions) -> None:
        self._logs = logs
        self._options = options
        self._data_loss = DataLossReport(fail=options.fail_on_data_loss)

    async def going_on(self, start: StreamOffsets, now: StreamOffsets) -> Positions:
        """Return where to read on, in those of the partitions at ``start`` that are still there.

        Raises DataLossError for missing ones, CheckpointError for another cluster.
        """
        self._check_cluster(start, now.cluster_id)
        self._check_logs(start, now.topic_ids, now.positions)
        going_on = {
            each: position
            for each in now.positions
            if (position := start.position(each, now.topic_ids[each.topic])) is not None
        }
        return {**going_on, **(await self._cut_off(going_on, now))}

    async def between(self, start: StreamOffsets, end: StreamOffsets) -> list[LogRange]:
        """Return what a micro-batch reads: the same when it is repeated.

        Raises as ``going_on``, and DataLossError for records that the logs do not hold any more.
        """
        seen = await self._logs.look()
        self._check_cluster(end, seen.cluster_id)
        self._check_logs(end, seen.topic_ids, seen.partitions)
        there = {
            partition: stop
            for partition in seen.partitions
            if (stop := end.position(partition, seen.topic_ids[partition.topic])) is not None
        }
        log_starts = await self._logs.starts(there)
        ranges = []
        for each, stop in there.items():
            begin = min(self._begin(each, start, end, log_starts[each]), stop)
            ranges.append(self._range(each, seen, begin, stop))
        return ranges

    def _begin(
        self, partition: TopicPartition, start: StreamOffsets, end: StreamOffsets, log_start: int
    ) -> int:
        topic_id = end.topic_ids[partition.topic]
        if start.initial and end.began is not None:
            known = end.began.get(partition)
        else:
            known = start.position(partition, topic_id)
        added = start.topic_ids.get(partition.topic) == topic_id
        begin = known if known is not None else 0 if added else log_start
        if begin < log_start:
            self._data_loss.report(
                f"the records of {partition} from offset {begin} to {log_start - 1} were removed, "
                "by retention or by deletion, before the query has read them"
            )
        return max(begin, log_start)

    def _range(self, partition: TopicPartition, seen: Seen, start: int, end: int) -> LogRange:
        return LogRange(
            topic=partition.topic,
            topic_id=seen.topic_ids[partition.topic],
            partition=partition.partition,
            start_offset=start,
            end_offset=end,
        )

    def _check_cluster(self, stored: StreamOffsets, cluster_id: str) -> None:
        if stored.cluster_id == cluster_id:
            return
        what = (
            f"the checkpoint holds offsets of the cluster {stored.cluster_id}, and "
            f"{self._options.bootstrap} is the cluster {cluster_id}"
        )
        if self._options.fail_on_data_loss:
            raise CheckpointError(
                f"{what}: set bootstrap.servers to the cluster of the checkpoint, or give the "
                "query a new checkpointLocation and say with startingOffsets where it begins"
            )
        self._data_loss.report(what)

    def _check_logs(
        self,
        stored: StreamOffsets,
        topic_ids: Mapping[str, str],
        partitions: Collection[TopicPartition],
    ) -> None:
        for topic, topic_id in stored.topic_ids.items():
            self._check_topic(topic, topic_id, topic_ids.get(topic))
        for missing in sorted(stored.positions.keys() - set(partitions)):
            # A topic that is there has all its partitions: these are not subscribed to.
            if stored.topic_ids[missing.topic] == topic_ids.get(missing.topic):
                self._data_loss.report(
                    f"{missing} is in the checkpoint, and the options do not name it any more"
                )

    def _check_topic(self, topic: str, known_id: str, topic_id: str | None) -> None:
        if topic_id == known_id:
            return
        if topic_id is not None:
            self._data_loss.report(
                f"topic {topic} was deleted and created again (its id was {known_id} and is "
                f"{topic_id}) since the query has read it"
            )
        elif subscribes(self._options.subscription, topic):
            self._data_loss.report(f"topic {topic}, which the query reads, was deleted")
        else:
            self._data_loss.report(
                f"topic {topic} is in the checkpoint, and the options do not name it any more"
            )

    async def _cut_off(self, going_on: Positions, now: StreamOffsets) -> Positions:
        """Report logs that end before their read offsets, and return their ends."""
        ahead = [each for each, position in going_on.items() if position > now.positions[each]]
        if not ahead:
            return {}
        # The last stable offset lies behind the position that another isolation level reached
        # before.
        ends = await self._logs.durable_ends(ahead)
        cut_off = {each: end for each, end in ends.items() if end < going_on[each]}
        for each, end in cut_off.items():
            self._data_loss.report(
                f"{each} ends at offset {end}, and the query is to go on at {going_on[each]}"
            )
        return cut_off
