"""How much each field of a request may hold: the one table for all services.

``request_scan`` holds the bytes of a large message against it before any object is made; services
take their limits from the same constants, and check what depends on the request. A test finds a
field that the table does not name.
"""

from semel_common.wire.messages.message_scan import Bound

MESSAGE_SIZE_MAX_BYTES = 17 << 20
"""The largest request that a service takes by default. A batch of the largest max.message.bytes
fits in; 16 requests at once, with all that is made of them, fit into a pod of 1 GiB."""

FRAMES_MAX = 16_384
"""Frames in one message of a stream."""
FIELDS_MAX = 500_000
"""Fields in one message, counted wherever they stand: the largest commit of offsets has 400,000."""

NAME_LENGTH_MAX = 255
"""Characters of a name or an id."""
TOPIC_NAME_LENGTH_MAX = 249
ID_LENGTH_MAX = 64
"""Characters of an id that the cluster makes."""
INSTANCE_ID_LENGTH_MAX = 128
"""Characters of the id of a producer object: a name of its client, and chance."""
TRACEPARENT_LENGTH_MAX = 64
"""W3C's version 00 has 55 characters."""
OPERATOR_LENGTH_MAX = 1_000
HOST_LENGTH_MAX = 253
FOLDER_LENGTH_MAX = 4_096
PATTERN_LENGTH_MAX = 255
PAGE_TOKEN_LENGTH_MAX = 8_192
"""Characters of the key at which a page of a list begins."""

NAMES_MAX = 1_000
"""Topics, topic ids, keys, users or rules in one request to the controller."""
FILTERS_MAX = 100
"""Filters of access rules in one request: each of them is held against each rule."""
LISTENERS_MAX = 8
CLAIMS_MAX = 256
"""Claims of a journal that its instance keeps, and shows at its registration."""
REASSIGNMENTS_MAX = 10_000
"""Partitions in one request to move them: as many as a topic may have."""
PARTICIPANTS_MAX = 10_000
"""Partitions and groups of one transaction."""
JOINT_WRITERS_MAX = 10_000
INQUIRIES_MAX = 10_000
TRANSACTIONS_DESCRIBED_MAX = 1_000
STATES_MAX = 16
PRODUCER_IDS_MAX = 10_000
MARKERS_MAX = 10_000
PRODUCED_PARTITIONS_MAX = 1_000
BATCHES_MAX = 1_000
PLAIN_RECORDS_MAX = 10_000
"""Each of them is handled by itself, and meanwhile no other caller is served."""
PLAIN_HEADERS_MAX = 100_000
"""Headers of all plain records in one request."""
FETCHED_PARTITIONS_MAX = 10_000
ASKED_PARTITIONS_MAX = 10_000
"""Partitions in one other request to a broker."""
DESCRIBED_PARTITIONS_MAX = 100
"""Each with up to 1,000 producers in the answer."""
SUBSCRIPTION_MAX = 1_000
AUDIT_ACTIONS_MAX = 100
"""Names of RPCs in one request for the audit."""
AUDIT_WHAT_MAX = 1_001
"""Characters of a request in an entry of the audit."""
GROUPS_MAX = 10_000
OFFSETS_MAX = 100_000
"""Partitions in one request to a group coordinator."""
ABORTED_PARTICIPANTS_MAX = 100_000
"""Participants on the wire: an abort may name more than a transaction keeps, and they are left
out."""

_BYTES_OF_CHARACTER = 4
"""The most that a character takes in UTF-8."""


def _text(length_max: int, count_max: int = 1) -> Bound:
    return Bound(count_max, _BYTES_OF_CHARACTER * length_max)


_MANY = 1_000_000
"""A field that is there once in each entry of another one: that other field's bound counts."""
_NAME = _text(NAME_LENGTH_MAX, _MANY)
_TOPIC = _text(TOPIC_NAME_LENGTH_MAX, _MANY)
_ID = _text(ID_LENGTH_MAX, _MANY)
_PAGE_TOKEN = _text(PAGE_TOKEN_LENGTH_MAX)
CONTENT = Bound(_MANY)
"""Users' bytes, which the size of the message bounds."""

