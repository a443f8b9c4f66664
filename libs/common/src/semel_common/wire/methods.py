"""Every RPC, once, with its types: what clients call and what services register handlers for."""

import dataclasses
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from semel.broker.v1 import broker_pb2 as broker
from semel.broker.v1 import moves_pb2 as broker_moves
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import frames_pb2 as frames
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import history_pb2 as history
from semel.coordinator.v1 import moves_pb2 as moves
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel.group.v1 import moves_pb2 as group_moves

Req = TypeVar("Req", bound=Message)
Res = TypeVar("Res", bound=Message)
ReqT_co = TypeVar("ReqT_co", bound=Message, covariant=True)
ResT_co = TypeVar("ResT_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True)
class Method(Generic[ReqT_co, ResT_co]):
    """One RPC. ``stream`` is the service whose frame stream carries it; None: unary calls only."""

    service: str
    name: str
    request: type[ReqT_co]
    response: type[ResT_co]
    stream: str | None = None
    path: str = dataclasses.field(init=False)
    """The path of the unary call, as gRPC writes it."""
    field: str = dataclasses.field(init=False)
    """The name of the method's request and response in the frames of its stream."""

    def __post_init__(self) -> None:
        """Derive the names once: they are needed for every call."""
        object.__setattr__(self, "path", f"/{self.service}/{self.name}")
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name).lstrip("_")
        object.__setattr__(self, "field", snake)


TRANSACTIONS = "semel.coordinator.v1.CoordinatorService"
CLUSTER = "semel.coordinator.v1.ClusterService"
BROKER = "semel.broker.v1.BrokerService"
GROUP = "semel.group.v1.GroupService"
PARTICIPANT = "semel.common.v1.TxnParticipantService"
FRAMES = "semel.common.v1.FramesService"

INIT_PRODUCER_ID = Method(
    TRANSACTIONS,
    "InitProducerId",
    transactions.InitProducerIdRequest,
    transactions.InitProducerIdResponse,
)
ADD_PARTITIONS_TO_TXN = Method(
    TRANSACTIONS,
    "AddPartitionsToTxn",
    transactions.AddPartitionsToTxnRequest,
    transactions.AddPartitionsToTxnResponse,
    TRANSACTIONS,
)
ADD_OFFSETS_TO_TXN = Method(
    TRANSACTIONS,
    "AddOffsetsToTxn",
    transactions.AddOffsetsToTxnRequest,
    transactions.AddOffsetsToTxnResponse,
    TRANSACTIONS,
)
END_TXN = Method(
    TRANSACTIONS, "EndTxn", transactions.EndTxnRequest, transactions.EndTxnResponse, TRANSACTIONS
)
PREPARE_TXN = Method(
    TRANSACTIONS, "PrepareTxn", transactions.PrepareTxnRequest, transactions.PrepareTxnResponse
)
COMPLETE_PREPARED_TXN = Method(
    TRANSACTIONS,
    "CompletePreparedTxn",
    transactions.CompletePreparedTxnRequest,
    transactions.CompletePreparedTxnResponse,
)
INQUIRE_TRANSACTIONS = Method(
    TRANSACTIONS,
    "InquireTransactions",
    transactions.InquireTransactionsRequest,
    transactions.InquireTransactionsResponse,
    TRANSACTIONS,
)
JOIN_TXN = Method(
    TRANSACTIONS, "JoinTxn", transactions.JoinTxnRequest, transactions.JoinTxnResponse
)
KEEP_ALIVE_TXN = Method(
    TRANSACTIONS,
    "KeepAliveTxn",
    transactions.KeepAliveTxnRequest,
    transactions.KeepAliveTxnResponse,
)
END_JOINT_TXN = Method(
    TRANSACTIONS,
    "EndJointTxn",
    transactions.EndJointTxnRequest,
    transactions.EndJointTxnResponse,
)
DESCRIBE_TRANSACTIONS = Method(
    TRANSACTIONS,
    "DescribeTransactions",
    transactions.DescribeTransactionsRequest,
    transactions.DescribeTransactionsResponse,
)
LIST_TRANSACTIONS = Method(
    TRANSACTIONS,
    "ListTransactions",
    transactions.ListTransactionsRequest,
    transactions.ListTransactionsResponse,
)
LIST_TRANSACTION_HISTORY = Method(
    TRANSACTIONS,
    "ListTransactionHistory",
    history.ListTransactionHistoryRequest,
    history.ListTransactionHistoryResponse,
)
LIST_AUDIT = Method(TRANSACTIONS, "ListAudit", history.ListAuditRequest, history.ListAuditResponse)
NOTE_AUDIT = Method(TRANSACTIONS, "NoteAudit", history.NoteAuditRequest, history.NoteAuditResponse)
GET_TRANSACTION_OUTCOME = Method(
    TRANSACTIONS,
    "GetTransactionOutcome",
    outcomes.GetTransactionOutcomeRequest,
    outcomes.GetTransactionOutcomeResponse,
)
ABORT_TRANSACTION = Method(
    TRANSACTIONS,
    "AbortTransaction",
    outcomes.AbortTransactionRequest,
    outcomes.AbortTransactionResponse,
)
FENCE_PRODUCER = Method(
    TRANSACTIONS, "FenceProducer", outcomes.FenceProducerRequest, outcomes.FenceProducerResponse
)
HAND_OVER_TRANSACTIONS = Method(
    TRANSACTIONS,
    "HandOverTransactions",
    moves.HandOverTransactionsRequest,
    moves.HandOverTransactionsResponse,
)

