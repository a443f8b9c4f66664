"""Which transaction-log partitions this instance is in charge of."""

from collections.abc import Sequence

from semel_common.errors import NotCoordinatorError
from semel_common.ids import owner_of, partition_for_id, transaction_log_partition_of
from semel_runtime.cluster.copy import ClusterCopy


class Ownership:
    """Answers by the cluster's layout, which is fixed once the cluster is made.

    Every method raises CoordinatorNotAvailableError as long as the layout is not known here.
    """

    def __init__(self, *, instance_id: int, cluster: ClusterCopy) -> None:
        """Answer for the coordinator instance ``instance_id``."""
        self._instance_id = instance_id
        self._cluster = cluster

    def partitions(self) -> Sequence[int]:
        """Return the partitions that are owned, rising."""
        layout = self._cluster.layout
        return [
            partition
            for partition in range(layout.transaction_log_partitions)
            if owner_of(partition, layout.coordinators) == self._instance_id
        ]

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of a transactional id. Raises NotCoordinatorError."""
        partition = partition_for_id(
            transactional_id, self._cluster.layout.transaction_log_partitions
        )
        self._check(partition)
        return partition

    def check_producer_id(self, producer_id: int) -> None:
        """Raise NotCoordinatorError if another instance gives out such producer ids."""
        self._check(transaction_log_partition_of(producer_id))

    def _check(self, partition: int) -> None:
        owner = owner_of(partition, self._cluster.layout.coordinators)
        if owner != self._instance_id:
            raise NotCoordinatorError(
                f"transaction-log partition {partition} belongs to coordinator {owner},"
                f" this is {self._instance_id}",
                coordinator=owner,
            )