_TRANSACTIONS = {
    "InitProducerIdRequest.transactional_id": _NAME,
    "InitProducerIdRequest.instance_id": _text(INSTANCE_ID_LENGTH_MAX, _MANY),
    "AddPartitionsToTxnRequest.transactional_id": _NAME,
    "AddPartitionsToTxnRequest.topics": Bound(PARTICIPANTS_MAX),
    "AddOffsetsToTxnRequest.transactional_id": _NAME,
    "AddOffsetsToTxnRequest.group_id": _NAME,
    "EndTxnRequest.transactional_id": _NAME,
    "PrepareTxnRequest.transactional_id": _NAME,
    "CompletePreparedTxnRequest.transactional_id": _NAME,
    "InquireTransactionsRequest.cluster_id": _ID,
    "InquireTransactionsRequest.inquiries": Bound(INQUIRIES_MAX),
    "InquireTransactionsRequest.fences": Bound(INQUIRIES_MAX),
    "JointTransaction.transactional_id": _NAME,
    "JointTransaction.owner": _NAME,
    "JointTransaction.run": _NAME,
    "JoinTxnRequest.writer": _NAME,
    "EndJointTxnRequest.writers": Bound(JOINT_WRITERS_MAX),
    "EndJointTxnRequest.end_id": _NAME,
    "DescribeTransactionsRequest.transactional_ids": _text(
        NAME_LENGTH_MAX, TRANSACTIONS_DESCRIBED_MAX
    ),
    "ListTransactionsRequest.behind": _PAGE_TOKEN,
    "ListTransactionsRequest.page_token": _PAGE_TOKEN,
    "ListTransactionsRequest.states": Bound(STATES_MAX),
    "ListTransactionsRequest.producer_ids": Bound(PRODUCER_IDS_MAX),
    "ListTransactionsRequest.transactional_id_pattern": _text(PATTERN_LENGTH_MAX),
    "ListTransactionHistoryRequest.abort_reasons": Bound(STATES_MAX),
    "ListTransactionHistoryRequest.transactional_id": _NAME,
    "ListTransactionHistoryRequest.transactional_id_prefix": _NAME,
    "ListTransactionHistoryRequest.topic_id": _ID,
    "ListTransactionHistoryRequest.group_id": _NAME,
    "ListTransactionHistoryRequest.behind": _PAGE_TOKEN,
    "ListTransactionHistoryRequest.page_token": _PAGE_TOKEN,
    "ListAuditRequest.actions": _text(NAME_LENGTH_MAX, AUDIT_ACTIONS_MAX),
    "ListAuditRequest.principal": _NAME,
    "ListAuditRequest.address": _NAME,
    "ListAuditRequest.behind": _PAGE_TOKEN,
    "ListAuditRequest.page_token": _PAGE_TOKEN,
    "NoteAuditRequest.action": _NAME,
    "NoteAuditRequest.what": _text(AUDIT_WHAT_MAX),
    "NoteAuditRequest.principal": _text(AUDIT_WHAT_MAX),
    "NoteAuditRequest.address": _NAME,
    "NoteAuditRequest.operator": _text(AUDIT_WHAT_MAX),
    "NoteAuditRequest.reason": _text(AUDIT_WHAT_MAX),
    "NoteAuditRequest.end": _NAME,
    "GetTransactionOutcomeRequest.transactional_id": _NAME,
    "AbortTransactionRequest.transactional_id": _NAME,
    "Operator.name": _text(OPERATOR_LENGTH_MAX),
    "Operator.reason": _text(OPERATOR_LENGTH_MAX),
    "FenceProducerRequest.transactional_id": _NAME,
    "FenceProducerRequest.instance_id": _ID,
}

