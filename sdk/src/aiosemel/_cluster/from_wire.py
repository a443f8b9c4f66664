"""From answers of the wire to the values of ``descriptions``."""

from collections.abc import Iterable, Mapping

from aiosemel._cluster.metadata import ROLES, TopicMetadata
from aiosemel.types.descriptions import (
    ClusterDescription,
    ConfigDescription,
    DiskShortage,
    GroupDescription,
    GroupListing,
    GroupState,
    InstanceDescription,
    JointDescription,
    JointWriterDescription,
    MemberDescription,
    Participants,
    PartitionDescription,
    PendingOffsets,
    TopicDescription,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from aiosemel.types.offsets import TopicPartition
from aiosemel.types.transaction_history import TransactionClient
from aiosemel.types.transaction_outcomes import AbortReason
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import history_pb2 as history
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire.messages.plain_messages import PlainMessage

TopicNames = Mapping[str, str]
"""Names of topics by id."""

ROLES_ON_WIRE = {role: number for number, role in ROLES.items()}
GROUP_STATES = {
    group.GROUP_STATE_EMPTY: GroupState.EMPTY,
    group.GROUP_STATE_RECONCILING: GroupState.RECONCILING,
    group.GROUP_STATE_STABLE: GroupState.STABLE,
}
TRANSACTION_STATES = {
    transactions.TRANSACTION_STATE_EMPTY: TransactionState.EMPTY,
    transactions.TRANSACTION_STATE_ONGOING: TransactionState.ONGOING,
    transactions.TRANSACTION_STATE_PREPARED: TransactionState.PREPARED,
    transactions.TRANSACTION_STATE_PREPARE_COMMIT: TransactionState.PREPARE_COMMIT,
    transactions.TRANSACTION_STATE_PREPARE_ABORT: TransactionState.PREPARE_ABORT,
    transactions.TRANSACTION_STATE_COMPLETE_COMMIT: TransactionState.COMPLETE_COMMIT,
    transactions.TRANSACTION_STATE_COMPLETE_ABORT: TransactionState.COMPLETE_ABORT,
}

CONFIG = PlainMessage(ConfigDescription, cluster.ConfigEntry)
TRANSACTION_CLIENT = PlainMessage(TransactionClient, history.TransactionClient)
_SHORTAGE = PlainMessage(DiskShortage, cluster.DiskShortage)
_JOINT_WRITER = PlainMessage(JointWriterDescription, transactions.JointWriterDescription)


def topic(known: TopicMetadata) -> TopicDescription:
    """Describe a topic."""
    return TopicDescription(
        name=known.name,
        topic_id=known.topic_id,
        partitions=tuple(
            PartitionDescription(
                partition=p.partition,
                leader_id=p.leader_id,
                leader_epoch=p.leader_epoch,
                moving_to=p.moving_to,
            )
            for p in known.partitions
        ),
        configs=known.configs,
    )


def whole_cluster(answer: cluster.DescribeClusterResponse) -> ClusterDescription:
    """Describe the cluster."""
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        version=answer.version,
        transaction_log_partitions=answer.layout.transaction_log_partitions,
        group_partitions=answer.layout.group_partitions,
        topic_count=answer.topic_count,
        partition_count=answer.partition_count,
        instances=tuple(_instance(instance) for instance in answer.instances),
    )


def _instance(answer: cluster.InstanceDescription) -> InstanceDescription:
    return InstanceDescription(
        role=ROLES[answer.instance.role],
        instance_id=answer.instance.instance_id,
        host=answer.instance.host,
        port=answer.instance.port,
        claim_epoch=answer.claim_epoch,
        last_registered_ms=answer.last_registered_ms or None,
        leader_partitions=answer.leader_partitions,
        is_controller=answer.controller,
        is_decommissioned=answer.instance.decommissioned,
        disk_shortage=_SHORTAGE.read(answer.disk_shortage)
        if answer.HasField("disk_shortage")
        else None,
    )


def group_listing(answer: group.GroupListing) -> GroupListing:
    """Describe a group in a list."""
    return GroupListing(
        group_id=answer.group_id,
        state=GROUP_STATES.get(answer.state, GroupState.UNKNOWN),
        member_count=answer.member_count,
    )


