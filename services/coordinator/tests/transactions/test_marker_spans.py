"""Which transactions a coordinator keeps for their spans."""

from opentelemetry.trace import NoOpTracer

from semel_common.ids import producer_id_of
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    TransactionKey,
    TransactionState,
)
from semel_coordinator.transactions.machine.state.entities import NOBODY
from semel_coordinator.transactions.markers.spans import MarkerSpans

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DROPPED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
HERE, GONE = 3, 4


def decided(partition: int, traceparent: str) -> DecidedTransaction:
    return DecidedTransaction(
        producer_id=producer_id_of(partition, 1),
        producer_epoch=0,
        state=TransactionState.PREPARE_COMMIT,
        start_ms=0,
        committing=NOBODY,
        aborting=NOBODY,
        reason=None,
        traceparent=traceparent,
    )


def test_only_what_is_recorded_is_kept_until_its_partition_leaves() -> None:
    spans = MarkerSpans(NoOpTracer())
    for each in (decided(HERE, SAMPLED), decided(GONE, SAMPLED), decided(HERE + 2, DROPPED)):
        spans.decided(each)
    assert {key.producer_id for key in spans.pending} == {
        producer_id_of(HERE, 1),
        producer_id_of(GONE, 1),
    }
    spans.left(GONE)
    assert list(spans.pending) == [TransactionKey(producer_id_of(HERE, 1), 0)]
