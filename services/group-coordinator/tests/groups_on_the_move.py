"""Two group coordinators' machines, between which the group moves."""

from dataclasses import dataclass, field

from group_harness import GROUP, GroupHarness, orders

from semel_common.ids import partition_for_id
from semel_group.journal import GroupSerde
from semel_group.machine import GroupMachine
from semel_group.machine.records import OffsetCommitted, Record
from semel_runtime.cluster.metadata_image import PartitionLeader
from semel_runtime.moving.move_state import PartitionMove

PARTITION = partition_for_id(GROUP, 50)
MOVING = PartitionLeader(0, 0, moving_to=1)
MOVED = PartitionLeader(1, 1)
MOVE = PartitionMove(partition=PARTITION, leader_epoch=0, moving_to=1)


@dataclass(slots=True)
class Pair:
    """The leader of the group at first, and the one to which it moves."""

    old: GroupHarness = field(default_factory=GroupHarness)
    new: GroupHarness = field(default_factory=lambda: GroupHarness(instance_id=1))

    def led(self, leader: PartitionLeader) -> None:
        """Let both hear who leads the group."""
        self.old.led(leader)
        self.new.led(leader)

    def hand_over(self, move: PartitionMove = MOVE) -> list[Record]:
        """Let the old leader hand over; return what it answers, as read on the other side."""
        serde = GroupSerde()
        self.old.run(self.old.machine.moves.hand_over(move))
        return [
            serde.decode(serde.encode(each)) for each in self.old.machine.moves.handed_over(move)
        ]

    def take_over(
        self, records: list[Record], *, pieces: int = 1, move: PartitionMove = MOVE
    ) -> None:
        """Let the new leader store what was handed over, in so many pieces."""
        machine = self.new.machine
        self.new.run(machine.moves.begin_take_over(move))
        size = max(1, -(-len(records) // pieces))
        starts = range(0, max(1, len(records)), size)
        for start in starts:
            whole = start == starts[-1]
            piece = records[start : start + size]
            self.new.run(machine.moves.take_over(move, piece, whole=whole, now_ms=self.new.now_ms))

    def move(self, *, pieces: int = 1) -> None:
        """Move the group, all the way."""
        self.new.now_ms = self.old.now_ms
        self.led(MOVING)
        self.take_over(self.hand_over(), pieces=pieces)
        self.led(MOVED)
        self.new._epochs = dict(self.old._epochs)


def known_of(machine: GroupMachine) -> tuple[object, ...]:
    """Return the whole state of the group; of places in the journal, only their order."""
    members = machine.membership.groups.get(GROUP)
    offsets = machine.offsets.group(GROUP)
    committed = [(place, 0, each.partition) for place, each in offsets.committed.values()]
    held = [
        (place, 1, partition)
        for pending in offsets.pending.values()
        for place, commit in pending.commits
        for partition in (offset.partition for offset in commit.offsets)
    ]
    return (
        members and (members.group, members.members, members.holders, members.subscribers),
        {name: each for name, (_, each) in offsets.committed.items()},
        {name: [each for _, each in held.commits] for name, held in offsets.pending.items()},
        {name: state for name, (_, state) in offsets.producers.items()},
        [each[1:] for each in sorted(committed + held)],
        machine.membership._epochs_given.group_epoch,
        {
            each.transaction_log_partition: each.coordinator_epoch
            for _, each in machine.offsets.coordinator_epochs.snapshot()
        },
        GROUP in machine.offsets._pending,
    )


def committed(partition: int, group_id: str) -> OffsetCommitted:
    """Return a position of a group in ``orders``."""
    (where,) = orders(partition)
    return OffsetCommitted(
        group_id=group_id, partition=where, committed_offset=1, metadata="", commit_time_ms=1
    )
