"""Which transaction-log partitions this instance is in charge of."""

from collections.abc import Sequence

from semel_common.errors import NotCoordinatorError
from semel_common.ids import transaction_log_partition_of
from semel_coordinator.transactions.machine.state.record_partitions import partition_for_id
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.cluster.metadata_copy import ClusterCopy


class Ownership:
    """Answers by the cluster's metadata, and by the partitions that were handed over or wait.

    A caller gets CoordinatorNotAvailableError as long as the layout is not known here.
    """

    def __init__(self, state: TransactionsState, *, instance_id: int, cluster: ClusterCopy) -> None:
        """Answer for the coordinator instance ``instance_id``, which knows this state."""
        self._state = state
        self._instance_id = instance_id
        self._cluster = cluster

    def partitions(self) -> Sequence[int]:
        """Return the partitions that are served here, rising."""
        return [
            partition
            for partition in range(self._cluster.layout.transaction_log_partitions)
            if self._cluster.transaction_log_leader(partition).leader_id == self._instance_id
            and not self._state.is_unserved(partition)
        ]

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of a transactional id. Raises NotCoordinatorError."""
        partition = partition_for_id(
            transactional_id, self._cluster.layout.transaction_log_partitions
        )
        self._check(partition)
        return partition

    def check_producer_id(self, producer_id: int) -> None:
        """Raise NotCoordinatorError if such producer ids are not given out here."""
        self._check(transaction_log_partition_of(producer_id))

    def serves(self, producer_id: int) -> bool:
        """Whether this instance serves a producer."""
        return not self._state.is_unserved(transaction_log_partition_of(producer_id))

    def serves_id(self, transactional_id: str) -> bool:
        """Whether this instance serves a transactional id.

        Asked of all ids one after the other: while nothing moves, none of them is hashed for it.
        """
        if not self._state.handed_over and not self._state.taken_over:
            return True
        count = self._cluster.layout.transaction_log_partitions
        return not self._state.is_unserved(partition_for_id(transactional_id, count))

    def _check(self, partition: int) -> None:
        leader = self._cluster.transaction_log_leader(partition)
        if leader.leader_id != self._instance_id:
            raise NotCoordinatorError(
                f"transaction-log partition {partition} belongs to coordinator {leader.leader_id},"
                f" this is {self._instance_id}",
                coordinator=leader.leader_id,
            )
        if self._state.is_unserved(partition):
            raise NotCoordinatorError(
                f"transaction-log partition {partition} moves, and is not served by coordinator"
                f" {self._instance_id} now",
                coordinator=leader.next_leader_id,
            )
