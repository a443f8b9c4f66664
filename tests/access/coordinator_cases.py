"""The requests that the tests send to coordinators; see ``cases``."""

from access.case import (
    GROUP,
    KEY,
    READ_GROUP,
    SEE_GROUP,
    SEE_TXN,
    TOPIC,
    TXN,
    WRITE_TXN,
    Op,
    Rule,
    case_of,
    on_cluster,
    on_topic,
)
from access.cluster import COORDINATOR
from aiosemel import ResourceType
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import history_pb2 as history
from semel.coordinator.v1 import moves_pb2 as moves
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.wire import methods

JOINT = transactions.JointTransaction(transactional_id=TXN, txn_version=1, owner="o", run="r")
COMMIT = participants.TRANSACTION_RESULT_COMMIT

ABORT = participants.TRANSACTION_RESULT_ABORT


def _named(topic_id: str) -> participants.Participants:
    return participants.Participants(
        topics=[participants.TopicPartitions(topic_id=topic_id, partitions=[0])], group_ids=[GROUP]
    )


COORDINATOR_CASES = (
    case_of(
        methods.INIT_PRODUCER_ID,
        COORDINATOR,
        transactions.InitProducerIdRequest(
            transactional_id=TXN, instance_id="i", init_number=1, transaction_timeout_ms=1_000
        ),
        WRITE_TXN,
    ),
    case_of(
        methods.INIT_PRODUCER_ID,
        COORDINATOR,
        transactions.InitProducerIdRequest(instance_id="i", init_number=1),
        on_cluster(Op.IDEMPOTENT_WRITE),
        name=" without transactions",
    ),
    case_of(
        methods.INIT_PRODUCER_ID,
        COORDINATOR,
        transactions.InitProducerIdRequest(instance_id="i", init_number=1),
        on_topic(Op.WRITE),
        name=" for any topic",
    ),
    case_of(
        methods.ADD_PARTITIONS_TO_TXN,
        COORDINATOR,
        lambda topic_id: transactions.AddPartitionsToTxnRequest(
            **KEY, topics=[participants.TopicPartitions(topic_id=topic_id, partitions=[0])]
        ),
        WRITE_TXN,
        on_topic(Op.WRITE),
    ),
    case_of(
        methods.ADD_OFFSETS_TO_TXN,
        COORDINATOR,
        transactions.AddOffsetsToTxnRequest(**KEY, group_id=GROUP),
        WRITE_TXN,
        READ_GROUP,
    ),
    case_of(
        methods.END_TXN, COORDINATOR, transactions.EndTxnRequest(**KEY, result=COMMIT), WRITE_TXN
    ),
    case_of(
        methods.END_TXN,
        COORDINATOR,
        lambda topic_id: transactions.EndTxnRequest(
            **KEY, result=COMMIT, participants=_named(topic_id)
        ),
        WRITE_TXN,
        on_topic(Op.WRITE),
        READ_GROUP,
        name=" with participants",
    ),
    case_of(
        methods.END_TXN,
        COORDINATOR,
        lambda topic_id: transactions.EndTxnRequest(
            **KEY, result=ABORT, participants=_named(topic_id)
        ),
        WRITE_TXN,
        name=" by an abort",
    ),
    case_of(
        methods.PREPARE_TXN,
        COORDINATOR,
        lambda topic_id: transactions.PrepareTxnRequest(**KEY, participants=_named(topic_id)),
        WRITE_TXN,
        on_topic(Op.WRITE),
        READ_GROUP,
    ),
    case_of(
        methods.COMPLETE_PREPARED_TXN,
        COORDINATOR,
        transactions.CompletePreparedTxnRequest(
            transactional_id=TXN, producer_id=1, prepared_epoch=0, result=COMMIT
        ),
        WRITE_TXN,
    ),
    case_of(
        methods.GET_TRANSACTION_OUTCOME,
        COORDINATOR,
        outcomes.GetTransactionOutcomeRequest(transactional_id=TXN),
        SEE_TXN,
    ),
    case_of(
        methods.GET_TRANSACTION_OUTCOME,
        COORDINATOR,
        outcomes.GetTransactionOutcomeRequest(producer_id=1),
        on_cluster(Op.DESCRIBE),
        name=" of a producer id",
    ),
    case_of(methods.INQUIRE_TRANSACTIONS, COORDINATOR, transactions.InquireTransactionsRequest()),
    case_of(
        methods.JOIN_TXN,
        COORDINATOR,
        transactions.JoinTxnRequest(transaction=JOINT, writer="w", transaction_timeout_ms=1_000),
        WRITE_TXN,
    ),
    case_of(
        methods.KEEP_ALIVE_TXN,
        COORDINATOR,
        transactions.KeepAliveTxnRequest(transaction=JOINT),
        WRITE_TXN,
    ),
    case_of(
        methods.END_JOINT_TXN,
        COORDINATOR,
        lambda topic_id: transactions.EndJointTxnRequest(
            transaction=JOINT,
            end_id="e",
            result=COMMIT,
            writers=[transactions.JointWriter(producer_id=1, participants=_named(topic_id))],
        ),
        WRITE_TXN,
        on_topic(Op.WRITE),
        READ_GROUP,
    ),
    case_of(
        methods.DESCRIBE_TRANSACTIONS,
        COORDINATOR,
        transactions.DescribeTransactionsRequest(transactional_ids=[TXN]),
        SEE_TXN,
    ),
    case_of(
        methods.DESCRIBE_TRANSACTIONS,
        COORDINATOR,
        transactions.DescribeTransactionsRequest(transactional_ids=[TXN]),
        SEE_TXN,
        on_topic(Op.DESCRIBE),
        name=" with its partitions",
        shows=lambda found: any(
            transaction.participants.topics
            for description in found.descriptions  # type: ignore[attr-defined]
            for transaction in description.transactions
        ),
    ),
    case_of(
        methods.LIST_TRANSACTIONS,
        COORDINATOR,
        transactions.ListTransactionsRequest(),
        SEE_TXN,
        shows=lambda found: bool(found.transactions),  # type: ignore[attr-defined]
    ),
    case_of(
        methods.LIST_TRANSACTION_HISTORY,
        COORDINATOR,
        history.ListTransactionHistoryRequest(),
        SEE_TXN,
        shows=lambda found: bool(found.transactions),  # type: ignore[attr-defined]
    ),
    case_of(
        methods.LIST_TRANSACTION_HISTORY,
        COORDINATOR,
        history.ListTransactionHistoryRequest(),
        SEE_TXN,
        on_topic(Op.DESCRIBE),
        name=" with its partitions",
        shows=lambda found: any(
            ended.participants
            for ended in found.transactions  # type: ignore[attr-defined]
        ),
    ),
    case_of(
        methods.NOTE_AUDIT, COORDINATOR, history.NoteAuditRequest(action="a", principal="User:x")
    ),
    case_of(methods.LIST_AUDIT, COORDINATOR, history.ListAuditRequest(), on_cluster(Op.DESCRIBE)),
    case_of(
        methods.ABORT_TRANSACTION,
        COORDINATOR,
        outcomes.AbortTransactionRequest(**KEY, dry_run=True),
        WRITE_TXN,
    ),
    case_of(
        methods.FENCE_PRODUCER,
        COORDINATOR,
        outcomes.FenceProducerRequest(transactional_id=TXN, instance_id="i", dry_run=True),
        WRITE_TXN,
    ),
    case_of(methods.HAND_OVER_TRANSACTIONS, COORDINATOR, moves.HandOverTransactionsRequest()),
)

