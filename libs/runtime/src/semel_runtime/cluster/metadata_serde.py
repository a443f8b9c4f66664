"""The cluster's metadata as protobuf: on the wire and in journals."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from google.protobuf.message import Message
from msgspec.structs import asdict

from semel.common.journal.v1 import cluster_pb2 as journal
from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.wire.messages.plain_messages import PlainMessage
from semel_common.wire.messages.request_bounds import FOLDER_LENGTH_MAX
from semel_runtime.access.access_serde import (
    JOURNAL_ACL,
    JOURNAL_QUOTA,
    acls_from_wire,
    quotas_from_wire,
)
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    InternalPartition,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.journal.contract import DiskShortage

T = TypeVar("T", wire.Topic, journal.TopicImage)

JOURNAL_INSTANCE = PlainMessage(Instance, journal.InstanceImage)
_LAYOUT = PlainMessage(Layout, wire.ClusterLayout)
_LISTENER = PlainMessage(Listener, wire.AdvertisedListener)


class ImageReader:
    """Reads images one after the other: a topic that is as it was is the same object.

    So a topic is read once and not with each image, and what follows the images needs to look at
    nothing but the topics that have changed.
    """

    def __init__(self) -> None:
        """Start without topics."""
        self._topics: dict[bytes, Topic] = {}

    def from_wire(self, response: wire.MetadataResponse) -> ClusterImage:
        """Read the answer to a request with all_topics, all_listeners and access_rules."""
        return _image_from_wire(response, self._read(response.topics, _topic_from_wire))

    def from_journal(self, image: journal.ClusterImage) -> ClusterImage:
        """Read an image from the journal."""
        return _image_from_journal(image, self._read(image.topics, topic_from_journal))

    def _read(self, messages: Iterable[T], read: Callable[[T], Topic]) -> tuple[Topic, ...]:
        known = self._topics
        self._topics = {}
        for message in messages:
            written = message.SerializeToString(deterministic=True)
            self._topics[written] = known.get(written) or read(message)
        return tuple(self._topics.values())


def image_from_wire(response: wire.MetadataResponse) -> ClusterImage:
    """Read one answer to a Metadata request, as ``ImageReader.from_wire`` does."""
    return ImageReader().from_wire(response)


def _image_from_wire(response: wire.MetadataResponse, topics: tuple[Topic, ...]) -> ClusterImage:
    return ClusterImage(
        cluster_id=response.cluster_id,
        version=response.version,
        layout=_LAYOUT.read(response.layout),
        instances=tuple(_instance_from_wire(instance) for instance in response.instances),
        topics=topics,
        acls=acls_from_wire(response.acls),
        client_quotas=quotas_from_wire(response.client_quotas),
        internal_partitions=tuple(map(_internal_from_wire, response.internal_partitions)),
    )


def layout_to_wire(layout: Layout) -> wire.ClusterLayout:
    """Write a layout."""
    return _LAYOUT.message(layout)


def layout_from_journal(message: Message) -> Layout:
    """Read the layout whose fields are in a message with others."""
    return Layout(**{name: getattr(message, name) for name in Layout.__struct_fields__})


def listeners_to_wire(listeners: tuple[Listener, ...]) -> list[wire.AdvertisedListener]:
    """Write advertised listeners."""
    return list(map(_LISTENER.message, listeners))


def shortage_to_wire(shortage: DiskShortage) -> wire.DiskShortage:
    """Write how little space a disk has."""
    return wire.DiskShortage(
        folder=shortage.folder[:FOLDER_LENGTH_MAX],
        free_bytes=max(0, shortage.free_bytes),
        reserve_bytes=shortage.reserve_bytes,
    )


def partitions_to_wire(topic: Topic) -> list[wire.Partition]:
    """Write the partitions of a topic."""
    return [_leader_to_wire(index, each) for index, each in enumerate(topic.partitions)]


def internal_to_wire(internal: InternalPartition) -> wire.InternalPartition:
    """Write a partition of groups or of the transaction log."""
    return wire.InternalPartition(
        topic=internal.topic, partition=_leader_to_wire(internal.partition, internal.leader)
    )


def image_to_journal(image: ClusterImage) -> journal.ClusterImage:
    """Write an image for the journal."""
    return journal.ClusterImage(
        cluster_id=image.cluster_id,
        version=image.version,
        **asdict(image.layout),
        instances=map(JOURNAL_INSTANCE.message, image.instances),
        topics=map(topic_to_journal, image.topics),
        acls=map(JOURNAL_ACL.message, image.acls),
        client_quotas=map(JOURNAL_QUOTA.message, image.client_quotas),
        internal_partitions=map(internal_to_journal, image.internal_partitions),
    )


def _image_from_journal(image: journal.ClusterImage, topics: tuple[Topic, ...]) -> ClusterImage:
    return ClusterImage(
        cluster_id=image.cluster_id,
        version=image.version,
        layout=layout_from_journal(image),
        instances=tuple(map(JOURNAL_INSTANCE.read, image.instances)),
        topics=topics,
        acls=tuple(map(JOURNAL_ACL.read, image.acls)),
        client_quotas=tuple(map(JOURNAL_QUOTA.read, image.client_quotas)),
        internal_partitions=tuple(map(internal_from_journal, image.internal_partitions)),
    )


def internal_to_journal(internal: InternalPartition) -> journal.InternalPartitionImage:
    """Write a partition of groups or of the transaction log for the journal."""
    return journal.InternalPartitionImage(
        topic=internal.topic,
        partition=internal.partition,
        leader_id=internal.leader.leader_id,
        leader_epoch=internal.leader.leader_epoch,
        moving_to=internal.leader.moving_to,
    )


def internal_from_journal(internal: journal.InternalPartitionImage) -> InternalPartition:
    """Read a partition of groups or of the transaction log from the journal."""
    return InternalPartition(
        topic=internal.topic, partition=internal.partition, leader=_leader(internal)
    )


def topic_to_journal(topic: Topic) -> journal.TopicImage:
    """Write a topic for the journal."""
    return journal.TopicImage(
        topic_id=topic.topic_id,
        name=topic.name,
        leader_ids=[partition.leader_id for partition in topic.partitions],
        leader_epochs=[partition.leader_epoch for partition in topic.partitions],
        configs=dict(topic.configs),
        moving_to={
            index: each.moving_to
            for index, each in enumerate(topic.partitions)
            if each.moving_to is not None
        },
    )


def topic_from_journal(topic: journal.TopicImage) -> Topic:
    """Read a topic from the journal."""
    leaders = zip(topic.leader_ids, topic.leader_epochs, strict=True)
    return Topic(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=tuple(
            PartitionLeader(leader_id, epoch, topic.moving_to.get(index))
            for index, (leader_id, epoch) in enumerate(leaders)
        ),
        configs=tuple(sorted(topic.configs.items())),
    )


def _instance_from_wire(instance: wire.Instance) -> Instance:
    return Instance(
        role=ServiceRole(instance.role),
        instance_id=instance.instance_id,
        listeners=tuple(map(_LISTENER.read, instance.listeners)),
        decommissioned=instance.decommissioned,
    )


def _topic_from_wire(topic: wire.Topic) -> Topic:
    ordered = sorted(topic.partitions, key=lambda each: each.index)
    return Topic(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=tuple(map(_leader, ordered)),
        configs=tuple(sorted(topic.configs.items())),
    )


def _internal_from_wire(internal: wire.InternalPartition) -> InternalPartition:
    return InternalPartition(
        topic=internal.topic,
        partition=internal.partition.index,
        leader=_leader(internal.partition),
    )


def _leader_to_wire(index: int, leader: PartitionLeader) -> wire.Partition:
    return wire.Partition(
        index=index,
        leader_id=leader.leader_id,
        leader_epoch=leader.leader_epoch,
        moving_to=leader.moving_to,
    )


def _leader(partition: wire.Partition | journal.InternalPartitionImage) -> PartitionLeader:
    moving_to = partition.moving_to if partition.HasField("moving_to") else None
    return PartitionLeader(partition.leader_id, partition.leader_epoch, moving_to)
