"""Transaction-log partitions that move: what the old leader gives, and what becomes of it.

Theory of operation. The controller's metadata say that a partition moves, and to which coordinator.
That one asks the old leader to hand it over: from that decision on, the old leader serves its
transactions no more, and nothing of them changes: none is decided, timed out, completed or
forgotten. The new one stores their state, and then tells the controller, which makes it the leader
under a higher leader epoch. As soon as it sees that, it serves them: one record says so and raises
the coordinator epoch, before any marker or answer bears it. The old leader forgets them.

Markers that the old leader has on their way at the hand-over are harmless, as any late or repeated
marker is: each repeats a durable decision, which moves along, and which is forgotten only when all
its participants have acknowledged it. Participants refuse older markers for their coordinator epoch
after the new leader's first one, and the new leader sends its own.

The controller alone decides the leader. If it gives the move up, it raises the leader epoch too:
the old leader serves again the state that it has handed over, and the new one forgets its copy. No
coordinator epoch except the old leader's was used meanwhile; it raises it nevertheless, as every
instance that begins to serve does, because a start in between has not: the handed-over state does
not change.

What was taken over wholly is never taken over again under the same leader epoch: the controller may
hear of it at any time, and make it what is served.

Invariant: the state here is served, except for the partitions that are listed here.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from semel_common.errors import CorruptMessageError, FencedLeaderEpochError, NotCoordinatorError
from semel_common.ids import InternalTopic
from semel_coordinator.transactions.machine.joint.joint_entities import JointId
from semel_coordinator.transactions.machine.state.entities import Producer
from semel_coordinator.transactions.machine.state.record_partitions import partition_of
from semel_coordinator.transactions.machine.state.records import (
    MoveRecord,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionLogTakenOver,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, PartitionLeader
from semel_runtime.machine import Result
from semel_runtime.moving.move_state import Arrival, PartitionMove


class TransactionLogMoves:
    """A part of the transactions' machine: what moves away, and what moves here."""

    def __init__(self, state: TransactionsState, *, instance_id: int, cluster: ClusterCopy) -> None:
        """Decide on the state and the metadata as they are at each call."""
        self._state = state
        self._instance_id = instance_id
        self._cluster = cluster

    # -- following the metadata ------------------------------------------------------------------

    def follow(self) -> Result[None, TransactionsRecord]:
        """Serve, and forget, what the metadata say; what is so already writes nothing."""
        image = self._cluster.image
        return Result(None, () if image is None else tuple(self.following(image)))

    def following(self, image: ClusterImage) -> Iterator[MoveRecord]:
        """Yield what these metadata change."""
        for partition, leader in _leaders(image).items():
            if partition in self._state.handed_over:
                yield from self._follow_handed_over(image, partition, leader)
            elif partition in self._state.taken_over:
                yield from self._follow_taken_over(image, partition, leader)
            elif leader.leader_id != self._instance_id and self._is_known(partition):
                # It was handed over in a life of which this volume, an older copy, knows nothing.
                yield _forgotten(image, partition)

    def leaving(self, image: ClusterImage) -> Iterator[MoveRecord]:
        """Yield the end of what moves away by these metadata, as far as it is not known here.

        For an older copy of a volume: it may have been handed over since.
        """
        for partition, leader in _leaders(image).items():
            if leader.leader_id == self._instance_id and leader.moving_to is not None:
                yield TransactionLogHandedOver(
                    partition=partition, leader_epoch=leader.leader_epoch
                )

    # -- the old leader --------------------------------------------------------------------------

    def hand_over(self, move: PartitionMove) -> Result[None, TransactionsRecord]:
        """Serve a partition no more. Raises NotCoordinatorError."""
        leader = self._cluster.transaction_log_leader(move.partition)
        if leader != PartitionLeader(self._instance_id, move.leader_epoch, move.moving_to):
            raise NotCoordinatorError(
                f"transaction-log partition {move.partition} does not move from here to coordinator"
                f" {move.moving_to} under leader epoch {move.leader_epoch}"
            )
        known = self._state.handed_over.get(move.partition)
        if known is not None and known.leader_epoch == move.leader_epoch:
            return Result(None)
        ended = TransactionLogHandedOver(partition=move.partition, leader_epoch=move.leader_epoch)
        return Result(None, (ended,))

    def handed_over(self, move: PartitionMove) -> tuple[TransactionsRecord, ...]:
        """Return the whole handed-over state: it does not change.

        In the order of a snapshot, decisions in the order in which they were taken; so it is, what
        a restart does not change.
        """
        count = self._cluster.layout.transaction_log_partitions
        return tuple(self._state.known_of(move.partition, partition_count=count))

    # -- the new leader --------------------------------------------------------------------------

    def arrivals(self) -> Result[list[Arrival], TransactionsRecord]:
        """Return the partitions that move here."""
        image = self._cluster.image
        return Result(
            [
                Arrival(
                    move=PartitionMove(
                        partition=partition,
                        leader_epoch=leader.leader_epoch,
                        moving_to=self._instance_id,
                    ),
                    leader_id=leader.leader_id,
                    whole=self._is_whole(partition, leader.leader_epoch),
                )
                for partition, leader in (_leaders(image).items() if image else ())
                if leader.moving_to == self._instance_id
            ]
        )

    def begin_take_over(self, move: PartitionMove) -> Result[None, TransactionsRecord]:
        """Know nothing yet of what moves here. Raises FencedLeaderEpochError."""
        self._check_arriving(move)
        count = self._cluster.layout.transaction_log_partitions
        forgotten = TransactionLogForgotten(partition=move.partition, partition_count=count)
        return Result(None, (forgotten, _taken(move, whole=False)))

    def take_over(
        self,
        move: PartitionMove,
        records: Sequence[TransactionsRecord],
        *,
        whole: bool,
        now_ms: int,
    ) -> Result[None, TransactionsRecord]:
        """Take the next piece of the handed-over state; see ``MovingState.take_over``."""
        self._check_arriving(move)
        count = self._cluster.layout.transaction_log_partitions
        for record in records:
            if partition_of(record, partition_count=count) != move.partition:
                raise CorruptMessageError(
                    f"{type(record).__name__} is not of transaction-log partition {move.partition}"
                )
        known = [
            replace(each, last_update_ms=now_ms) if isinstance(each, (Producer, JointId)) else each
            for each in records
        ]
        return Result(None, (*known, _taken(move, whole=True)) if whole else known)

    # -- helpers ---------------------------------------------------------------------------------

    def _follow_handed_over(
        self, image: ClusterImage, partition: int, leader: PartitionLeader
    ) -> Iterator[MoveRecord]:
        if leader.leader_id != self._instance_id:
            yield _forgotten(image, partition)
        elif leader.leader_epoch != self._state.handed_over[partition].leader_epoch:
            yield self._served(partition)

    def _follow_taken_over(
        self, image: ClusterImage, partition: int, leader: PartitionLeader
    ) -> Iterator[MoveRecord]:
        known = self._state.taken_over[partition]
        moves_here = (leader.leader_epoch, leader.moving_to)
        if leader.leader_id == self._instance_id:
            yield self._served(partition)
        elif moves_here != (known.leader_epoch, self._instance_id):
            yield _forgotten(image, partition)

    def _served(self, partition: int) -> TransactionLogServed:
        newest = self._state.coordinator_epochs.get(partition, 0)
        return TransactionLogServed(partition=partition, coordinator_epoch=newest + 1)

    def _is_known(self, partition: int) -> bool:
        return partition in self._state.coordinator_epochs

    def _is_whole(self, partition: int, leader_epoch: int) -> bool:
        known = self._state.taken_over.get(partition)
        return known is not None and known.whole and known.leader_epoch == leader_epoch

    def _check_arriving(self, move: PartitionMove) -> None:
        leader = self._cluster.transaction_log_leader(move.partition)
        moves_here = (leader.leader_epoch, leader.moving_to) == (move.leader_epoch, move.moving_to)
        if not moves_here or self._is_whole(move.partition, move.leader_epoch):
            raise FencedLeaderEpochError(
                f"transaction-log partition {move.partition} does not move here under leader epoch"
                f" {move.leader_epoch}"
            )


def _leaders(image: ClusterImage) -> dict[int, PartitionLeader]:
    """Return who leads transaction-log partitions, as far as they were ever moved."""
    topic = InternalTopic.TRANSACTION_STATE
    return {
        internal_partition.partition: internal_partition.leader
        for internal_partition in image.internal_partitions
        if internal_partition.topic == topic
    }


def _forgotten(image: ClusterImage, partition: int) -> TransactionLogForgotten:
    count = image.layout.transaction_log_partitions
    return TransactionLogForgotten(partition=partition, partition_count=count)


def _taken(move: PartitionMove, *, whole: bool) -> TransactionLogTakenOver:
    return TransactionLogTakenOver(
        partition=move.partition, leader_epoch=move.leader_epoch, whole=whole
    )
