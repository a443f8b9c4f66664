"""The asyncio client of Semel: exactly-once transactions over gRPC.

Begin with ``SemelClient``: it makes producers, consumers and the admin client. ``aiosemel.errors``
has every error, in classes that say what to do.
"""

import logging

import semel_common.quiet_grpc  # noqa: F401 - before anything imports grpc

# isort: split
from aiosemel._admin.access_admin import AccessAdmin
from aiosemel._admin.admin import Admin
from aiosemel._admin.group_admin import GroupAdmin
from aiosemel._admin.move_admin import MoveAdmin
from aiosemel._admin.operator_admin import Operators
from aiosemel._admin.topic_admin import ConfigValue
from aiosemel._consumer.consumer import Consumer
from aiosemel._consumer.group.rebalance import RebalanceCallback
from aiosemel._consumer.log_ranges import LogRange, LogRangeReader
from aiosemel._database.database_client import (
    DatabaseClient,
    DatabaseHandler,
    DatabaseOnPoison,
    StoreHandler,
    StoreOnPoison,
)
from aiosemel._database.database_producer import DatabaseProducer
from aiosemel._joint.joint_transaction import JointOutcome, JointTransaction
from aiosemel._joint.joint_writer import JointWriter
from aiosemel._outbox.relay import Relay, RelayStats
from aiosemel._producer.batching.deliveries import (
    ColumnsDelivery,
    ColumnsMetadata,
    Delivery,
    RecordMetadata,
)
from aiosemel._producer.batching.record_sizes import Headers
from aiosemel._producer.pool.transaction_pool import TransactionPool
from aiosemel._producer.producer import Producer
from aiosemel._producer.transaction_block import Transaction
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._producer.transactions.transaction_states import TransactionOutcome
from aiosemel._shared.context import Clock
from aiosemel._transform.outputs import Outputs
from aiosemel._transform.transform import Transform
from aiosemel._transform.types import (
    Handler,
    OnEvent,
    OnPoison,
    RecordPoisoned,
    TransactionAborted,
    TransactionCommitted,
    TransformEvent,
    TransformOptions,
    TransformStats,
)
from aiosemel.client import SemelClient, SystemClock
from aiosemel.errors import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    AuthorizationError,
    BaseOffsetMismatchError,
    ClosedError,
    DatabaseAheadError,
    DatabaseBehindError,
    DatabaseSessionEndedError,
    DatabaseTablesError,
    DatabaseUnavailableError,
    IllegalStateError,
    IncompleteListError,
    InvalidRequestError,
    JointOutcomeUnknownError,
    JointOwnerMismatchError,
    NoFreeProducerError,
    NoOffsetForPartitionError,
    ProducerFencedError,
    RequestTimedOutError,
    RetriableError,
    SaslAuthenticationError,
    SemelError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from aiosemel.options.client_options import ClientOptions, Compression, ProducerOptions
