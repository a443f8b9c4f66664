"""Images of small clusters."""

from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    PartitionLeader,
    ServiceRole,
    Topic,
)

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
                configs=(("retention.ms", "5"),) if number % 2 else (),
            )
            for number in range(topics)
        ),
    )
