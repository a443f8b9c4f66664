"""A marker, and the instance that it is sent to."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from semel_common.ids import Participant
from semel_coordinator.transactions.machine import TransactionKey
from semel_runtime.cluster.metadata_image import ServiceRole


class Target(NamedTuple):
    """An instance that has participants."""

    role: ServiceRole
    instance_id: int


NOWHERE = Target(ServiceRole.BROKER, -1)
"""Where partitions belong that have no leader in this instance's copy of the metadata."""


class Marker(NamedTuple):
    """The outcome of a transaction for participants at one instance. Made often, so a tuple."""

    key: TransactionKey
    commit: bool
    participants: tuple[Participant, ...]
    traceparent: str

    def part_for(self, participants: Sequence[Participant]) -> Self:
        """Return the marker for some of its participants."""
        if len(participants) == len(self.participants):
            return self
        return self._replace(participants=tuple(participants))
