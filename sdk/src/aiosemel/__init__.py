"""The asyncio client of Semel: exactly-once transactions over gRPC.

Begin with ``SemelClient``: it makes producers, consumers and the admin client. ``aiosemel.errors``
has every error, in classes that say what to do.
"""

import logging

from aiosemel._context import Clock
from aiosemel._producer.deliveries import (
    ColumnsDelivery,
    ColumnsMetadata,
    Delivery,
    RecordMetadata,
)
from aiosemel._producer.sizes import Headers
from aiosemel._producer.transaction_states import TransactionOutcome
from aiosemel._rebalance import RebalanceCallback
from aiosemel.access import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    ClientQuota,
    PatternType,
    ResourceType,
)
from aiosemel.access_admin import AccessAdmin
from aiosemel.admin import Admin, ConfigValue
from aiosemel.batch_place import BatchPlace
from aiosemel.client import SemelClient, SystemClock
from aiosemel.consumer import Consumer
from aiosemel.consumer_options import ConsumerOptions, IsolationLevel, OffsetReset
from aiosemel.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.descriptions import (
    ClusterDescription,
    ConfigDescription,
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
    TransactionState,
)
from aiosemel.encoded_column import EncodedColumn
from aiosemel.errors import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    AuthorizationError,
    BaseOffsetMismatchError,
    ClosedError,
    IllegalStateError,
    InvalidRequestError,
    JointOutcomeUnknownError,
    JointOwnerMismatchError,
    NoOffsetForPartitionError,
    ProducerFencedError,
    RequestTimedOutError,
    RetriableError,
    SaslAuthenticationError,
    SemelError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from aiosemel.group_admin import GroupAdmin
from aiosemel.joint_handle import JointHandle, JointReceipt
from aiosemel.joint_transaction import JointOutcome, JointTransaction
from aiosemel.joint_writer import JointWriter
from aiosemel.log_ranges import LogRange, LogRangeReader
from aiosemel.move_admin import MoveAdmin
from aiosemel.offset_resets import OffsetChange, ResetTo, ShiftBy, ToOffset, ToTimestamp
from aiosemel.offsets import (
    ConsumerGroupMetadata,
    DeletedRecords,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
)
from aiosemel.operator_admin import Operators
from aiosemel.operators import (
    AbortedByOperator,
    FencedByOperator,
    OpenEpoch,
    OpenTransaction,
    OpenTransactions,
    PartitionProducers,
    ProducerDescription,
)
from aiosemel.options import ClientOptions, Compression, ProducerOptions
from aiosemel.outcomes import (
    AbortReason,
    KnownOutcome,
    NextStep,
    Resolution,
    TransactionOutcomeDescription,
)
from aiosemel.prepared import PreparedTransactionId
from aiosemel.producer import Producer
from aiosemel.transaction import Transaction
from aiosemel.transactional_producer import TransactionalProducer
from aiosemel.transform import Transform
from aiosemel.transform_types import (
    Handler,
    OnEvent,
    OnPoison,
    OutputRecord,
    Outputs,
    RecordPoisoned,
    TransactionAborted,
    TransactionCommitted,
    TransformEvent,
    TransformOptions,
    TransformStats,
)
from semel_common.headers import HeaderPairs
from semel_common.wire.security import Security, TokenSource

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
    "ApplicationRecoverableError",
    "AuthorizationError",
    "BaseOffsetMismatchError",
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
    "DeletedRecords",
    "Delivery",
    "EncodedColumn",
    "FencedByOperator",
    "GroupAdmin",
    "GroupDescription",
    "GroupListing",
    "GroupState",
    "Handler",
    "HeaderPairs",
    "Headers",
    "IllegalStateError",
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
    "LogRange",
    "LogRangeReader",
    "MemberDescription",
    "MoveAdmin",
    "NextStep",
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
    "OutputRecord",
    "Outputs",
    "Participants",
    "PartitionDescription",
    "PartitionProducers",
    "PartitionReassignment",
    "PatternType",
    "PendingOffsets",
    "PreparedTransactionId",
    "Producer",
    "ProducerDescription",
    "ProducerFencedError",
    "ProducerOptions",
    "RebalanceCallback",
    "RecordMetadata",
    "RecordPoisoned",
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
    "TransactionCommitted",
    "TransactionDescription",
    "TransactionListing",
    "TransactionOutcome",
    "TransactionOutcomeDescription",
    "TransactionOutcomeUnknownError",
    "TransactionState",
    "TransactionalIdDescription",
    "TransactionalProducer",
    "Transform",
    "TransformEvent",
    "TransformOptions",
    "TransformStats",
]
