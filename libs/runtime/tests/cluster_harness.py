"""Images of small clusters, and a controller that a test scripts."""

import asyncio

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.methods import METADATA, REGISTER_INSTANCE
from semel_runtime.cluster.image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)
from semel_runtime.cluster.serde import layout_to_wire, listeners_to_wire
from semel_runtime.server.calls import Call, Handlers

LAYOUT = Layout(
    transaction_log_partitions=50, coordinators=2, group_partitions=50, group_coordinators=2
)


def listener(port: int) -> Listener:
    """A listener on loopback."""
    return Listener(name="default", host="127.0.0.1", port=port)


def image(version: int, *, cluster_id: str = "cluster-a", topics: int = 1) -> ClusterImage:
    """A cluster of one broker with some topics of two partitions."""
    return ClusterImage(
        cluster_id=cluster_id,
        version=version,
        layout=LAYOUT,
        instances=(
            Instance(role=ServiceRole.COORDINATOR, instance_id=0, listeners=(listener(1),)),
            Instance(role=ServiceRole.BROKER, instance_id=0, listeners=(listener(2),)),
        ),
        topics=tuple(
            Topic(
                topic_id=f"id-{number}",
                name=f"topic-{number}",
                partitions=(PartitionLeader(0, 1), PartitionLeader(0, 3)),
            )
            for number in range(topics)
        ),
    )


class ScriptedController:
    """Answers metadata that a test sets, and refuses registrations that it names."""

    def __init__(self) -> None:
        """Start with version 1."""
        self.image = image(1)
        self.changed = asyncio.Event()
        self.refusal: SemelError | None = None
        self.registrations: list[wire.RegisterInstanceRequest] = []
        self.registered = asyncio.Event()
        self.handlers = Handlers()
        self.handlers.add(METADATA, self._metadata)
        self.handlers.add(REGISTER_INSTANCE, self._register)

    def publish(self, image: ClusterImage) -> None:
        """Let followers see a new image."""
        self.image = image
        self.changed.set()

    async def _register(
        self, request: wire.RegisterInstanceRequest, _: Call
    ) -> wire.RegisterInstanceResponse:
        self.registrations.append(request)
        self.registered.set()
        if self.refusal is not None:
            raise self.refusal
        return wire.RegisterInstanceResponse(cluster_id=self.image.cluster_id)

    async def _metadata(self, request: wire.MetadataRequest, _: Call) -> wire.MetadataResponse:
        assert request.all_topics
        assert request.all_listeners
        while self.image.version <= request.known_version:
            self.changed.clear()
            await self.changed.wait()
        return metadata(self.image)


def metadata(image: ClusterImage) -> wire.MetadataResponse:
    """Write an image as the controller answers it."""
    return wire.MetadataResponse(
        cluster_id=image.cluster_id,
        version=image.version,
        layout=layout_to_wire(image.layout),
        instances=[
            wire.Instance(
                role=each.role.value,  # type: ignore[arg-type]  # equal numbers
                instance_id=each.instance_id,
                listeners=listeners_to_wire(each.listeners),
            )
            for each in image.instances
        ],
        topics=[
            wire.Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    wire.Partition(
                        index=index, leader_id=each.leader_id, leader_epoch=each.leader_epoch
                    )
                    for index, each in enumerate(topic.partitions)
                ],
            )
            for topic in image.topics
        ],
    )
