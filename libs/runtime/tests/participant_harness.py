"""A cluster as participants see it."""

from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import (
    ClusterImage,
    Instance,
    Layout,
    Listener,
    ServiceRole,
)


def two_coordinators() -> ClusterCopy:
    """Each is in charge of every other producer id."""
    copy = ClusterCopy()
    image = ClusterImage(
        cluster_id="cluster",
        version=1,
        layout=Layout(
            transaction_log_partitions=2, coordinators=2, group_partitions=1, group_coordinators=1
        ),
        instances=tuple(
            Instance(
                role=ServiceRole.COORDINATOR,
                instance_id=each,
                listeners=(Listener(name="default", host=f"coordinator-{each}", port=1),),
            )
            for each in range(2)
        ),
        topics=(),
    )
    copy.replay(1, image)
    return copy
