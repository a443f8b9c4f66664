"""The outcome of each batch, for readers that ask: open, committed, aborted, or of no transaction.

Invariant: a batch that is there, and that neither an open transaction nor the aborted index claims,
is committed. Compaction removes the batches of an aborted transaction before the index forgets it.
Only the marker may outlive both, and a marker says itself what it is.
"""

from semel_broker.machine.values import BatchOutcome, ReadPlan


def outcome_of_batch(
    plan: ReadPlan, producer_id: int, producer_epoch: int, offset: int
) -> BatchOutcome:
    """Return the outcome of the transaction that wrote the batch at an offset.

    An epoch may have been used before: a transaction has the batches from its first offset on.
    """
    assert plan.open_transactions is not None, "the plan was made for outcomes"
    open_transaction = plan.open_transactions.get((producer_id, producer_epoch))
    if open_transaction is not None and open_transaction.first_offset <= offset:
        return BatchOutcome.OPEN
    if plan.aborted.covers(producer_id, producer_epoch, offset):
        return BatchOutcome.ABORTED
    return BatchOutcome.COMMITTED


def outcome_of_marker(*, committed: bool) -> BatchOutcome:
    """Return the outcome that a marker tells."""
    return BatchOutcome.COMMITTED if committed else BatchOutcome.ABORTED
