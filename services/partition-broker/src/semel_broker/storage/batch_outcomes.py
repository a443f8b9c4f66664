"""Outcomes of the batches of an answer, for readers that ask."""

import asyncio

from semel.broker.v1.broker_pb2 import FetchPartitionResult
from semel.common.v1.records_pb2 import ControlRecord, RecordBatch
from semel_broker.machine.batch_outcomes import outcome_of_batch, outcome_of_marker
from semel_broker.machine.values import BatchOutcome, ReadPlan
from semel_broker.storage.partition_reader import Turns


async def add_outcomes(result: FetchPartitionResult, plan: ReadPlan, turns: Turns) -> None:
    """Add the outcomes of the batches that were read by this plan, and have none yet."""
    for batch in result.batches[len(result.batch_outcomes) :]:
        result.batch_outcomes.append(_outcome(batch, plan).value)  # type: ignore[arg-type]  # same
        if turns.is_over():
            await asyncio.sleep(0)


def _outcome(batch: RecordBatch, plan: ReadPlan) -> BatchOutcome:
    if not batch.transactional:
        return BatchOutcome.NOT_TRANSACTIONAL
    if batch.control:
        return outcome_of_marker(committed=ControlRecord.FromString(batch.payload).committed)
    return outcome_of_batch(plan, batch.producer_id, batch.producer_epoch, batch.base_offset)
