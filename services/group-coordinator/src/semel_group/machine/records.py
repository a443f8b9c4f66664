"""The facts that a group coordinator's journal holds.

Each but the three outcomes is the whole new state of one entity, named by its first fields. On disk
they are the messages of ``semel/group/journal/v1``; the serde maps them.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from semel_common.ids import TopicPartition
from semel_group.machine.values import STATIC_LEAVE_EPOCH
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen

# -- membership ----------------------------------------------------------------------------------


class ConsumerGroup(Struct, frozen=True, kw_only=True):
    """A group at one group epoch: what its members are to move to."""

    group_id: str
    group_epoch: int
    """Rises with every change of members, subscriptions or topics; 0: no member has joined yet."""
    assignor: str
    topics: Mapping[str, int]
    """Partitions of each subscribed topic, by its id, as the target was made for them."""
    target: Mapping[str, frozenset[TopicPartition]]
    """What each member is to hold in the end, by member id; every member is named."""
    unsubscribed: Mapping[str, int] = {}
    """The time since when no member subscribes to a topic any more, by its id, in milliseconds
    since 1970-01-01 UTC; for topics with a subscription within the retention of offsets.
    """


class Member(Struct, frozen=True, kw_only=True):
    """A member of a group, and its partitions."""

    group_id: str
    member_id: str
    instance_id: str = ""
    """What a static member is known by over its restarts; empty: a dynamic member."""
    member_epoch: int
    """The group epoch to whose target the member moves; -2: it is away."""
    previous_member_epoch: int
    """The one before: its heartbeats are repeats, sent because an answer was lost."""
    rebalance_timeout_ms: int
    subscribed_topics: frozenset[str]
    """Names."""
    server_assignor: str
    """The assignor that the member asked for; empty: any."""
    held: Mapping[TopicPartition, int]
    """What the member may be using, each with the member epoch at which it was given."""
    revoking: frozenset[TopicPartition]
    """Those of ``held`` that it is to give up, and has not acknowledged yet."""

    @property
    def is_away(self) -> bool:
        """Whether a static member has left for a while: it holds nothing, and keeps its target."""
        return self.member_epoch == STATIC_LEAVE_EPOCH

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """What the member is told to hold."""
        return frozenset(self.held.keys() - self.revoking)


class MemberRemoved(Struct, frozen=True, kw_only=True):
    """A member left, or was silent or slow for too long."""

    group_id: str
    member_id: str


class GroupDeleted(Struct, frozen=True, kw_only=True):
    """A group without members is gone, with its offsets; what transactions hold for it goes too."""

    group_id: str


class MemberEpochsGiven(Struct, frozen=True, kw_only=True):
    """Groups that are gone have had epochs up to this one. Written in snapshots only."""

    group_epoch: int


# -- offsets -------------------------------------------------------------------------------------


class OffsetCommitted(Struct, frozen=True, kw_only=True):
    """A group's position in one partition. Its journal offset is what "later" means."""

    group_id: str
    partition: TopicPartition
    committed_offset: int
    metadata: str
    commit_time_ms: int


class OffsetRemoved(Struct, frozen=True, kw_only=True):
    """A group has no position in a partition any more; what transactions hold for it goes too."""

    group_id: str
    partition: TopicPartition


class TxnOffsetsCommitted(Struct, frozen=True, kw_only=True):
    """Positions that a group gets if a transaction commits: one TxnOffsetCommit request."""

    group_id: str
    producer_id: int
    producer_epoch: int
    base_sequence: int
    start_time_ms: int
    """When the transaction's first offsets for this group came."""
    offsets: tuple[OffsetCommitted, ...]
    crc32c: int | None = None
    """Over the offsets as they were sent; None in journals of releases that did not know it."""


class TransactionEnded(Struct, frozen=True, kw_only=True):
    """A transaction's outcome reached a group, by marker or by inquiry; the fence is one higher."""

    group_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    ended_ms: int
    """0: not known."""


class TransactionNeverGiven(Struct, frozen=True, kw_only=True):
    """The epoch of a transaction was never given out: it aborts, and fences no producer."""

    group_id: str
    producer_id: int
    producer_epoch: int
    current_epoch: int
    """What the producer is really at."""
    ended_ms: int
    """0: not known."""


class ProducerState(Struct, frozen=True, kw_only=True):
    """What a group knows of one producer. Written in snapshots only."""

    group_id: str
    producer_id: int
    fence: int
    """The lowest epoch that may still commit offsets here; only rises."""
    producer_epoch: int
    """The highest epoch that did; -1: none."""
    last_sequence: int
    """The base sequence of that epoch's last commit."""
    last_ended_ms: int
    """When the last of its transactions ended here; 0: not known, or none has."""
    crc32cs: tuple[int, ...] = ()
    """Of the last commits of ``producer_epoch``, the newest last: as many as are known."""


class ProducerForgotten(Struct, frozen=True, kw_only=True):
    """A producer was idle for so long that nothing is known of it any more, not even its fence."""

    group_id: str
    producer_id: int


# -- partitions of groups that move ---------------------------------------------------------------


class GroupsHandedOver(Struct, frozen=True, kw_only=True):
    """The groups of a partition are served here no more, as long as it is led under this epoch."""

    partition: int
    leader_epoch: int


class GroupsTakenOver(Struct, frozen=True, kw_only=True):
    """The leader of a partition handed over the state of its groups; it is not served yet."""

    partition: int
    leader_epoch: int
    """Of that leader."""
    whole: bool
    """Whether it is all of it."""


class GroupsServed(Struct, frozen=True, kw_only=True):
    """The groups of a partition are served here from now on, or again."""

    partition: int


class GroupsForgotten(Struct, frozen=True, kw_only=True):
    """Nothing is known of a partition's groups any more."""

    partition: int


MembershipRecord: TypeAlias = (
    ConsumerGroup | Member | MemberRemoved | GroupDeleted | MemberEpochsGiven
)
"""Changes of a group's members."""

GroupOffsetsRecord: TypeAlias = (
    OffsetCommitted
    | OffsetRemoved
    | TxnOffsetsCommitted
    | TransactionEnded
    | TransactionNeverGiven
    | ProducerState
    | ProducerForgotten
)
"""What changes where one group stands, which its ``group_id`` names."""

OffsetsRecord: TypeAlias = GroupOffsetsRecord | CoordinatorEpochSeen
"""What changes where groups stand."""

MoveRecord: TypeAlias = GroupsHandedOver | GroupsTakenOver | GroupsServed | GroupsForgotten
"""What changes which groups are served."""

Record: TypeAlias = MembershipRecord | OffsetsRecord | MoveRecord | ClusterImage
"""Everything that a group coordinator's journal holds."""
