"""Answers of the admin client: topics, groups, transactions and the cluster, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from aiosemel.types.client_names import client_id_of
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.transaction_history import TransactionClient
from aiosemel.types.transaction_outcomes import AbortReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition of a topic."""

    partition: int
    leader_id: int
    """Instance id of the broker that leads it."""
    leader_epoch: int
    """Rises when the leader changes, and when a move is given up."""
    moving_to: int | None = None
    """The broker that takes over, while the partition moves."""


class ServiceRole(StrEnum):
    """The service of an instance of the cluster."""

    COORDINATOR = "coordinator"
    BROKER = "broker"
    GROUP_COORDINATOR = "group-coordinator"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReassignment:
    """Where a partition is led, and where it moves."""

    role: ServiceRole = ServiceRole.BROKER
    """The service that leads it; internal topics have group coordinators, or coordinators."""
    leader_id: int
    """The instance that leads it until the move is at its end."""
    moving_to: int | None
    """None: it stays."""

    @property
    def leader(self) -> str:
        """The instance that leads it, for people: ``broker-1``."""
        return f"{self.role}-{self.leader_id}"

    @property
    def target(self) -> str | None:
        """The instance that it moves to, for people; None: it stays."""
        return None if self.moving_to is None else f"{self.role}-{self.moving_to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """One topic; ``partitions`` by their number."""

    name: str
    topic_id: str
    partitions: tuple[PartitionDescription, ...]
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options that were set, by their names; all others have their defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsDescription:
    """Some topics, and the cluster that they are in."""

    cluster_id: str
    topics: Mapping[str, TopicDescription]
    """The present ones, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDescription:
    """One option of a topic."""

    name: str
    value: str
    """What holds; empty: as each broker is set up."""
    default_value: str
    is_default: bool
    """Whether the option has its default."""
    documentation: str
    """One sentence about its effect, with its unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskShortage:
    """The disk of an instance that refuses new data."""

    folder: str
    """Of the instance's journal."""
    free_bytes: int
    reserve_bytes: int
    """The setting ``disk_reserve_bytes`` of the instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceDescription:
    """One process of the cluster."""

    role: ServiceRole
    instance_id: int
    host: str
    port: int
    claim_epoch: int
    """Rises with every start of the instance."""
    last_registered_ms: int | None
    """Milliseconds since 1970-01-01 UTC; None: the instance that answered does not know."""
    leader_partitions: int
    """How many partitions it leads: of topics, of groups, or of the transaction log."""
    is_controller: bool
    is_decommissioned: bool = False
    """Whether it is to lead nothing any more."""
    disk_shortage: DiskShortage | None = None
    """None: the disk has room, or the coordinator that answered is not the controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster, as the coordinator that answered knows it."""

    cluster_id: str
    version: int
    """Rises with every change of instances or topics."""
    transaction_log_partitions: int
    group_partitions: int
    topic_count: int
    partition_count: int
    instances: tuple[InstanceDescription, ...]


class GroupState(StrEnum):
    """Where a consumer group stands."""

    EMPTY = "empty"
    """No members; offsets may be there."""
    RECONCILING = "reconciling"
    """Members are moving to their target assignments."""
    STABLE = "stable"
    """Every member holds its target assignment."""
    UNKNOWN = "unknown"
    """One that this SDK does not know: the cluster is newer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One consumer group in a list."""

    group_id: str
    state: GroupState
    member_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """One member of a consumer group."""

    member_id: str
    group_instance_id: str
    """Empty: a dynamic member."""
    member_epoch: int
    """-2: a static member that is away, and may come back to its target."""
    subscribed_topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]
    """The partitions that the member holds."""
    target: tuple[TopicPartition, ...]
    """The partitions that the member is to hold."""
    principal: str = ""
    """The principal of its last heartbeat, such as ``User:ada``; empty: not known."""
    address: str = ""
    """From where; empty: not known."""
    heartbeat_age_ms: int | None = None
    """How long ago. None: it has not spoken since its coordinator took the group over."""
    poll_age_ms: int | None = None
    """How long ago it last polled, or waited in a poll, in milliseconds, as far as its heartbeats
    tell. None: not known."""

    @property
    def client_id(self) -> str:
        """The name that its program gives itself (``ClientOptions.client_id``); empty: none."""
        return client_id_of(self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOffsets:
    """An open transaction with offsets of a group."""

    producer_id: int
    producer_epoch: int
    start_time_ms: int
    offsets: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One consumer group."""

    group_id: str
    state: GroupState
    group_epoch: int
    assignor: str
    members: tuple[MemberDescription, ...]
    pending: tuple[PendingOffsets, ...]


class TransactionState(StrEnum):
    """Where a transaction stands, by Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARED = "Prepared"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    UNKNOWN = "Unknown"
    """One that this SDK does not know: the cluster is newer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """One transactional id in a list: with its current transaction, or with a prepared one."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    """Of the transaction named; of an idle id, that of the last one that is not complete."""
    start_time_ms: int | None
    """Milliseconds since 1970-01-01 UTC; None: nothing is known of the transaction yet."""
    incomplete_transactions: int
    """Decided transactions whose markers are not all written."""
    transaction_timeout_ms: int
    last_update_time_ms: int
    """When its last transaction ended, in milliseconds since 1970-01-01 UTC."""
    fenced_transactions: int
    """The aborts among its last 256 transactions because a new producer took over."""
    joint_writers: int = 0
    """Writers of the joint transaction that is open."""
    position: str = ""
    """Where it stands among all entries, for ``behind`` of ``Admin.list_transactions``."""


class TransactionOrder(StrEnum):
    """The order of a list of transactions."""

    BY_ID = "ById"
    """By transactional id."""
    OLDEST_FIRST = "OldestFirst"
    """The transaction that began first comes first; ids without a transaction come last, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Participants:
    """The partitions and groups that a transaction wrote to."""

    partitions: tuple[TopicPartition, ...]
    """Of a topic that is gone, the name is its id."""
    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """One transaction."""

    producer_epoch: int
    state: TransactionState
    start_time_ms: int | None
    """As in ``TransactionListing``."""
    participants: Participants
    missing_markers: Participants
    """For a decided transaction: the participants that have not written its outcome yet."""
    abort_reason: AbortReason | None
    """None: it was not aborted."""
    traceparent: str
    """W3C trace context, or empty."""
    prepared_time_ms: int | None = None
    """Of a prepared one: milliseconds since 1970-01-01 UTC."""
    decided_time_ms: int | None = None
    """Of a decided one: milliseconds since 1970-01-01 UTC; None: also if it is not known."""
    producer_id: int = 0
    """Of a writer of a joint transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointWriterDescription:
    """One writer of an open joint transaction."""

    writer: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JointDescription:
    """The further state of a transactional id of joint transactions."""

    owner: str
    run: str
    """The newest one."""
    committed_version: int | None
    """The highest one; None: none."""
    open_version: int | None
    start_time_ms: int | None
    """When it was opened, in milliseconds since 1970-01-01 UTC; None: none is open."""
    kept_alive_ms: int | None
    """When it was last kept alive; its timeout counts from then."""
    writers: tuple[JointWriterDescription, ...]
    """Of the open version, in the order in which they joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalIdDescription:
    """One transactional id with its transactions that are not complete, oldest first."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transactions: tuple[TransactionDescription, ...]
    joint: JointDescription | None = None
    """Of an id of joint transactions, which has no producer id of its own: ``transactions`` are
    those of all its writers."""
    client: TransactionClient | None = None
    """The producer in charge of the id; None of an id of joint transactions, and if it is not
    known."""
