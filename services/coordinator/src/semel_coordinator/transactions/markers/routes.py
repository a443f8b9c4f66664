"""Which instance has a participant, by this instance's copy of the metadata."""

from semel_common.errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from semel_common.ids import GroupId, Participant
from semel_coordinator.transactions.markers.marker import NOWHERE, Target
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, ServiceRole

_ROUTES_KEPT = 10_000


class Routes:
    """Looks participants up; what it found stays until the metadata changes."""

    def __init__(self, cluster: ClusterCopy) -> None:
        """Know nothing yet."""
        self._cluster = cluster
        self._image: ClusterImage | None = None
        self._found: dict[Participant, Target] = {}

    def __call__(self, participant: Participant) -> Target:
        """Return the instance of a participant; NOWHERE for a partition that is unknown here."""
        image = self._cluster.image
        if image is not self._image or len(self._found) >= _ROUTES_KEPT:
            self._image = image
            self._found.clear()
        target = self._found.get(participant)
        if target is None:
            target = self._found[participant] = self._find(participant)
        return target

    def _find(self, participant: Participant) -> Target:
        if isinstance(participant, GroupId):
            instance_id = self._cluster.group_coordinator_for(participant.group_id)
            return Target(ServiceRole.GROUP_COORDINATOR, instance_id)
        try:
            leader = self._cluster.leader_of(participant)
        except (UnknownTopicIdError, UnknownTopicOrPartitionError):
            return NOWHERE
        return Target(ServiceRole.BROKER, leader.leader_id)
