"""Isolation levels of readers: for users, and for brokers."""

from enum import StrEnum

from semel.broker.v1 import broker_pb2 as broker


class IsolationLevel(StrEnum):
    """Which transactions a reader sees; Kafka's names."""

    READ_COMMITTED = "read_committed"
    """Records of committed transactions and of none, up to the last stable offset."""
    READ_UNCOMMITTED = "read_uncommitted"
    """Everything that is durable, whatever becomes of it."""


ISOLATION = {
    IsolationLevel.READ_COMMITTED: broker.ISOLATION_LEVEL_READ_COMMITTED,
    IsolationLevel.READ_UNCOMMITTED: broker.ISOLATION_LEVEL_READ_UNCOMMITTED,
}