CLUSTER_CASES = (
    case_of(
        methods.METADATA,
        COORDINATOR,
        cluster.MetadataRequest(topics=[TOPIC]),
        on_topic(Op.DESCRIBE),
    ),
    case_of(
        methods.METADATA,
        COORDINATOR,
        lambda topic_id: cluster.MetadataRequest(topic_ids=[topic_id]),
        on_topic(Op.DESCRIBE),
        name=" by id",
    ),
    case_of(
        methods.METADATA,
        COORDINATOR,
        cluster.MetadataRequest(all_topics=True),
        on_topic(Op.DESCRIBE),
        name=" of all",
        shows=lambda found: bool(found.topics),  # type: ignore[attr-defined]
    ),
    case_of(
        methods.METADATA,
        COORDINATOR,
        cluster.MetadataRequest(access_rules=True),
        name=" with access rules",
    ),
    case_of(
        methods.METADATA,
        COORDINATOR,
        cluster.MetadataRequest(all_listeners=True),
        name=" with all listeners",
    ),
    case_of(
        methods.FIND_COORDINATOR,
        COORDINATOR,
        cluster.FindCoordinatorRequest(type=cluster.COORDINATOR_TYPE_GROUP, keys=[GROUP]),
        SEE_GROUP,
        name=" of a group",
    ),
    case_of(
        methods.FIND_COORDINATOR,
        COORDINATOR,
        cluster.FindCoordinatorRequest(type=cluster.COORDINATOR_TYPE_TRANSACTION, keys=[TXN]),
        SEE_TXN,
        name=" of a transactional id",
    ),
    case_of(
        methods.DESCRIBE_CLUSTER,
        COORDINATOR,
        cluster.DescribeClusterRequest(),
        on_cluster(Op.DESCRIBE),
    ),
    case_of(
        methods.CREATE_TOPICS,
        COORDINATOR,
        cluster.CreateTopicsRequest(topics=[cluster.NewTopic(name="new")], validate_only=True),
        Rule(ResourceType.TOPIC, "new", Op.CREATE),
    ),
    case_of(
        methods.CREATE_TOPICS,
        COORDINATOR,
        cluster.CreateTopicsRequest(topics=[cluster.NewTopic(name="new")], validate_only=True),
        on_cluster(Op.CREATE),
        name=" of any name",
    ),
    case_of(
        methods.DELETE_TOPICS,
        COORDINATOR,
        cluster.DeleteTopicsRequest(topics=[TOPIC]),
        on_topic(Op.DELETE),
    ),
    case_of(
        methods.DELETE_TOPICS,
        COORDINATOR,
        lambda topic_id: cluster.DeleteTopicsRequest(topic_ids=[topic_id]),
        on_topic(Op.DELETE),
        name=" by id",
    ),
    case_of(
        methods.CREATE_PARTITIONS,
        COORDINATOR,
        cluster.CreatePartitionsRequest(
            topics=[cluster.MorePartitions(name=TOPIC, partitions=9)], validate_only=True
        ),
        on_topic(Op.ALTER),
    ),
    case_of(
        methods.DESCRIBE_CONFIGS,
        COORDINATOR,
        cluster.DescribeConfigsRequest(topics=[TOPIC]),
        on_topic(Op.DESCRIBE_CONFIGS),
    ),
    case_of(
        methods.INCREMENTAL_ALTER_CONFIGS,
        COORDINATOR,
        cluster.IncrementalAlterConfigsRequest(
            topics=[cluster.TopicConfigChange(name=TOPIC)], validate_only=True
        ),
        on_topic(Op.ALTER_CONFIGS),
    ),
    case_of(
        methods.CREATE_ACLS,
        COORDINATOR,
        acls.CreateAclsRequest(validate_only=True),
        on_cluster(Op.ALTER),
    ),
    case_of(
        methods.DELETE_ACLS,
        COORDINATOR,
        acls.DeleteAclsRequest(validate_only=True),
        on_cluster(Op.ALTER),
    ),
    case_of(
        methods.DESCRIBE_ACLS, COORDINATOR, acls.DescribeAclsRequest(), on_cluster(Op.DESCRIBE)
    ),
    case_of(
        methods.ALTER_CLIENT_QUOTAS,
        COORDINATOR,
        quotas.AlterClientQuotasRequest(validate_only=True),
        on_cluster(Op.ALTER_CONFIGS),
    ),
    case_of(
        methods.DESCRIBE_CLIENT_QUOTAS,
        COORDINATOR,
        quotas.DescribeClientQuotasRequest(),
        on_cluster(Op.DESCRIBE_CONFIGS),
    ),
    case_of(
        methods.ALTER_PARTITION_REASSIGNMENTS,
        COORDINATOR,
        moves.AlterPartitionReassignmentsRequest(validate_only=True),
        on_cluster(Op.ALTER),
    ),
    case_of(
        methods.REBALANCE_PARTITIONS,
        COORDINATOR,
        moves.RebalancePartitionsRequest(validate_only=True),
        on_cluster(Op.ALTER),
    ),
    case_of(
        methods.DECOMMISSION_INSTANCE,
        COORDINATOR,
        cluster.DecommissionInstanceRequest(),
        on_cluster(Op.ALTER),
    ),
    case_of(
        methods.COMPLETE_PARTITION_REASSIGNMENT,
        COORDINATOR,
        moves.CompletePartitionReassignmentRequest(),
    ),
    case_of(methods.REGISTER_INSTANCE, COORDINATOR, cluster.RegisterInstanceRequest()),
)
