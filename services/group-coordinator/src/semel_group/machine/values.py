"""Arguments and answers of the machine: plain values."""

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from semel_common.errors import SemelError
from semel_common.ids import GroupId, TopicPartition
from semel_runtime.participant.inquiry import OpenTransactionAt

JOIN_EPOCH = 0
"""The member epoch of a member that wants to join."""
LEAVE_EPOCH = -1
"""The member epoch of a member that leaves; in commits, of a caller that is no member."""
STATIC_LEAVE_EPOCH = -2
"""The member epoch of a static member that leaves for a while, and of one that is away."""


# -- membership ----------------------------------------------------------------------------------


class MemberKey(NamedTuple):
    """Names a member."""

    group_id: str
    member_id: str


class Heartbeat(Struct, frozen=True, kw_only=True):
    """What a member says of itself; None or empty: as before."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str = ""
    takes_over: bool = False
    """Whether it joins in the place of the member that has its instance id, and fences it."""
    rebalance_timeout_ms: int | None = None
    subscribed_topics: frozenset[str] | None = None
    owned: frozenset[TopicPartition] | None = None
    server_assignor: str = ""
    overdue: frozenset[TopicPartition] = frozenset()
    """Partitions that no member has held for a heartbeat interval, as far as the shell knows."""
    is_back: bool = False
    """Whether partitions that were meant for this member went to others while it was silent."""
    arrived_ms: int = 0
    """When it came, in milliseconds since 1970-01-01 UTC."""


class HeartbeatAnswer(Struct, frozen=True, kw_only=True):
    """The partitions that the member must hold from now on, and the facts for the shell."""

    member_epoch: int
    assignment: tuple[TopicPartition, ...] | None
    """None: as the member itself said that it is."""
    settled: bool
    """Whether the member holds its target, and waits for nothing."""
    taken_from: frozenset[str] = frozenset()
    """The members that overdue partitions were meant for, which this member has been given."""
    revoke_within_ms: int | None
    """How long it may take to give up what it is not to hold; None: there is nothing such."""


class GroupState(IntEnum):
    """Where a group stands; the numbers of ``semel.group.v1.GroupState``."""

    EMPTY = 1
    RECONCILING = 2
    STABLE = 3


class GroupListing(Struct, frozen=True, kw_only=True):
    """One group in a list."""

    group_id: str
    state: GroupState
    member_count: int


class MemberDescription(Struct, frozen=True, kw_only=True):
    """One member of a group."""

    member_id: str
    instance_id: str
    member_epoch: int
    subscribed_topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]


class GroupDescription(Struct, frozen=True, kw_only=True):
    """One group."""

    group_id: str
    state: GroupState
    group_epoch: int
    assignor: str
    members: tuple[MemberDescription, ...]
    pending: tuple["PendingDescription", ...]


# -- offsets -------------------------------------------------------------------------------------


class TopicName(NamedTuple):
    """How a caller names a topic: by name, by id, or both, which must agree."""

    topic: str
    topic_id: str


class NamedPartition(NamedTuple):
    """A partition as a caller names it."""

    topic: TopicName
    partition: int


class NewOffset(Struct, frozen=True, kw_only=True):
    """A position that a group is to have."""

    topic: TopicName
    partition: int
    committed_offset: int
    metadata: str = ""


class Committer(Struct, frozen=True, kw_only=True):
    """The caller of a commit: a member, or no member (empty id, epoch -1)."""

    group_id: str
    member_id: str = ""
    member_epoch: int = LEAVE_EPOCH


class Transaction(NamedTuple):
    """Names a transaction."""

    producer_id: int
    producer_epoch: int


class RefusedOffset(Struct, frozen=True, kw_only=True):
    """Why one offset was not committed."""

    topic: TopicName
    partition: int
    error: SemelError


class FetchedOffset(Struct, frozen=True, kw_only=True):
    """A group's position in one partition, or why it is not answered."""

    topic: TopicName
    partition: int
    committed_offset: int
    """-1: none."""
    metadata: str
    error: SemelError | None = None


class FetchedOffsets(Struct, frozen=True, kw_only=True):
    """The answer to FetchOffsets, and which open transactions kept it from being whole."""

    offsets: tuple[FetchedOffset, ...]
    unstable: frozenset[OpenTransactionAt[GroupId]] = frozenset()


class PendingDescription(Struct, frozen=True, kw_only=True):
    """An open transaction with offsets of a group."""

    producer_id: int
    producer_epoch: int
    start_time_ms: int
    offsets: tuple[tuple[TopicPartition, int], ...]


# -- outcomes ------------------------------------------------------------------------------------


class TransactionResult(IntEnum):
    """The decision; the numbers of ``semel.common.v1.TransactionResult``."""

    COMMIT = 1
    ABORT = 2


class TxnMarker(Struct, frozen=True, kw_only=True):
    """The outcome of one transaction for some groups."""

    transaction: Transaction
    result: TransactionResult
    coordinator_epoch: int
    group_ids: tuple[str, ...]


class RefusedMarker(Struct, frozen=True, kw_only=True):
    """Why one group did not take a marker."""

    group_id: str
    error: SemelError
