"""Requests as they arrive: every field is checked here, and becomes a plain value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semel.common.v1 import participants_pb2 as participants
from semel.group.v1 import group_pb2 as wire
from semel_common.errors import InvalidGroupIdError, InvalidRequestError
from semel_common.ids import TopicPartition
from semel_common.wire.messages.request_bounds import (
    GROUPS_MAX,
    ID_LENGTH_MAX,
    MARKERS_MAX,
    NAME_LENGTH_MAX,
    OFFSETS_MAX,
    SUBSCRIPTION_MAX,
    TOPIC_NAME_LENGTH_MAX,
)
from semel_group.machine.values import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Committer,
    GroupState,
    Heartbeat,
    NamedPartition,
    NewOffset,
    TopicName,
    Transaction,
    TransactionResult,
    TxnMarker,
)
from semel_runtime.server.form_checks import (
    INT32_MAX,
    INT64_MAX,
    require_count,
    require_int,
    require_known,
    require_name,
    shown,
)
from semel_runtime.server.pages import check_token

# -- membership ----------------------------------------------------------------------------------


def heartbeat(request: wire.ConsumerGroupHeartbeatRequest, *, arrived_ms: int = 0) -> Heartbeat:
    """Read a heartbeat. Who joins says everything, and owns nothing yet."""
    epoch = require_int("member_epoch", request.member_epoch, minimum=STATIC_LEAVE_EPOCH)
    timeout_ms = require_int(
        "rebalance_timeout_ms", request.rebalance_timeout_ms, maximum=INT32_MAX
    )
    read = Heartbeat(
        group_id=group_id(request.group_id),
        member_id=require_name("member_id", request.member_id),
        member_epoch=epoch,
        instance_id=_optional_name("instance_id", request.instance_id),
        takes_over=request.takes_over,
        rebalance_timeout_ms=timeout_ms or None,
        subscribed_topics=_subscription(request),
        owned=_owned(request),
        server_assignor=_optional_name("server_assignor", request.server_assignor),
        arrived_ms=arrived_ms,
    )
    if epoch == JOIN_EPOCH:
        _check_joining(read)
    if read.takes_over and not (epoch == JOIN_EPOCH and read.instance_id):
        raise InvalidRequestError(
            f"takes_over is set with member_epoch {epoch} and instance_id"
            f" {shown(read.instance_id)!r}: only a member that joins (epoch 0) with an instance id"
            " takes it over",
            field="takes_over",
        )
    if epoch == STATIC_LEAVE_EPOCH and not read.instance_id:
        raise InvalidRequestError(
            "instance_id is empty: only a static member leaves for a while (epoch -2)",
            field="instance_id",
        )
    return read


def _check_joining(joining: Heartbeat) -> None:
    if joining.rebalance_timeout_ms is None:
        raise InvalidRequestError(
            "rebalance_timeout_ms is 0: a member that joins must give one",
            field="rebalance_timeout_ms",
        )
    if joining.subscribed_topics is None:
        raise InvalidRequestError(
            "subscription is absent: a member that joins must give one", field="subscription"
        )
    if joining.owned:
        raise InvalidRequestError(
            f"owned has {len(joining.owned)} partitions: a member that joins owns none",
            field="owned",
        )


def _subscription(request: wire.ConsumerGroupHeartbeatRequest) -> frozenset[str] | None:
    if not request.HasField("subscription"):
        return None
    topics = request.subscription.topics
    require_count("subscription.topics", topics, maximum=SUBSCRIPTION_MAX)
    return frozenset(
        require_name("subscription.topics", topic, length_max=TOPIC_NAME_LENGTH_MAX)
        for topic in topics
    )


def _owned(request: wire.ConsumerGroupHeartbeatRequest) -> frozenset[TopicPartition] | None:
    if not request.HasField("owned"):
        return None
    _check_partition_count("owned.topics", request.owned.topics)
    return frozenset(
        TopicPartition(
            _topic_id("owned.topics.topic_id", topic.topic_id),
            require_int("owned.topics.partitions", partition, maximum=INT32_MAX),
        )
        for topic in request.owned.topics
        for partition in topic.partitions
    )


# -- offsets -------------------------------------------------------------------------------------


class _Committing(Protocol):
    @property
    def group_id(self) -> str: ...
    @property
    def member_id(self) -> str: ...
    @property
    def member_epoch(self) -> int: ...


def committer(request: _Committing) -> Committer:
    """Read the caller of a commit: a member at its epoch, or no member (no id, epoch -1)."""
    read = Committer(
        group_id=group_id(request.group_id),
        member_id=_optional_name("member_id", request.member_id),
        member_epoch=require_int("member_epoch", request.member_epoch, minimum=LEAVE_EPOCH),
    )
    if bool(read.member_id) != (read.member_epoch != LEAVE_EPOCH):
        raise InvalidRequestError(
            f"member_id is {shown(read.member_id)!r} and member_epoch {read.member_epoch}: "
            "a member has both, who is none has an empty id and epoch -1",
            field="member_epoch",
        )
    return read


def reader(request: wire.FetchOffsetsRequest) -> Committer:
    """Read who fetches; without a member id, the epoch says nothing."""
    if request.member_id:
        return committer(request)
    return Committer(group_id=group_id(request.group_id))


def new_offsets(topics: Sequence[wire.OffsetCommitTopic]) -> list[NewOffset]:
    """Read the offsets to commit; at least one."""
    _check_partition_count("topics", topics)
    offsets = [_new_offset(topic, partition) for topic in topics for partition in topic.partitions]
    require_count("topics.partitions", offsets, minimum=1, maximum=OFFSETS_MAX)
    return offsets


def _new_offset(topic: wire.OffsetCommitTopic, offset: wire.OffsetCommitPartition) -> NewOffset:
    return NewOffset(
        topic=_topic_name(topic),
        partition=_partition(offset.partition),
        committed_offset=require_int("committed_offset", offset.committed_offset),
        metadata=offset.metadata,
    )


def asked_partitions(request: wire.FetchOffsetsRequest) -> list[NamedPartition] | None:
    """Read which partitions are asked for; None: all."""
    if request.all_partitions:
        require_count("topics", request.topics, maximum=0)
        return None
    return named_partitions(request.topics)


def offsets_page(token: str) -> TopicPartition | None:
    """Read behind which partition a page of offsets begins; None: at the first one."""
    if not token:
        return None
    topic_id, _, number = check_token(token).rpartition(":")
    if not topic_id or not number.isdecimal() or int(number) > INT32_MAX:
        raise InvalidRequestError(
            f"page_token is {token[:80]!r}: send one as an answer gave it", field="page_token"
        )
    return TopicPartition(topic_id, int(number))


def named_partitions(topics: Sequence[wire.OffsetFetchTopic]) -> list[NamedPartition]:
    """Read partitions by topic."""
    _check_partition_count("topics", topics)
    return [
        NamedPartition(_topic_name(topic), _partition(partition))
        for topic in topics
        for partition in topic.partitions
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnCommit:
    """A TxnOffsetCommit request."""

    committer: Committer
    transaction: Transaction
    base_sequence: int
    offsets: list[NewOffset]


def txn_commit(request: wire.TxnOffsetCommitRequest) -> TxnCommit:
    """Read offsets to be committed by a transaction."""
    require_name("transactional_id", request.transactional_id)
    return TxnCommit(
        committer=committer(request),
        transaction=_transaction(request.producer_id, request.producer_epoch),
        base_sequence=require_int("base_sequence", request.base_sequence, maximum=INT32_MAX),
        offsets=new_offsets(request.topics),
    )


# -- outcomes ------------------------------------------------------------------------------------


def txn_markers(request: participants.WriteTxnMarkersRequest) -> list[TxnMarker]:
    """Read the markers for groups."""
    require_count("markers", request.markers, maximum=MARKERS_MAX)
    return [_txn_marker(marker) for marker in request.markers]


def _txn_marker(marker: participants.TxnMarker) -> TxnMarker:
    result = require_known("markers.result", marker.result, tuple(TransactionResult))
    epoch = require_int("markers.coordinator_epoch", marker.coordinator_epoch)
    require_count(
        "markers.participants.group_ids", marker.participants.group_ids, maximum=GROUPS_MAX
    )
    return TxnMarker(
        transaction=_transaction(marker.producer_id, marker.producer_epoch),
        result=TransactionResult(result),
        coordinator_epoch=epoch,
        group_ids=tuple(group_id(each) for each in marker.participants.group_ids),
    )


# -- operators -----------------------------------------------------------------------------------


def group_states(request: wire.ListGroupsRequest) -> frozenset[GroupState]:
    """Read which states are asked for; none: all."""
    known = tuple(GroupState)
    require_count("states", request.states, maximum=len(known))
    return frozenset(
        GroupState(require_known("states", state, known)) for state in request.states
    ) or frozenset(known)


def group_ids(request: wire.DescribeGroupsRequest | wire.DeleteGroupsRequest) -> list[str]:
    """Read which groups are meant."""
    require_count("group_ids", request.group_ids, maximum=GROUPS_MAX)
    return [group_id(each) for each in request.group_ids]


# -- fields --------------------------------------------------------------------------------------


def group_id(value: str) -> str:
    """Return a group id. Raises InvalidGroupIdError."""
    if not 0 < len(value) <= NAME_LENGTH_MAX:
        raise InvalidGroupIdError(
            f"group_id {shown(value)!r} has {len(value)} characters: "
            f"must be 1 to {NAME_LENGTH_MAX}",
            field="group_id",
        )
    return value


class _Topic(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> str: ...


class _WithPartitions(Protocol):
    @property
    def partitions(self) -> Sequence[object]: ...


def _topic_name(message: _Topic) -> TopicName:
    if not message.topic and not message.topic_id:
        raise InvalidRequestError("topic and topic_id are empty: one must be given", field="topic")
    if message.topic:
        require_name("topic", message.topic, length_max=TOPIC_NAME_LENGTH_MAX)
    if message.topic_id:
        _topic_id("topic_id", message.topic_id)
    return TopicName(message.topic, message.topic_id)


def _topic_id(field: str, value: str) -> str:
    return require_name(field, value, length_max=ID_LENGTH_MAX)


def _partition(value: int) -> int:
    return require_int("partition", value, maximum=INT32_MAX)


def _transaction(producer_id: int, producer_epoch: int) -> Transaction:
    return Transaction(
        require_int("producer_id", producer_id, minimum=1),
        require_int("producer_epoch", producer_epoch, maximum=INT64_MAX - 1),
    )


def _optional_name(field: str, value: str) -> str:
    return require_name(field, value) if value else value


def _check_partition_count(field: str, topics: Sequence[_WithPartitions]) -> None:
    require_count(field, topics, maximum=OFFSETS_MAX)
    count = sum(len(topic.partitions) for topic in topics)
    require_count(f"{field}.partitions", range(count), maximum=OFFSETS_MAX)
