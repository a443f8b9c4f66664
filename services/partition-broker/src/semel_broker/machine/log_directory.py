"""Which logs there are: found by id and by name, and kept in step with the cluster's metadata.

A log is led here, or it is the copy of one that moves here, or one that was handed over to where it
moves: only the first kind is served. Whatever the metadata name neither as led here nor as moving
here is dropped.

Invariant: a log id is never given twice, so the rest of a deleted partition in the store never
turns up in another one.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.records import LogDropped, LogIdsGiven, LogPurged, LogState
from semel_broker.machine.values import PartitionName
from semel_common.errors import (
    InvalidRequestError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import TopicPartition
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, PartitionLeader, Topic
from semel_runtime.cluster.topic_options import Overrides

DirectoryRecord: TypeAlias = LogState | LogDropped | LogPurged | LogIdsGiven


class LogDirectory:
    """All logs of this broker."""

    def __init__(self, instance_id: int, cluster: ClusterCopy) -> None:
        self._instance_id = instance_id
        self._cluster = cluster
        self._by_log_id: dict[int, PartitionLog] = {}
        self._by_partition: dict[TopicPartition, PartitionLog] = {}
        self._by_name: dict[tuple[str, int], PartitionLog] = {}
        self._dropped: dict[int, LogDropped] = {}
        self._options: dict[str, Overrides] = {}
        """Options that are set, by topic id, as ``configure`` has last seen them."""
        self._next_log_id = 0

    def led_here(self) -> Iterator[PartitionLog]:
        """Return the logs that this broker leads."""
        return filter(self.is_led, self)

    def led_of(self, partitions: Iterable[TopicPartition]) -> Iterator[PartitionLog]:
        """Return those of some logs that are there and led here."""
        return (log for log in map(self.led_at, partitions) if log is not None)

    def copies(self) -> Iterator[PartitionLog]:
        """Return the logs that move here."""
        return (log for log in self if not self.is_own(log))

    def is_own(self, log: PartitionLog) -> bool:
        """Whether a log is no copy: led here, or handed over."""
        return self.leads(log.identity)

    def leads(self, state: LogState) -> bool:
        """Whether this broker is the leader that a log's state names."""
        return state.leader_id == self._instance_id

    def is_led(self, log: PartitionLog) -> bool:
        """Whether a log is served here."""
        return self.is_own(log) and not log.identity.handed_over

    def is_settled(self, log: PartitionLog) -> bool:
        """Whether a log is led here, and moves nowhere."""
        return self.is_led(log) and self.leader(log.partition).moving_to is None

    def leader(self, partition: TopicPartition) -> PartitionLeader:
        """Return who leads a partition by the metadata; see ``ClusterCopy.leader_of``."""
        return self._cluster.leader_of(partition)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._by_log_id.values())

    @property
    def dropped(self) -> tuple[int, ...]:
        """Logs whose batches are to be deleted."""
        return tuple(self._dropped)

    # -- finding -------------------------------------------------------------------------------

    def log(self, log_id: int) -> PartitionLog:
        """Return a log that is there."""
        return self._by_log_id[log_id]

    def get(self, log_id: int) -> PartitionLog | None:
        """Return a log, or None if it was dropped."""
        return self._by_log_id.get(log_id)

    def at(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the log of a partition, served or not; None if there is none here."""
        return self._by_partition.get(partition)

    def led_at(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the log of a partition that is led here, or None."""
        log = self._by_partition.get(partition)
        return log if log is not None and self.is_led(log) else None

    def find(self, name: PartitionName) -> PartitionLog:
        """Return the log of a partition that was named by topic, by id, or by both.

        Raises UnknownTopicIdError, UnknownTopicOrPartitionError, NotLeaderOrFollowerError, and
        InvalidRequestError if name and id do not agree.
        """
        if not name.topic_id:
            return self._find_by_name(name.topic, name.partition)
        log = self.find_by_id(TopicPartition(name.topic_id, name.partition))
        if name.topic and name.topic != log.identity.topic:
            raise InvalidRequestError(
                f"topic id {name.topic_id} is that of {log.identity.topic!r}, not of {name.topic!r}"
            )
        return log

    def look_up(self, name: PartitionName) -> PartitionLog | None:
        """Return the log of a partition, or None; whether it may be served is left to `find`."""
        if name.topic_id:
            return self._by_partition.get(TopicPartition(name.topic_id, name.partition))
        return self._by_name.get((name.topic, name.partition))

    def find_by_id(self, partition: TopicPartition) -> PartitionLog:
        """Return the log of a partition; raises as `find`."""
        log = self._by_partition.get(partition)
        if log is None or not self.is_led(log):
            raise self._not_led(self._cluster.topic_by_id(partition.topic_id), partition.partition)
        return log

    def _find_by_name(self, topic: str, partition: int) -> PartitionLog:
        log = self._by_name.get((topic, partition))
        if log is None or not self.is_led(log):
            raise self._not_led(self._cluster.topic_by_name(topic), partition)
        return log

    def _not_led(
        self, topic: Topic, partition: int
    ) -> NotLeaderOrFollowerError | UnknownTopicOrPartitionError:
        if not 0 <= partition < len(topic.partitions):
            return UnknownTopicOrPartitionError(
                f"topic {topic.name!r} has {len(topic.partitions)} partitions,"
                f" no partition {partition}"
            )
        leader = topic.partitions[partition]
        if leader.leader_id == self._instance_id:
            return NotLeaderOrFollowerError(
                f"partition {partition} of topic {topic.name!r} has just been handed over to broker"
                f" {leader.moving_to}"
            )
        return NotLeaderOrFollowerError(
            f"broker {leader.leader_id} leads partition {partition} of topic {topic.name!r},"
            f" not broker {self._instance_id}",
            leader_id=leader.leader_id,
        )

    # -- following the metadata ----------------------------------------------------------------

    def follow(self, image: ClusterImage) -> Iterator[LogState | LogDropped]:
        """Yield what a newer image changes: logs dropped, led here from now on, or created.

        The logs follow the image that is known: what is the same in both needs no look.
        """
        newer = {topic.topic_id: topic for topic in image.topics}
        known = self._cluster.image
        for topic in () if known is None else known.topics:
            if newer.get(topic.topic_id) != topic:
                yield from self._changed_logs(topic, newer.get(topic.topic_id))
        yield from self._new_logs(image)

    def _changed_logs(self, topic: Topic, newer: Topic | None) -> Iterator[LogState | LogDropped]:
        leaders = () if newer is None else newer.partitions
        for index in range(len(topic.partitions)):
            log = self._by_partition.get(TopicPartition(topic.topic_id, index))
            if log is None:
                continue
            if index >= len(leaders) or not self._is_kept(log, leaders[index]):
                yield LogDropped(log_id=log.log_id)
            elif not _is_led_by(log, leaders[index]):
                yield _with_leader(log, leaders[index])

    def _is_kept(self, log: PartitionLog, leader: PartitionLeader) -> bool:
        """Whether a log is of use: led here now, or the copy that a move goes on with.

        A copy that was made under another leader epoch is not: its move was given up, and the
        leader may have compacted the log since.
        """
        if leader.leader_id == self._instance_id:
            return True
        return leader.moving_to == self._instance_id and _is_led_by(log, leader)

    def _new_logs(self, image: ClusterImage) -> Iterator[LogState]:
        log_id = self._next_log_id
        for topic in image.topics:
            if self._cluster.find_topic(topic.topic_id) == topic:
                continue
            for index, leader in enumerate(topic.partitions):
                if self._is_wanted(TopicPartition(topic.topic_id, index), leader):
                    yield _new_log(log_id, topic, index, leader)
                    log_id += 1

    def _is_wanted(self, partition: TopicPartition, leader: PartitionLeader) -> bool:
        """Whether there is to be a log that is not there yet, or not any more."""
        if self._instance_id not in {leader.leader_id, leader.moving_to}:
            return False
        log = self._by_partition.get(partition)
        return log is None or not self._is_kept(log, leader)

    def configure(self) -> None:
        """Let logs have the options that the metadata have for their topics, where these are new.

        To be called with each image. A log that comes later takes them by itself.
        """
        image = self._cluster.image
        assert image is not None, "there is an image whenever there is a new one"
        for topic in image.topics:
            if topic.configs != self._options.get(topic.topic_id, ()):
                for index in range(len(topic.partitions)):
                    log = self._by_partition.get(TopicPartition(topic.topic_id, index))
                    if log is not None:
                        log.config = topic.config
        self._options = {each.topic_id: each.configs for each in image.topics if each.configs}

    def _configure(self, log: PartitionLog) -> None:
        topic = self._cluster.find_topic(log.partition.topic_id)
        if topic is not None:
            log.config = topic.config

    # -- records -------------------------------------------------------------------------------

    def replay(self, record: DirectoryRecord) -> None:
        """Apply one record."""
        match record:
            case LogState():
                self._put(record)
            case LogDropped():
                self._drop(record)
            case LogPurged():
                del self._dropped[record.log_id]
            case LogIdsGiven():
                self._next_log_id = record.next_log_id
            case _:
                assert_never(record)

    def snapshot(self) -> Iterator[DirectoryRecord]:
        """Return everything but the logs that are there."""
        yield LogIdsGiven(next_log_id=self._next_log_id)
        yield from self._dropped.values()

    def _put(self, state: LogState) -> None:
        log = self._by_log_id.get(state.log_id)
        if log is None:
            log = self._by_log_id[state.log_id] = PartitionLog(state)
            self._by_partition[log.partition] = log
            self._by_name[state.topic, state.partition] = log
            self._next_log_id = max(self._next_log_id, state.log_id + 1)
        log.identify(state)
        self._configure(log)

    def _drop(self, record: LogDropped) -> None:
        self._dropped[record.log_id] = record
        log = self._by_log_id.pop(record.log_id, None)
        if log is None:
            return  # from a snapshot: the log itself is gone already
        log.drop()
        del self._by_partition[log.partition]
        del self._by_name[log.identity.topic, log.identity.partition]


def _is_led_by(log: PartitionLog, leader: PartitionLeader) -> bool:
    """Whether a log knows this leader, in this epoch, as its own."""
    known = log.identity
    return (known.leader_id, known.leader_epoch) == (leader.leader_id, leader.leader_epoch)


def _with_leader(log: PartitionLog, leader: PartitionLeader) -> LogState:
    return replace(
        log.state(),
        leader_id=leader.leader_id,
        leader_epoch=leader.leader_epoch,
        handed_over=False,
        taken_over=False,
    )


def _new_log(log_id: int, topic: Topic, index: int, leader: PartitionLeader) -> LogState:
    return LogState(
        log_id=log_id,
        topic_id=topic.topic_id,
        topic=topic.name,
        partition=index,
        leader_epoch=leader.leader_epoch,
        leader_id=leader.leader_id,
        log_start_offset=0,
        log_end_offset=0,
        gaps_known=True,
    )
