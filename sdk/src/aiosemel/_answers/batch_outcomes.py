"""Outcomes of batches, as brokers tell them."""

from aiosemel.types.batch_outcome import BatchOutcome
from semel.broker.v1 import broker_pb2 as broker

BATCH_OUTCOMES: dict[int, BatchOutcome] = {
    broker.BATCH_OUTCOME_NOT_TRANSACTIONAL: BatchOutcome.NOT_TRANSACTIONAL,
    broker.BATCH_OUTCOME_OPEN: BatchOutcome.OPEN,
    broker.BATCH_OUTCOME_COMMITTED: BatchOutcome.COMMITTED,
    broker.BATCH_OUTCOME_ABORTED: BatchOutcome.ABORTED,
}
"""By the number that brokers answer."""
