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
from aiosemel.admin import Admin
from aiosemel.client import SemelClient, SystemClock
from aiosemel.consumer import Consumer
from aiosemel.consumer_options import ConsumerOptions, IsolationLevel, OffsetReset
from aiosemel.consumer_records import ColumnBatch, ConsumerRecord
from aiosemel.errors import (
    AbortableTransactionError,
    ApplicationRecoverableError,
    ClosedError,
    IllegalStateError,
    InvalidRequestError,
    ProducerFencedError,
    RequestTimedOutError,
    RetriableError,
    SemelError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from aiosemel.offsets import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from aiosemel.options import ClientOptions, Compression, ProducerOptions
from aiosemel.producer import Producer
from aiosemel.transaction import Transaction
from aiosemel.transactional_producer import TransactionalProducer
from aiosemel.transform import Transform
from aiosemel.transform_types import TransformOptions

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "AbortableTransactionError",
    "Admin",
    "ApplicationRecoverableError",
    "ClientOptions",
    "Clock",
    "ClosedError",
    "ColumnBatch",
    "ColumnsDelivery",
    "ColumnsMetadata",
    "Compression",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerOptions",
    "ConsumerRecord",
    "Delivery",
    "Headers",
    "IllegalStateError",
    "InvalidRequestError",
    "IsolationLevel",
    "OffsetAndMetadata",
    "OffsetReset",
    "Producer",
    "ProducerFencedError",
    "ProducerOptions",
    "RecordMetadata",
    "RequestTimedOutError",
    "RetriableError",
    "SemelClient",
    "SemelError",
    "SystemClock",
    "TopicPartition",
    "Transaction",
    "TransactionAbortedError",
    "TransactionOutcome",
    "TransactionOutcomeUnknownError",
    "TransactionalProducer",
    "Transform",
    "TransformOptions",
]
