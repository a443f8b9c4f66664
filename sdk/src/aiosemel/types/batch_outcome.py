"""What has become of a batch: for users, and from brokers."""

from enum import StrEnum

from semel.broker.v1 import broker_pb2 as broker


class BatchOutcome(StrEnum):
    """What has become of a batch and of the transaction that wrote it."""

    NOT_TRANSACTIONAL = "not_transactional"
    """No transaction wrote it."""
    OPEN = "open"
    """Its transaction may still commit or abort."""
    COMMITTED = "committed"
    """Readers of committed records see it once it is below the last stable offset."""
    ABORTED = "aborted"


BATCH_OUTCOMES: dict[int, BatchOutcome] = {
    broker.BATCH_OUTCOME_NOT_TRANSACTIONAL: BatchOutcome.NOT_TRANSACTIONAL,
    broker.BATCH_OUTCOME_OPEN: BatchOutcome.OPEN,
    broker.BATCH_OUTCOME_COMMITTED: BatchOutcome.COMMITTED,
    broker.BATCH_OUTCOME_ABORTED: BatchOutcome.ABORTED,
}
"""By the number that brokers answer."""