METADATA = Method(CLUSTER, "Metadata", cluster.MetadataRequest, cluster.MetadataResponse)
FIND_COORDINATOR = Method(
    CLUSTER, "FindCoordinator", cluster.FindCoordinatorRequest, cluster.FindCoordinatorResponse
)
DESCRIBE_CLUSTER = Method(
    CLUSTER, "DescribeCluster", cluster.DescribeClusterRequest, cluster.DescribeClusterResponse
)
CREATE_TOPICS = Method(
    CLUSTER, "CreateTopics", cluster.CreateTopicsRequest, cluster.CreateTopicsResponse
)
DELETE_TOPICS = Method(
    CLUSTER, "DeleteTopics", cluster.DeleteTopicsRequest, cluster.DeleteTopicsResponse
)
CREATE_PARTITIONS = Method(
    CLUSTER, "CreatePartitions", cluster.CreatePartitionsRequest, cluster.CreatePartitionsResponse
)
DESCRIBE_CONFIGS = Method(
    CLUSTER, "DescribeConfigs", cluster.DescribeConfigsRequest, cluster.DescribeConfigsResponse
)
INCREMENTAL_ALTER_CONFIGS = Method(
    CLUSTER,
    "IncrementalAlterConfigs",
    cluster.IncrementalAlterConfigsRequest,
    cluster.IncrementalAlterConfigsResponse,
)
CREATE_ACLS = Method(CLUSTER, "CreateAcls", acls.CreateAclsRequest, acls.CreateAclsResponse)
DESCRIBE_ACLS = Method(CLUSTER, "DescribeAcls", acls.DescribeAclsRequest, acls.DescribeAclsResponse)
DELETE_ACLS = Method(CLUSTER, "DeleteAcls", acls.DeleteAclsRequest, acls.DeleteAclsResponse)
ALTER_CLIENT_QUOTAS = Method(
    CLUSTER,
    "AlterClientQuotas",
    quotas.AlterClientQuotasRequest,
    quotas.AlterClientQuotasResponse,
)
DESCRIBE_CLIENT_QUOTAS = Method(
    CLUSTER,
    "DescribeClientQuotas",
    quotas.DescribeClientQuotasRequest,
    quotas.DescribeClientQuotasResponse,
)
ALTER_PARTITION_REASSIGNMENTS = Method(
    CLUSTER,
    "AlterPartitionReassignments",
    moves.AlterPartitionReassignmentsRequest,
    moves.AlterPartitionReassignmentsResponse,
)
REBALANCE_PARTITIONS = Method(
    CLUSTER,
    "RebalancePartitions",
    moves.RebalancePartitionsRequest,
    moves.RebalancePartitionsResponse,
)
DECOMMISSION_INSTANCE = Method(
    CLUSTER,
    "DecommissionInstance",
    cluster.DecommissionInstanceRequest,
    cluster.DecommissionInstanceResponse,
)
COMPLETE_PARTITION_REASSIGNMENT = Method(
    CLUSTER,
    "CompletePartitionReassignment",
    moves.CompletePartitionReassignmentRequest,
    moves.CompletePartitionReassignmentResponse,
)
REGISTER_INSTANCE = Method(
    CLUSTER, "RegisterInstance", cluster.RegisterInstanceRequest, cluster.RegisterInstanceResponse
)

