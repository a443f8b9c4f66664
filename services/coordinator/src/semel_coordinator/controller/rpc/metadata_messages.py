"""The metadata as ClusterService's messages."""

from collections import Counter

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.status import to_value
from semel_coordinator.controller.machine import InstanceKey
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, Instance, ServiceRole, Topic
from semel_runtime.cluster.metadata_serde import listeners_to_wire, partitions_to_wire
from semel_runtime.cluster.topic_options import ConfigOption


def instance_to_wire(
    instance: Instance, *, listener: str, all_listeners: bool = False
) -> wire.Instance:
    """Write an instance with its address on one listener; without one it has no host."""
    asked = instance.listener(listener)
    return wire.Instance(
        role=instance.role.value,  # type: ignore[arg-type]  # equal numbers
        instance_id=instance.instance_id,
        host="" if asked is None else asked.host,
        port=0 if asked is None else asked.port,
        listeners=listeners_to_wire(instance.listeners) if all_listeners else (),
        decommissioned=instance.decommissioned,
    )


def topic_to_wire(topic: Topic) -> wire.Topic:
    """Write a topic with its partitions."""
    return wire.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=partitions_to_wire(topic),
        configs=dict(topic.configs),
    )


def configs_to_wire(topic: Topic, options: list[ConfigOption]) -> wire.TopicConfigs:
    """Write some of a topic's options, or all."""
    overrides = dict(topic.configs)
    return wire.TopicConfigs(
        name=topic.name,
        entries=[
            wire.ConfigEntry(
                name=option.name,
                value=overrides.get(option.name, option.default),
                default_value=option.default,
                is_default=option.name not in overrides,
                documentation=option.documentation,
            )
            for option in options
        ],
    )


def missing_topic(error: SemelError, *, name: str = "", topic_id: str = "") -> wire.Topic:
    """Write why a topic is not there."""
    return wire.Topic(name=name, topic_id=topic_id, error=to_value(error))


def led_partitions(cluster: ClusterCopy, image: ClusterImage) -> Counter[InstanceKey]:
    """Count the partitions that each instance leads, of topics or of internal ones."""
    layout = image.layout
    led = {
        ServiceRole.BROKER: (leader for topic in image.topics for leader in topic.partitions),
        ServiceRole.GROUP_COORDINATOR: map(cluster.group_leader, range(layout.group_partitions)),
        ServiceRole.COORDINATOR: map(
            cluster.transaction_log_leader, range(layout.transaction_log_partitions)
        ),
    }
    return Counter(
        InstanceKey(role, leader.leader_id) for role, leaders in led.items() for leader in leaders
    )
