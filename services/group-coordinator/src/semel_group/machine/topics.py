"""Which partition a caller means."""

from collections.abc import Iterable

from semel_common.errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from semel_common.ids import TopicPartition
from semel_group.machine.values import TopicName
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import Topic


class Topics:
    """The cluster's topics, as this instance knows them."""

    def __init__(self, cluster: ClusterCopy) -> None:
        """Answer from the copy of the metadata, whatever it is by then."""
        self._cluster = cluster

    def named(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return those topics that exist, by name, in the order of their names."""
        found = ((name, self._find(name)) for name in sorted(names))
        return {name: topic for name, topic in found if topic is not None}

    def topic(self, name: TopicName) -> Topic:
        """Return the topic that a caller names.

        Raises UnknownTopicOrPartitionError or UnknownTopicIdError.
        """
        if not name.topic_id:
            return self._cluster.topic_by_name(name.topic)
        topic = self._cluster.topic_by_id(name.topic_id)
        if name.topic and name.topic != topic.name:
            raise UnknownTopicIdError(
                f"topic id {name.topic_id} is that of {topic.name!r}, not of {name.topic!r}"
            )
        return topic

    def partition(self, name: TopicName, partition: int) -> TopicPartition:
        """Return the partition that a caller names; raises as ``topic`` does."""
        topic = self.topic(name)
        if partition >= len(topic.partitions):
            raise UnknownTopicOrPartitionError(
                f"topic {topic.name!r} has {len(topic.partitions)} partitions,"
                f" no partition {partition}"
            )
        return TopicPartition(topic.topic_id, partition)

    def name_of(self, topic_id: str) -> TopicName:
        """Return name and id of a topic; the name is empty if there is no such topic any more."""
        try:
            return TopicName(self._cluster.topic_by_id(topic_id).name, topic_id)
        except UnknownTopicIdError:
            return TopicName("", topic_id)

    def exists(self, topic_id: str) -> bool:
        """Whether there is a topic with this id."""
        return bool(self.name_of(topic_id).topic)

    def _find(self, name: str) -> Topic | None:
        try:
            return self._cluster.topic_by_name(name)
        except UnknownTopicOrPartitionError:
            return None
