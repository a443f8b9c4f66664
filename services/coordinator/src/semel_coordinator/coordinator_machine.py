"""The coordinator's machine: everything that one instance keeps in its journal.

Coordinator 0 is the controller and decides on the metadata; the others keep a copy of it. Both
answer from ``cluster``: on the controller it is no state of its own, but shows the controller's
state.
"""

from collections.abc import Iterable
from itertools import chain
from typing import TypeAlias

from semel_coordinator.controller.machine import ControllerLimits, ControllerMachine
from semel_coordinator.controller.machine.records import CONTROLLER_RECORDS, ControllerRecord
from semel_coordinator.transactions.machine import (
    TransactionLimits,
    TransactionsMachine,
    TransactionsRecord,
)
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage

CoordinatorRecord: TypeAlias = ControllerRecord | ClusterImage | TransactionsRecord


class CoordinatorMachine:
    """The controller's machine, the copy of the metadata, and the transactions."""

    def __init__(
        self,
        *,
        instance_id: int,
        controller_limits: ControllerLimits,
        transaction_limits: TransactionLimits,
    ) -> None:
        """Put empty machines together."""
        self.controller = ControllerMachine(controller_limits)
        """Without a cluster on every instance but the controller."""
        self.cluster = ClusterCopy()
        self.transactions = TransactionsMachine(
            instance_id=instance_id, cluster=self.cluster, limits=transaction_limits
        )

    def replay(self, offset: int, record: CoordinatorRecord) -> None:
        """Give a record to its machine."""
        if isinstance(record, ClusterImage):
            self.cluster.replay(offset, record)
        elif isinstance(record, CONTROLLER_RECORDS):
            self.controller.replay(offset, record)
        else:
            self.transactions.replay(offset, record)

    def snapshot(self) -> Iterable[tuple[int, CoordinatorRecord]]:
        """Return the records of all machines."""
        images = () if self.controller.has_cluster else self.cluster.snapshot()
        return chain(self.controller.snapshot(), images, self.transactions.snapshot())

    def show_changes(self) -> int:
        """Let ``cluster`` show what the controller has decided; return the newest version.

        Making an image costs time in proportion to the cluster, so this is done once for each
        commit, and not for each record.
        """
        if self.controller.has_cluster:
            image = self.controller.image()
            if image is not self.cluster.image:
                self.cluster.replay(0, image)
        return 0 if self.cluster.image is None else self.cluster.image.version