def whole_group(answer: group.GroupDescription) -> GroupDescription:
    """Describe a group."""
    return GroupDescription(
        group_id=answer.group_id,
        state=GROUP_STATES.get(answer.state, GroupState.UNKNOWN),
        group_epoch=answer.group_epoch,
        assignor=answer.assignor,
        members=tuple(_member(member) for member in answer.members),
        pending=tuple(_pending(pending) for pending in answer.pending),
    )


def _member(answer: group.MemberDescription) -> MemberDescription:
    return MemberDescription(
        member_id=answer.member_id,
        group_instance_id=answer.instance_id,
        member_epoch=answer.member_epoch,
        subscribed_topics=tuple(answer.subscribed_topics),
        assignment=_assigned(answer.assignment),
        target=_assigned(answer.target),
        principal=answer.principal,
        address=answer.address,
        heartbeat_age_ms=answer.heartbeat_age_ms if answer.HasField("heartbeat_age_ms") else None,
        poll_age_ms=answer.poll_age_ms if answer.HasField("poll_age_ms") else None,
    )


def _assigned(topics: Iterable[group.AssignedTopic]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(t.topic, number) for t in topics for number in t.partitions)


def _pending(answer: group.PendingTransaction) -> PendingOffsets:
    return PendingOffsets(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        start_time_ms=answer.start_time_ms,
        offsets={
            TopicPartition(t.topic, p.partition): p.committed_offset
            for t in answer.topics
            for p in t.partitions
        },
    )


def transaction_listing(answer: transactions.TransactionListing) -> TransactionListing:
    """Describe a transactional id in a list."""
    return TransactionListing(
        transactional_id=answer.transactional_id,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        state=TRANSACTION_STATES.get(answer.state, TransactionState.UNKNOWN),
        start_time_ms=answer.start_time_ms or None,
        incomplete_transactions=answer.incomplete_transactions,
        transaction_timeout_ms=answer.transaction_timeout_ms,
        last_update_time_ms=answer.last_update_time_ms,
        fenced_transactions=answer.fenced_transactions,
        joint_writers=answer.joint_writers,
        position=answer.position,
    )


def transactional_id(
    answer: transactions.TransactionalIdDescription, names: TopicNames
) -> TransactionalIdDescription:
    """Describe a transactional id."""
    return TransactionalIdDescription(
        transactional_id=answer.transactional_id,
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        transaction_timeout_ms=answer.transaction_timeout_ms,
        transactions=tuple(_transaction(transaction, names) for transaction in answer.transactions),
        joint=_joint(answer.joint) if answer.HasField("joint") else None,
        client=TRANSACTION_CLIENT.read(answer.client) if answer.HasField("client") else None,
    )


def _joint(answer: transactions.JointDescription) -> JointDescription:
    return JointDescription(
        owner=answer.owner,
        run=answer.run,
        committed_version=None if answer.committed_version < 0 else answer.committed_version,
        open_version=None if answer.open_version < 0 else answer.open_version,
        start_time_ms=answer.start_time_ms or None,
        kept_alive_ms=answer.kept_alive_ms or None,
        writers=tuple(map(_JOINT_WRITER.read, answer.writers)),
    )


def _transaction(
    answer: transactions.TransactionDescription, names: TopicNames
) -> TransactionDescription:
    return TransactionDescription(
        producer_epoch=answer.producer_epoch,
        state=TRANSACTION_STATES.get(answer.state, TransactionState.UNKNOWN),
        start_time_ms=answer.start_time_ms or None,
        participants=_participants(answer.participants, names),
        missing_markers=_participants(answer.missing_markers, names),
        abort_reason=AbortReason.named(answer.abort_reason),
        traceparent=answer.traceparent,
        prepared_time_ms=answer.prepared_time_ms or None,
        decided_time_ms=answer.decided_time_ms or None,
        producer_id=answer.producer_id,
    )


def _participants(named: participants.Participants, names: TopicNames) -> Participants:
    return Participants(
        partitions=tuple(
            TopicPartition(names.get(t.topic_id, t.topic_id), number)
            for t in named.topics
            for number in t.partitions
        ),
        group_ids=tuple(named.group_ids),
    )
