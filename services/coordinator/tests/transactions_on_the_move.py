"""Two coordinators' machines, between which a transaction-log partition moves."""

from collections.abc import Sequence

from joint_harness import JointHarness
from msgspec.structs import replace
from transactions_harness import A0, A1, B0, GROUP, TransactionsHarness, image

from semel_common.ids import InternalTopic, partition_for_id
from semel_coordinator.transactions.machine import (
    TransactionLimits,
    TransactionsRecord,
)
from semel_runtime.cluster.metadata_image import ClusterImage, InternalPartition, PartitionLeader
from semel_runtime.machine import Result
from semel_runtime.moving.move_state import PartitionMove

PARTITION_COUNT = 10
PARTITION = partition_for_id("app", PARTITION_COUNT)
OTHER = next(
    f"other-{n}" for n in range(99) if partition_for_id(f"other-{n}", PARTITION_COUNT) != PARTITION
)
"""A transactional id of another partition."""
MOVING = PartitionLeader(0, 0, moving_to=1)
MOVED = PartitionLeader(1, 1)
GIVEN_UP = PartitionLeader(0, 1)


def moved_image(
    leader: PartitionLeader | None, *, partition: int = PARTITION, count: int = PARTITION_COUNT
) -> ClusterImage:
    """The cluster as it says who leads one partition."""
    plain = image()
    topic = InternalTopic.TRANSACTION_STATE.value
    moved = InternalPartition(topic=topic, partition=partition, leader=leader or MOVED)
    return replace(
        plain,
        layout=replace(plain.layout, transaction_log_partitions=count),
        internal_partitions=(moved,) if leader else (),
    )


def harness(
    instance_id: int = 0,
    *,
    limits: TransactionLimits | None = None,
    count: int = PARTITION_COUNT,
) -> JointHarness:
    """A coordinator in a cluster that gives everything to coordinator 0."""
    made = JointHarness(instance_id=instance_id, limits=limits, claim=False)
    made.cluster.replay(0, moved_image(None, count=count))
    made.run(made.machine.claim())
    return made


class Pair:
    """The leader of the partition at first, and the one to which it moves."""

    def __init__(
        self,
        *,
        limits: TransactionLimits | None = None,
        partition: int = PARTITION,
        count: int = PARTITION_COUNT,
    ) -> None:
        self.partition, self.count = partition, count
        self.old = harness(0, limits=limits, count=count)
        self.new = harness(1, limits=limits, count=count)

    def led(self, leader: PartitionLeader) -> None:
        """Let both hear who leads the partition, and follow."""
        for each in (self.old, self.new):
            self.tell(each, leader)

    def tell(self, each: TransactionsHarness, leader: PartitionLeader) -> None:
        """Let one hear who leads the partition, and follow."""
        each.cluster.replay(0, moved_image(leader, partition=self.partition, count=self.count))
        each.run(each.machine.moves.follow())

    def move_of(self, leader: PartitionLeader = MOVING) -> PartitionMove:
        """Name a move."""
        assert leader.moving_to is not None
        return PartitionMove(
            partition=self.partition,
            leader_epoch=leader.leader_epoch,
            moving_to=leader.moving_to,
        )

    def hand_over(self, leader: PartitionLeader = MOVING) -> list[TransactionsRecord]:
        """Let the old leader hand over; return what it answers, as read on the other side."""
        serde, move = self.old.serde, self.move_of(leader)
        self.old.run(self.old.machine.moves.hand_over(move))
        known = self.old.machine.moves.handed_over(move)
        return [serde.decode(serde.encode(each)) for each in known]

    def take_over(
        self,
        records: Sequence[TransactionsRecord],
        *,
        pieces: int = 1,
        leader: PartitionLeader = MOVING,
    ) -> None:
        """Let the new leader store what was handed over, in so many pieces."""
        moves, move = self.new.machine.moves, self.move_of(leader)
        self.new.run(moves.begin_take_over(move))
        size = max(1, -(-len(records) // pieces))
        starts = range(0, max(1, len(records)), size)
        for start in starts:
            piece = records[start : start + size]
            whole = start == starts[-1]
            self.new.run(moves.take_over(move, piece, whole=whole, now_ms=self.new.now_ms))

    def move(self, *, pieces: int = 1) -> None:
        """Move the partition, all the way."""
        self.new.now_ms = self.old.now_ms
        self.led(MOVING)
        self.take_over(self.hand_over(), pieces=pieces)
        self.led(MOVED)


def busy_pair() -> Pair:
    """Return two of which the first has transactions in each of their states."""
    pair = Pair()
    old = pair.old
    first = old.init()
    old.add(first, A0)
    old.complete(first)
    second = old.commit(first, [A0])
    third = old.prepare(second, [A1, GROUP])
    old.add(third, B0)
    return pair


def use_now(harness: TransactionsHarness) -> None:
    """Let all ids have been used last now, as after a move."""
    known = harness.machine._state.producers.values()
    harness.run(Result(None, [replace(each, last_update_ms=harness.now_ms) for each in known]))
    for joint in harness.machine._state.joints.by_id.values():
        # Not by a record: it would end the version that is open.
        joint.known = replace(joint.known, last_update_ms=harness.now_ms)