_CLUSTER = {
    "MetadataRequest.page_token": _PAGE_TOKEN,
    "DescribeAclsRequest.page_token": _PAGE_TOKEN,
    "DescribeClientQuotasRequest.page_token": _PAGE_TOKEN,
    "MetadataRequest.topics": _text(TOPIC_NAME_LENGTH_MAX, NAMES_MAX),
    "MetadataRequest.topic_ids": _text(ID_LENGTH_MAX, NAMES_MAX),
    "FindCoordinatorRequest.keys": _text(NAME_LENGTH_MAX, NAMES_MAX),
    "CreateTopicsRequest.topics": Bound(NAMES_MAX),
    "NewTopic.name": _TOPIC,
    "NewTopic.configs": Bound(NAMES_MAX),
    "NewTopic.ConfigsEntry.key": _NAME,
    "NewTopic.ConfigsEntry.value": _NAME,
    "DeleteTopicsRequest.topics": _text(TOPIC_NAME_LENGTH_MAX, NAMES_MAX),
    "DeleteTopicsRequest.topic_ids": _text(ID_LENGTH_MAX, NAMES_MAX),
    "CreatePartitionsRequest.topics": Bound(NAMES_MAX),
    "MorePartitions.name": _TOPIC,
    "DescribeConfigsRequest.topics": _text(TOPIC_NAME_LENGTH_MAX, NAMES_MAX),
    "DescribeConfigsRequest.keys": _text(NAME_LENGTH_MAX, NAMES_MAX),
    "IncrementalAlterConfigsRequest.topics": Bound(NAMES_MAX),
    "TopicConfigChange.name": _TOPIC,
    "TopicConfigChange.set": Bound(NAMES_MAX),
    "TopicConfigChange.SetEntry.key": _NAME,
    "TopicConfigChange.SetEntry.value": _NAME,
    "TopicConfigChange.reset": _text(NAME_LENGTH_MAX, NAMES_MAX),
    "CreateAclsRequest.acls": Bound(NAMES_MAX),
    "AclBinding.resource_name": _NAME,
    "AclBinding.principal": _NAME,
    "AclFilter.resource_name": _NAME,
    "AclFilter.principal": _NAME,
    "DeleteAclsRequest.filters": Bound(FILTERS_MAX),
    "AlterClientQuotasRequest.changes": Bound(NAMES_MAX),
    "ClientQuotaChange.user": _NAME,
    "ClientQuotaChange.set": Bound(NAMES_MAX),
    "ClientQuotaChange.SetEntry.key": _NAME,
    "ClientQuotaChange.remove": _text(NAME_LENGTH_MAX, NAMES_MAX),
    "DescribeClientQuotasRequest.users": _text(NAME_LENGTH_MAX, NAMES_MAX),
    "AlterPartitionReassignmentsRequest.partitions": Bound(REASSIGNMENTS_MAX),
    "PartitionReassignment.topic": _TOPIC,
    "CompletePartitionReassignmentRequest.topic_id": _ID,
    "RegisterInstanceRequest.cluster_id": _ID,
    "RegisterInstanceRequest.claim_token": _ID,
    "RegisterInstanceRequest.listeners": Bound(LISTENERS_MAX),
    "RegisterInstanceRequest.claims": Bound(CLAIMS_MAX),
    "DiskShortage.folder": _text(FOLDER_LENGTH_MAX),
    "JournalClaim.claim_token": _ID,
    "JournalMark.claim_token": _ID,
    "AdvertisedListener.name": _ID,
    "AdvertisedListener.host": _text(HOST_LENGTH_MAX, LISTENERS_MAX),
}

_BROKER = {
    "ProduceRequest.transactional_id": _NAME,
    "ProduceRequest.partitions": Bound(PRODUCED_PARTITIONS_MAX),
    "ProduceRequest.producer_token": _NAME,
    "ProducePartition.topic": _TOPIC,
    "ProducePartition.topic_id": _ID,
    "ProducePartition.batches": Bound(BATCHES_MAX),
    "PlainRecords.records": Bound(PLAIN_RECORDS_MAX),
    "FetchRequest.partitions": Bound(FETCHED_PARTITIONS_MAX),
    "FetchPartition.topic": _TOPIC,
    "FetchPartition.topic_id": _ID,
    "ListOffsetsRequest.partitions": Bound(ASKED_PARTITIONS_MAX),
    "ListOffsetsPartition.topic": _TOPIC,
    "ListOffsetsPartition.topic_id": _ID,
    "DeleteRecordsRequest.partitions": Bound(ASKED_PARTITIONS_MAX),
    "DeleteRecordsPartition.topic": _TOPIC,
    "DeleteRecordsPartition.topic_id": _ID,
    "DescribeProducersRequest.partitions": Bound(DESCRIBED_PARTITIONS_MAX),
    "DescribeProducersRequest.page_token": _PAGE_TOKEN,
    "DescribeWritesRequest.partitions": Bound(ASKED_PARTITIONS_MAX),
    "DescribeWritesPartition.topic": _TOPIC,
    "DescribeWritesPartition.topic_id": _ID,
    "CountRecordsRequest.partitions": Bound(ASKED_PARTITIONS_MAX),
    "CountRecordsPartition.topic": _TOPIC,
    "CountRecordsPartition.topic_id": _ID,
    "CopyLogRequest.topic_id": _ID,
    "HandOverLogRequest.topic_id": _ID,
}

