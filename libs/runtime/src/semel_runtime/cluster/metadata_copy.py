"""The machine that keeps an instance's copy of the cluster's metadata.

Theory of operation: the controller's image replaces the copy whenever its version is newer;
versions never go back, and one version has one content. (Access rules and moved partitions are the
exception: an older release has stored an image without them.) A controller that offers
less than is known here works on an older copy of its volume: following it would drop topics that
exist, and their records with them, so the copy refuses its image. Look-ups use indexes that replay
rebuilds. The layout says which instances lead the partitions of groups and of the transaction log,
unless the image names another leader. While the controller is away, every instance goes on with the
last image.
"""

from collections.abc import Iterable

from semel_common.errors import (
    BrokerNotAvailableError,
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidProducerIdMappingError,
    StaleClaimEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_common.ids import (
    InternalTopic,
    TopicPartition,
    owner_of,
    partition_for_id,
    transaction_log_partition_of,
)
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.machine import Result


class ClusterCopy:
    """The newest image that is known here, if any."""

    def __init__(self) -> None:
        """Start without an image."""
        self._image: tuple[int, ClusterImage] | None = None
        self._topics_by_id: dict[str, Topic] = {}
        self._topics_by_name: dict[str, Topic] = {}
        self._instances: dict[tuple[ServiceRole, int], Instance] = {}
        self._internal: dict[tuple[str, int], PartitionLeader] = {}

    def update(self, image: ClusterImage) -> Result[bool, ClusterImage]:
        """Take a newer image. Answers whether it was newer.

        Raises InconsistentClusterIdError for the image of another cluster, and StaleClaimEpochError
        for one of a controller that has forgotten what it has said.
        """
        if self._image is None:
            return Result(True, (image,))
        known = self._image[1]
        if known.cluster_id != image.cluster_id:
            raise InconsistentClusterIdError(
                f"this instance belongs to cluster {known.cluster_id}, not to {image.cluster_id}"
            )
        if image.version > known.version:
            return Result(True, (image,))
        if image.version < known.version or not _has_all_of(image, known):
            raise StaleClaimEpochError(
                f"the controller's metadata has version {image.version} and {len(image.topics)}"
                f" topics, but version {known.version} with {len(known.topics)} topics is known"
                " here: the volume of coordinator-0 was restored from an old backup; stop it"
                " and see `semel recover`"
            )
        if _later_additions(image) != _later_additions(known):
            return Result(True, (image,))
        return Result(False)

    def replay(self, offset: int, image: ClusterImage) -> None:
        """Put an image in place."""
        self._image = (offset, image)
        self._topics_by_id = {topic.topic_id: topic for topic in image.topics}
        self._topics_by_name = {topic.name: topic for topic in image.topics}
        self._instances = {
            (instance.role, instance.instance_id): instance for instance in image.instances
        }
        self._internal = {
            (internal_partition.topic, internal_partition.partition): internal_partition.leader
            for internal_partition in image.internal_partitions
        }

    def snapshot(self) -> Iterable[tuple[int, ClusterImage]]:
        """Return the image, if there is one."""
        return () if self._image is None else (self._image,)

    @property
    def image(self) -> ClusterImage | None:
        """The newest image."""
        return None if self._image is None else self._image[1]

    @property
    def cluster_id(self) -> str:
        """The cluster's id; empty as long as it is unknown."""
        return "" if self._image is None else self._image[1].cluster_id

    @property
    def layout(self) -> Layout:
        """The cluster's layout. Raises CoordinatorNotAvailableError before the first image."""
        if self._image is None:
            raise CoordinatorNotAvailableError(
                "this instance has not heard from the controller yet"
            )
        return self._image[1].layout

    def find_topic(self, topic_id: str) -> Topic | None:
        """Return a topic, or None if there is none."""
        return self._topics_by_id.get(topic_id)

    def topic_by_id(self, topic_id: str) -> Topic:
        """Return a topic. Raises UnknownTopicIdError."""
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicIdError(f"no topic has the id {topic_id!r}")
        return topic

    def topic_by_name(self, name: str) -> Topic:
        """Return a topic. Raises UnknownTopicOrPartitionError."""
        topic = self._topics_by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"no topic is named {name!r}")
        return topic

    def leader_of(self, partition: TopicPartition) -> PartitionLeader:
        """Return who leads a partition.

        Raises UnknownTopicIdError, UnknownTopicOrPartitionError.
        """
        topic = self.topic_by_id(partition.topic_id)
        if not 0 <= partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartitionError(
                f"topic {topic.name!r} has {len(topic.partitions)} partitions,"
                f" no partition {partition.partition}"
            )
        return topic.partitions[partition.partition]

    def check_producer_id(self, producer_id: int) -> None:
        """Refuse an id that no coordinator gives out, so no coordinator knows its transactions.

        Raises InvalidProducerIdMappingError.
        """
        partition = transaction_log_partition_of(producer_id)
        if partition >= self.layout.transaction_log_partitions:
            raise InvalidProducerIdMappingError(
                f"producer id {producer_id} names transaction-log partition {partition} of"
                f" {self.layout.transaction_log_partitions}"
            )

    def coordinator_of(self, producer_id: int) -> int:
        """Return the coordinator instance in charge of a producer id."""
        return self.transaction_log_leader(transaction_log_partition_of(producer_id)).leader_id

    def coordinator_for(self, transactional_id: str) -> int:
        """Return the coordinator instance in charge of a transactional id."""
        partition = partition_for_id(transactional_id, self.layout.transaction_log_partitions)
        return self.transaction_log_leader(partition).leader_id

    def group_coordinator_for(self, group_id: str) -> int:
        """Return the group coordinator instance in charge of a group."""
        return self.group_leader(self.group_partition_of(group_id)).leader_id

    def group_partition_of(self, group_id: str) -> int:
        """Return the partition of a group."""
        return partition_for_id(group_id, self.layout.group_partitions)

    def group_leader(self, partition: int) -> PartitionLeader:
        """Return which group coordinator leads a partition of groups."""
        moved = self._internal.get((InternalTopic.CONSUMER_OFFSETS, partition))
        return moved or PartitionLeader(owner_of(partition, self.layout.group_coordinators), 0)

    def transaction_log_leader(self, partition: int) -> PartitionLeader:
        """Return which coordinator leads a partition of the transaction log."""
        moved = self._internal.get((InternalTopic.TRANSACTION_STATE, partition))
        return moved or PartitionLeader(owner_of(partition, self.layout.coordinators), 0)

    def instance(self, role: ServiceRole, instance_id: int) -> Instance | None:
        """Return an instance, or None if it has never registered."""
        return self._instances.get((role, instance_id))

    def address(self, role: ServiceRole, instance_id: int, listener: str) -> str:
        """Return where an instance is reached, ``host:port``.

        Raises CoordinatorNotAvailableError or BrokerNotAvailableError when it has not registered.
        """
        instance = self.instance(role, instance_id)
        found = None if instance is None else instance.listener(listener)
        if found is not None:
            return found.address
        message = f"{role.name.lower()} {instance_id} has not registered a listener {listener!r}"
        if role is ServiceRole.BROKER:
            raise BrokerNotAvailableError(message)
        raise CoordinatorNotAvailableError(message)


def _has_all_of(image: ClusterImage, known: ClusterImage) -> bool:
    """Whether an image of the same version equals the known image."""
    moved = known.internal_partitions
    return image.topics == known.topics and moved in ((), image.internal_partitions)


def _later_additions(image: ClusterImage) -> tuple[object, ...]:
    return image.acls, image.client_quotas, image.internal_partitions