from aiosemel.options.consumer_options import ConsumerOptions, IsolationLevel, OffsetReset
from aiosemel.options.pool_options import PoolOptions
from aiosemel.options.relay_options import RelayOptions
from aiosemel.types.access import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    ClientQuota,
    PatternType,
    ResourceType,
)
from aiosemel.types.after_restore import AfterRestore
from aiosemel.types.audit import AuditEntry, AuditLog
from aiosemel.types.batch_outcome import BatchOutcome
from aiosemel.types.batch_place import BatchPlace
from aiosemel.types.consumer_records import ColumnBatch, ConsumerRecord
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
    PartitionReassignment,
    PendingOffsets,
    ServiceRole,
    TopicDescription,
    TopicsDescription,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionListing,
    TransactionOrder,
    TransactionState,
)
from aiosemel.types.encoded_column import EncodedColumn
from aiosemel.types.joint_handle import JointHandle, JointReceipt
from aiosemel.types.offset_resets import OffsetChange, ResetTo, ShiftBy, ToOffset, ToTimestamp
from aiosemel.types.offsets import (
    ConsumerGroupMetadata,
    DeletedRecords,
    Lag,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
)
from aiosemel.types.open_transactions import (
    AbortedByOperator,
    FencedByOperator,
    OpenEpoch,
    OpenTransaction,
    OpenTransactions,
    PartitionProducers,
    PartitionWrites,
    ProducerDescription,
)
from aiosemel.types.prepared_transaction import PreparedTransactionId
from aiosemel.types.producer_record import ProducerRecord
from aiosemel.types.reader_standing import HoldingTransaction, ReaderCause, ReaderStanding
from aiosemel.types.transaction_history import (
    EndedParticipant,
    EndedTransaction,
    HistoryFilter,
    TransactionClient,
    TransactionHistory,
    TransactionOperator,
)
from aiosemel.types.transaction_outcomes import (
    AbortReason,
    KnownOutcome,
    NextStep,
    Resolution,
    TransactionOutcomeDescription,
)
from semel_common.record_batches.headers import HeaderPairs
from semel_common.wire.client_security import Security
from semel_common.wire.client_tokens import TokenSource

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "AbortReason",
    "AbortableTransactionError",
    "AbortedByOperator",
    "AccessAdmin",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermission",
    "Admin",
    "AfterRestore",
    "ApplicationRecoverableError",
    "AuditEntry",
    "AuditLog",
    "AuthorizationError",
    "BaseOffsetMismatchError",
    "BatchOutcome",
    "BatchPlace",
    "ClientOptions",
    "ClientQuota",
    "Clock",
    "ClosedError",
    "ClusterDescription",
    "ColumnBatch",
    "ColumnsDelivery",
    "ColumnsMetadata",
    "Compression",
    "ConfigDescription",
    "ConfigValue",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerOptions",
    "ConsumerRecord",
    "DatabaseAheadError",
    "DatabaseBehindError",
    "DatabaseClient",
    "DatabaseHandler",
    "DatabaseOnPoison",
    "DatabaseProducer",
    "DatabaseSessionEndedError",
    "DatabaseTablesError",
    "DatabaseUnavailableError",
    "DeletedRecords",
    "Delivery",
    "DiskShortage",
    "EncodedColumn",
    "EndedParticipant",
    "EndedTransaction",
    "FencedByOperator",
    "GroupAdmin",
    "GroupDescription",
    "GroupListing",
    "GroupState",
    "Handler",
    "HeaderPairs",
    "Headers",
    "HistoryFilter",
    "HoldingTransaction",
    "IllegalStateError",
    "IncompleteListError",
    "InstanceDescription",
    "InvalidRequestError",
    "IsolationLevel",
    "JointDescription",
    "JointHandle",
    "JointOutcome",
    "JointOutcomeUnknownError",
    "JointOwnerMismatchError",
    "JointReceipt",
    "JointTransaction",
    "JointWriter",
    "JointWriterDescription",
    "KnownOutcome",
    "Lag",
    "LogRange",
    "LogRangeReader",
    "MemberDescription",
    "MoveAdmin",
    "NextStep",
    "NoFreeProducerError",
    "NoOffsetForPartitionError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetChange",
    "OffsetReset",
    "OffsetSpec",
    "OnEvent",
    "OnPoison",
    "OpenEpoch",
    "OpenTransaction",
    "OpenTransactions",
    "Operators",
    "Outputs",
    "Participants",
    "PartitionDescription",
    "PartitionProducers",
    "PartitionReassignment",
    "PartitionWrites",
    "PatternType",
    "PendingOffsets",
    "PoolOptions",
    "PreparedTransactionId",
    "Producer",
    "ProducerDescription",
    "ProducerFencedError",
    "ProducerOptions",
    "ProducerRecord",
    "ReaderCause",
    "ReaderStanding",
    "RebalanceCallback",
    "RecordMetadata",
    "RecordPoisoned",
    "Relay",
    "RelayOptions",
    "RelayStats",
    "RequestTimedOutError",
    "ResetTo",
    "Resolution",
    "ResourceType",
    "RetriableError",
    "SaslAuthenticationError",
    "Security",
    "SemelClient",
    "SemelError",
    "ServiceRole",
    "ShiftBy",
    "StoreHandler",
    "StoreOnPoison",
    "SystemClock",
    "ToOffset",
    "ToTimestamp",
    "TokenSource",
    "TopicDescription",
    "TopicPartition",
    "TopicsDescription",
    "Transaction",
    "TransactionAborted",
    "TransactionAbortedError",
    "TransactionClient",
    "TransactionCommitted",
    "TransactionDescription",
    "TransactionHistory",
    "TransactionListing",
    "TransactionOperator",
    "TransactionOrder",
    "TransactionOutcome",
    "TransactionOutcomeDescription",
    "TransactionOutcomeUnknownError",
    "TransactionPool",
    "TransactionState",
    "TransactionalIdDescription",
    "TransactionalProducer",
    "Transform",
    "TransformEvent",
    "TransformOptions",
    "TransformStats",
]