_GROUP = {
    "FetchOffsetsRequest.page_token": _PAGE_TOKEN,
    "ListGroupsRequest.page_token": _PAGE_TOKEN,
    "ConsumerGroupHeartbeatRequest.group_id": _NAME,
    "ConsumerGroupHeartbeatRequest.member_id": _NAME,
    "ConsumerGroupHeartbeatRequest.server_assignor": _NAME,
    "ConsumerGroupHeartbeatRequest.instance_id": _NAME,
    "Subscription.topics": _text(TOPIC_NAME_LENGTH_MAX, SUBSCRIPTION_MAX),
    "OwnedPartitions.topics": Bound(OFFSETS_MAX),
    "CommitOffsetsRequest.group_id": _NAME,
    "CommitOffsetsRequest.member_id": _NAME,
    "CommitOffsetsRequest.topics": Bound(OFFSETS_MAX),
    "OffsetCommitTopic.topic": _TOPIC,
    "OffsetCommitTopic.topic_id": _ID,
    "OffsetCommitTopic.partitions": Bound(OFFSETS_MAX),
    "OffsetCommitPartition.metadata": CONTENT,
    "FetchOffsetsRequest.group_id": _NAME,
    "FetchOffsetsRequest.member_id": _NAME,
    "FetchOffsetsRequest.topics": Bound(OFFSETS_MAX),
    "OffsetFetchTopic.topic": _TOPIC,
    "OffsetFetchTopic.topic_id": _ID,
    "OffsetFetchTopic.partitions": Bound(OFFSETS_MAX),
    "TxnOffsetCommitRequest.transactional_id": _NAME,
    "TxnOffsetCommitRequest.group_id": _NAME,
    "TxnOffsetCommitRequest.member_id": _NAME,
    "TxnOffsetCommitRequest.topics": Bound(OFFSETS_MAX),
    "TxnOffsetCommitRequest.producer_token": _NAME,
    "ListGroupsRequest.states": Bound(STATES_MAX),
    "DescribeGroupsRequest.group_ids": _text(NAME_LENGTH_MAX, GROUPS_MAX),
    "DeleteGroupsRequest.group_ids": _text(NAME_LENGTH_MAX, GROUPS_MAX),
    "DeleteOffsetsRequest.group_id": _NAME,
    "DeleteOffsetsRequest.topics": Bound(OFFSETS_MAX),
}

_COMMON = {
    "TopicPartitions.topic_id": _ID,
    "TopicPartitions.topic": _TOPIC,
    "ListOpenTransactionsRequest.page_token": _PAGE_TOKEN,
    "TopicPartitions.partitions": Bound(OFFSETS_MAX),
    "TopicPartition.topic_id": _ID,
    "Participant.group_id": _NAME,
    "Participants.topics": Bound(ABORTED_PARTICIPANTS_MAX),
    "Participants.group_ids": _text(NAME_LENGTH_MAX, ABORTED_PARTICIPANTS_MAX),
    "WriteTxnMarkersRequest.cluster_id": _ID,
    "WriteTxnMarkersRequest.markers": Bound(MARKERS_MAX),
    "TxnMarker.traceparent": _text(TRACEPARENT_LENGTH_MAX, MARKERS_MAX),
    "RecordBatch.payload": CONTENT,
    "Record.key": CONTENT,
    "Record.value": CONTENT,
    "Record.headers": Bound(PLAIN_HEADERS_MAX),
    "Header.key": CONTENT,
    "Header.value": CONTENT,
    "OpenFramesRequest.service": _NAME,
}

BOUNDS: dict[str, Bound] = {
    f"semel.{package}.v1.{field}": bound
    for package, fields in (
        ("coordinator", _TRANSACTIONS | _CLUSTER),
        ("broker", _BROKER),
        ("group", _GROUP),
        ("common", _COMMON),
    )
    for field, bound in fields.items()
} | {
    f"semel.{package}.v1.RequestFrame.traceparent": _text(TRACEPARENT_LENGTH_MAX * 4)
    for package in ("coordinator", "broker", "group")
}
"""By the full name of the field."""
