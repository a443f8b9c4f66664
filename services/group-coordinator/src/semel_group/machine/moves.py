"""Moving partitions of groups: the old leader gives their state, and the new one takes it.

Theory of operation. The controller's metadata say that a partition of groups moves, and to which
group coordinator. That one asks the old leader to hand the groups over: from that decision on, the
old leader serves them no more, and nothing of them changes. The new one stores their state, and
then tells the controller, which makes it the leader under a higher epoch: it serves them from the
image on that says so. The old leader forgets them as soon as it hears of that.

Who leads is decided by the controller alone. If it gives the move up, it raises the epoch too: the
old leader serves again what it has handed over, and the new one forgets what it has. So each step
may be repeated after any crash, and at no time do two group coordinators serve a group.

What was taken over wholly is never taken over again under the same epoch: the controller may hear
of it at any time, and make it what is served.

Invariant: the groups here are served, except for the partitions that are listed here.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import assert_never

from msgspec.structs import replace

from semel_common.errors import CorruptMessageError, FencedLeaderEpochError, NotCoordinatorError
from semel_common.ids import InternalTopic, partition_for_id
from semel_group.machine.membership.membership_machine import MembershipMachine
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.records import (
    ConsumerGroup,
    GroupOffsetsRecord,
    GroupsForgotten,
    GroupsHandedOver,
    GroupsServed,
    GroupsTakenOver,
    Member,
    MemberEpochsGiven,
    MoveRecord,
    OffsetCommitted,
    ProducerState,
    Record,
    TxnOffsetsCommitted,
)
from semel_group.machine.values import MemberKey
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, PartitionLeader
from semel_runtime.machine import Result
from semel_runtime.moving.move_state import Arrival, PartitionMove
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen

_partition_for_id = lru_cache(maxsize=1 << 17)(partition_for_id)
"""As many as there may be groups: in a move, each is asked about again and again."""


class GroupMoves:
    """Which groups are served here, and which are not, although they are known."""

    def __init__(
        self,
        instance_id: int,
        cluster: ClusterCopy,
        membership: MembershipMachine,
        offsets: OffsetsMachine,
    ) -> None:
        """Serve what the metadata say that is led here."""
        self._instance_id = instance_id
        self._cluster = cluster
        self._membership = membership
        self._offsets = offsets
        self._handed_over: dict[int, tuple[int, GroupsHandedOver]] = {}
        self._taken_over: dict[int, tuple[int, GroupsTakenOver]] = {}

    # -- questions -------------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """Return the partition of a group."""
        return _partition_for_id(group_id, self._cluster.layout.group_partitions)

    def check_in_charge(self, group_id: str) -> None:
        """Raise NotCoordinatorError unless a group is served here."""
        partition = self.partition_of(group_id)
        leader = self._cluster.group_leader(partition)
        if leader.leader_id != self._instance_id:
            raise NotCoordinatorError(
                f"group coordinator {leader.leader_id} is in charge of group {group_id!r}, "
                f"not {self._instance_id}"
            )
        if partition in self._handed_over:
            raise NotCoordinatorError(
                f"group {group_id!r} has just been handed over to group coordinator "
                f"{leader.moving_to}"
            )

    def is_served(self, group_id: str) -> bool:
        """Whether a group of which something is known is served here."""
        if not self._handed_over and not self._taken_over:
            return True
        partition = self.partition_of(group_id)
        return partition not in self._handed_over and partition not in self._taken_over

    def groups_in(self, partition: int) -> list[str]:
        """Return the groups of a partition of which something is known."""
        known = {*self._membership.groups, *self._offsets.known_group_ids()}
        return sorted(group_id for group_id in known if self.partition_of(group_id) == partition)

    def members_in(self, partition: int) -> list[MemberKey]:
        """Return the members of all groups of a partition."""
        members = self._membership.members()
        return [key for key in members if self.partition_of(key.group_id) == partition]

    def served(self, group_ids: Iterable[str]) -> Iterator[str]:
        """Return the groups that are served here."""
        return filter(self.is_served, group_ids)

    def arrivals(self) -> Result[list[Arrival], Record]:
        """Return the partitions that move here."""
        image = self._cluster.image
        arrivals = [
            Arrival(
                move=PartitionMove(
                    partition=partition,
                    leader_epoch=leader.leader_epoch,
                    moving_to=self._instance_id,
                ),
                leader_id=leader.leader_id,
                whole=partition in self._taken_over and self._taken_over[partition][1].whole,
            )
            for partition, leader in (_leaders(image).items() if image else ())
            if leader.moving_to == self._instance_id
        ]
        return Result(arrivals)

    # -- handlers --------------------------------------------------------------------------------

    def follow(self, image: ClusterImage) -> Iterator[MoveRecord]:
        """Yield what a newer image changes."""
        for partition, leader in _leaders(image).items():
            if partition in self._handed_over:
                yield from self._follow_handed_over(leader, self._handed_over[partition][1])
            elif partition in self._taken_over:
                yield from self._follow_taken_over(leader, self._taken_over[partition][1])
            elif self._was_led_here(partition) and leader.leader_id != self._instance_id:
                # It was handed over in a life of which this volume, an older copy, knows nothing.
                yield GroupsForgotten(partition=partition)

    def hand_over(self, move: PartitionMove) -> Result[None, Record]:
        """Serve the groups of a partition no more. Raises NotCoordinatorError."""
        leader = self._cluster.group_leader(move.partition)
        if leader != PartitionLeader(self._instance_id, move.leader_epoch, move.moving_to):
            raise NotCoordinatorError(
                f"groups of partition {move.partition} do not move from here to group coordinator"
                f" {move.moving_to} under leader epoch {move.leader_epoch}"
            )
        if move.partition in self._handed_over:
            return Result(None)
        ended = GroupsHandedOver(partition=move.partition, leader_epoch=move.leader_epoch)
        return Result(None, (ended,))

    def leaving(self, image: ClusterImage) -> Iterator[GroupsHandedOver]:
        """Yield the end of what moves away by an image, as far as it is not known here.

        For an older copy of a volume: it may have been handed over since.
        """
        for partition, leader in _leaders(image).items():
            if leader.leader_id == self._instance_id and leader.moving_to is not None:
                yield GroupsHandedOver(partition=partition, leader_epoch=leader.leader_epoch)

    def begin_take_over(self, move: PartitionMove) -> Result[None, Record]:
        """Know nothing yet of groups that move here. Raises FencedLeaderEpochError."""
        self.check_arriving(move)
        return Result(None, (GroupsForgotten(partition=move.partition), _taken(move, whole=False)))

    def check_arriving(self, move: PartitionMove) -> None:
        """Raise FencedLeaderEpochError if a partition does not move here, or is whole already."""
        leader = self._cluster.group_leader(move.partition)
        known = self._taken_over.get(move.partition)
        moves = (leader.leader_epoch, leader.moving_to) == (move.leader_epoch, move.moving_to)
        if not moves or (known is not None and known[1].whole):
            raise FencedLeaderEpochError(
                f"groups of partition {move.partition} do not move here under leader epoch"
                f" {move.leader_epoch}"
            )

    def handed_over(self, move: PartitionMove) -> tuple[Record, ...]:
        """Return all that is known of groups that were handed over: it does not change."""
        return known_of(self.groups_in(move.partition), self._membership, self._offsets)

    def take_over(
        self, move: PartitionMove, records: Iterable[Record], *, whole: bool, now_ms: int
    ) -> Result[None, Record]:
        """Take the new part of a piece of the handed-over state; ``whole``: of the last one.

        Producers are idle from now on: their times are by another clock.
        Raises FencedLeaderEpochError, and CorruptMessageError.
        """
        self.check_arriving(move)
        taken = [record for record in records if self._is_new(record, move.partition)]
        return Result(
            None,
            (
                *(_idle_from(record, now_ms) for record in taken),
                *([_taken(move, whole=True)] if whole else ()),
            ),
        )

    def _is_new(self, record: Record, partition: int) -> bool:
        """Whether a handed-over record says more than is known here."""
        match record:
            case MemberEpochsGiven(group_epoch=group_epoch):
                given = self._membership.epochs_given()
                return all(group_epoch > known.group_epoch for known in given)
            case CoordinatorEpochSeen(transaction_log_partition=log, coordinator_epoch=epoch):
                return epoch > self._offsets.coordinator_epochs.newest(log)
            case (
                ConsumerGroup()
                | Member()
                | OffsetCommitted()
                | TxnOffsetsCommitted()
                | ProducerState()
            ) if self.partition_of(record.group_id) == partition:
                return True
            case _:
                raise CorruptMessageError(
                    f"{type(record).__name__} is not of a group of partition {partition}"
                )

    # -- replay ----------------------------------------------------------------------------------

    def replay(self, offset: int, record: MoveRecord) -> None:
        """Apply one record."""
        match record:
            case GroupsHandedOver():
                self._handed_over[record.partition] = (offset, record)
            case GroupsTakenOver():
                self._taken_over[record.partition] = (offset, record)
            case GroupsServed() | GroupsForgotten():
                self._handed_over.pop(record.partition, None)
                self._taken_over.pop(record.partition, None)
            case _:
                assert_never(record)

    def snapshot(self) -> Iterator[tuple[int, MoveRecord]]:
        """Return the groups that are not served."""
        yield from self._handed_over.values()
        yield from self._taken_over.values()

    # -- following the metadata ------------------------------------------------------------------

    def _was_led_here(self, partition: int) -> bool:
        known = self._cluster
        return known.image is not None and (
            known.group_leader(partition).leader_id == self._instance_id
        )

    def _follow_handed_over(
        self, leader: PartitionLeader, known: GroupsHandedOver
    ) -> Iterator[MoveRecord]:
        if leader.leader_id != self._instance_id:
            yield GroupsForgotten(partition=known.partition)
        elif leader.leader_epoch != known.leader_epoch:
            yield GroupsServed(partition=known.partition)

    def _follow_taken_over(
        self, leader: PartitionLeader, known: GroupsTakenOver
    ) -> Iterator[MoveRecord]:
        moves_here = (leader.leader_epoch, leader.moving_to)
        if leader.leader_id == self._instance_id:
            yield GroupsServed(partition=known.partition)
        elif moves_here != (known.leader_epoch, self._instance_id):
            yield GroupsForgotten(partition=known.partition)


def _leaders(image: ClusterImage) -> dict[int, PartitionLeader]:
    """Return who leads partitions of groups, as far as they were ever moved."""
    topic = InternalTopic.CONSUMER_OFFSETS
    return {
        internal_partition.partition: internal_partition.leader
        for internal_partition in image.internal_partitions
        if internal_partition.topic == topic
    }


# -- what is handed over ---------------------------------------------------------------------------


def known_of(
    group_ids: Sequence[str], membership: MembershipMachine, offsets: OffsetsMachine
) -> tuple[Record, ...]:
    """Return all that is known of groups, in an order that a restart does not change.

    Positions and what transactions hold come in the order in which they were written: which of two
    is the later one is what their places in the journal say.
    """
    positions = sorted(
        (
            (_place(offset, record), record)
            for group_id in group_ids
            for offset, record in offsets.group(group_id).snapshot()
        ),
        key=lambda each: each[0],
    )
    return (
        *membership.epochs_given(),
        *(record for each in group_ids for record in membership.known_of(each)),
        *(record for _, record in positions),
        *sorted(
            (seen for _, seen in offsets.coordinator_epochs.snapshot()),
            key=lambda each: each.transaction_log_partition,
        ),
    )


def _place(offset: int, record: GroupOffsetsRecord) -> tuple[int, bool, str, object]:
    """Order by the place in the journal; what a producer may send next has the last word there."""
    detail = record.partition if isinstance(record, OffsetCommitted) else ()
    return offset, isinstance(record, ProducerState), record.group_id, detail


def _idle_from(record: Record, now_ms: int) -> Record:
    return replace(record, last_ended_ms=now_ms) if isinstance(record, ProducerState) else record


def _taken(move: PartitionMove, *, whole: bool) -> GroupsTakenOver:
    return GroupsTakenOver(partition=move.partition, leader_epoch=move.leader_epoch, whole=whole)