PRODUCE = Method(BROKER, "Produce", broker.ProduceRequest, broker.ProduceResponse, BROKER)
FETCH = Method(BROKER, "Fetch", broker.FetchRequest, broker.FetchResponse, BROKER)
LIST_OFFSETS = Method(BROKER, "ListOffsets", broker.ListOffsetsRequest, broker.ListOffsetsResponse)
DELETE_RECORDS = Method(
    BROKER, "DeleteRecords", broker.DeleteRecordsRequest, broker.DeleteRecordsResponse
)
DESCRIBE_PRODUCERS = Method(
    BROKER,
    "DescribeProducers",
    producers.DescribeProducersRequest,
    producers.DescribeProducersResponse,
)
DESCRIBE_WRITES = Method(
    BROKER, "DescribeWrites", producers.DescribeWritesRequest, producers.DescribeWritesResponse
)

COUNT_RECORDS = Method(
    BROKER, "CountRecords", broker.CountRecordsRequest, broker.CountRecordsResponse
)

COPY_LOG = Method(BROKER, "CopyLog", broker_moves.CopyLogRequest, broker_moves.CopyLogResponse)
HAND_OVER_LOG = Method(
    BROKER, "HandOverLog", broker_moves.HandOverLogRequest, broker_moves.HandOverLogResponse
)

HAND_OVER_GROUPS = Method(
    GROUP,
    "HandOverGroups",
    group_moves.HandOverGroupsRequest,
    group_moves.HandOverGroupsResponse,
)
CONSUMER_GROUP_HEARTBEAT = Method(
    GROUP,
    "ConsumerGroupHeartbeat",
    group.ConsumerGroupHeartbeatRequest,
    group.ConsumerGroupHeartbeatResponse,
)
COMMIT_OFFSETS = Method(
    GROUP, "CommitOffsets", group.CommitOffsetsRequest, group.CommitOffsetsResponse
)
FETCH_OFFSETS = Method(GROUP, "FetchOffsets", group.FetchOffsetsRequest, group.FetchOffsetsResponse)
TXN_OFFSET_COMMIT = Method(
    GROUP, "TxnOffsetCommit", group.TxnOffsetCommitRequest, group.TxnOffsetCommitResponse, GROUP
)
LIST_GROUPS = Method(GROUP, "ListGroups", group.ListGroupsRequest, group.ListGroupsResponse)
DESCRIBE_GROUPS = Method(
    GROUP, "DescribeGroups", group.DescribeGroupsRequest, group.DescribeGroupsResponse
)
DELETE_OFFSETS = Method(
    GROUP, "DeleteOffsets", group.DeleteOffsetsRequest, group.DeleteOffsetsResponse
)
DELETE_GROUPS = Method(GROUP, "DeleteGroups", group.DeleteGroupsRequest, group.DeleteGroupsResponse)

# One RPC of two services: the callee decides which stream carries it.
BROKER_WRITE_TXN_MARKERS = Method(
    PARTICIPANT,
    "WriteTxnMarkers",
    participants.WriteTxnMarkersRequest,
    participants.WriteTxnMarkersResponse,
    BROKER,
)
GROUP_WRITE_TXN_MARKERS = Method(
    PARTICIPANT,
    "WriteTxnMarkers",
    participants.WriteTxnMarkersRequest,
    participants.WriteTxnMarkersResponse,
    GROUP,
)
LIST_OPEN_TRANSACTIONS = Method(
    PARTICIPANT,
    "ListOpenTransactions",
    participants.ListOpenTransactionsRequest,
    participants.ListOpenTransactionsResponse,
)

# Of the transport, not of a service: answered by every server itself.
OPEN_FRAMES = Method(FRAMES, "OpenFrames", frames.OpenFramesRequest, frames.OpenFramesResponse)

NEVER_THROTTLED = frozenset(
    method.path
    for method in (
        ALTER_CLIENT_QUOTAS,
        DESCRIBE_CLIENT_QUOTAS,
        PREPARE_TXN,
        COMPLETE_PREPARED_TXN,
        END_TXN,
        END_JOINT_TXN,
        KEEP_ALIVE_TXN,
        GET_TRANSACTION_OUTCOME,
        ABORT_TRANSACTION,
        FENCE_PRODUCER,
        CONSUMER_GROUP_HEARTBEAT,
    )
)
"""What no quota holds back, by path: quotas can always be changed, transactions can always end, and
members stay in their groups. Such a call costs as any other, and delays the others of its user."""
