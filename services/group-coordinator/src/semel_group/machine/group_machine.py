"""The group coordinator's machine: membership, offsets, and the copy of the cluster's metadata.

Theory of operation. Membership, offsets and moves share one journal; neither of the first two knows
of any other. The parts that answer requests ask the moves first whether this instance is in charge
of the group, then membership and offsets. Handlers decide, ``replay`` changes; see
``semel_runtime.machine``.
"""

from collections.abc import Iterable
from itertools import chain

from semel_group.machine.committed_offsets import CommittedOffsets
from semel_group.machine.deletion import GroupDeletion
from semel_group.machine.group_transactions import GroupTransactions
from semel_group.machine.groups import Groups
from semel_group.machine.idle_producers import IdleProducers
from semel_group.machine.limits import GroupLimits
from semel_group.machine.membership.heartbeats import Heartbeats
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.moves import GroupMoves
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import (
    ConsumerGroup,
    GroupDeleted,
    GroupsForgotten,
    GroupsHandedOver,
    GroupsServed,
    GroupsTakenOver,
    Member,
    MemberEpochsGiven,
    MemberRemoved,
    Record,
)
from semel_group.machine.topics import Topics
from semel_group.machine.values import Heartbeat, HeartbeatAnswer, MemberKey
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.machine import Result


class GroupMachine:
    """Everything that one group coordinator knows, and the parts that decide about it."""

    def __init__(self, instance_id: int, limits: GroupLimits) -> None:
        """Start empty."""
        cluster = ClusterCopy()
        topics = Topics(cluster)
        membership = MembershipMachine(limits, topics.named)
        offsets = OffsetsMachine(limits)
        moves = GroupMoves(instance_id, cluster, membership, offsets)
        groups = Groups(membership, offsets, moves)
        self.cluster = cluster
        self.topics = topics
        self.membership = membership
        self.offsets = offsets
        self.moves = moves
        self.groups = groups
        self._heartbeats = Heartbeats(limits, membership)
        self.committed_offsets = CommittedOffsets(
            limits, cluster, moves, groups, membership, offsets
        )
        self.transactions = GroupTransactions(cluster, moves, offsets)
        self.producers = IdleProducers(offsets, moves)
        self.deletion = GroupDeletion(limits, cluster, moves, groups, membership, offsets)

    # -- members ---------------------------------------------------------------------------------

    def consumer_group_heartbeat(self, heartbeat: Heartbeat) -> Result[HeartbeatAnswer, Record]:
        """See ``Heartbeats.consumer_group_heartbeat``."""
        self.moves.check_in_charge(heartbeat.group_id)
        return self._heartbeats.consumer_group_heartbeat(heartbeat)

    def expire_member(self, key: MemberKey, *, now_ms: int) -> Result[bool, Record]:
        """Remove a member that was silent or slow for too long. Answers whether it was there."""
        if not self.moves.is_served(key.group_id):
            return Result(False)
        return self.membership.remove_member(key, now_ms=now_ms)

    # -- metadata --------------------------------------------------------------------------------

    def update_cluster(self, image: ClusterImage) -> Result[bool, Record]:
        """Take a newer image; see ``ClusterCopy.update``."""
        updated = self.cluster.update(image)
        moved = self.moves.follow(image) if updated.records else ()
        return Result(updated.response, (*updated.records, *moved))

    def raise_epochs(self, image: ClusterImage, floor: int, *, now_ms: int) -> Result[None, Record]:
        """See ``MembershipMachine.raise_epochs``; then take the cluster's image.

        What moves away by it counts as handed over: it may have been, after the copy was made.
        """
        raised = self.membership.raise_epochs(floor, now_ms=now_ms)
        newer = self.update_cluster(image).records
        return Result(None, (*raised, *newer, *self.moves.leaving(image)))

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, offset: int, record: Record) -> None:
        """Apply one record."""
        match record:
            case ClusterImage():
                self.cluster.replay(offset, record)
            case ConsumerGroup() | Member() | MemberRemoved():
                self.membership.replay(offset, record)
            case MemberEpochsGiven():
                self.membership.replay(offset, record)
            case GroupDeleted():
                self.membership.replay(offset, record)
                self.offsets.replay(offset, record)
            case GroupsForgotten():
                for group_id in self.moves.groups_in(record.partition):
                    self.membership.forget(group_id)
                    self.offsets.forget(group_id)
                self.moves.replay(offset, record)
            case GroupsHandedOver() | GroupsTakenOver() | GroupsServed():
                self.moves.replay(offset, record)
            case _:
                self.offsets.replay(offset, record)

    def snapshot(self) -> Iterable[tuple[int, Record]]:
        """Return records that make the same state."""
        return chain(
            self.cluster.snapshot(),
            tuple(self.membership.snapshot()),
            self.offsets.snapshot(),
            tuple(self.moves.snapshot()),
        )
