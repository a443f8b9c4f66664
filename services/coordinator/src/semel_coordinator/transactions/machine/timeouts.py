"""Time-outs of open transactions: ``transaction.timeout.ms`` from the first participant on.

State and epoch are those of the very step that decides, so no other transaction can be hit.
"""

from typing import NamedTuple

from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import TransactionKey
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.records import TransactionsRecord
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import AbortReason
from semel_coordinator.transactions.machine.step_size import StepBudget
from semel_runtime.machine import Result


class TimedOut(NamedTuple):
    """A transaction that a tick has aborted."""

    transactional_id: str
    key: TransactionKey


def time_out(
    state: TransactionsState, limits: TransactionLimits, ownership: Ownership, *, now_ms: int
) -> Result[tuple[TimedOut, ...], TransactionsRecord]:
    """Abort what is timed out and served here, as much as one step takes; answer what it was."""
    budget = StepBudget(limits)
    timed_out: list[TimedOut] = []
    records: list[TransactionsRecord] = []
    for producer_id, ongoing in state.ongoing.items():
        producer = state.producers[producer_id]
        known = state.transactional_ids.get(producer.transactional_id)
        if known is None:
            continue  # A writer of a joint transaction, which ends as a whole.
        if not ongoing.is_timed_out(known.timeout_ms, now_ms) or not ownership.serves(producer_id):
            continue
        if not budget.takes(transactions=1, participants=len(ongoing.participants)):
            break
        records += aborted(producer, ongoing, reason=AbortReason.TIMED_OUT, now_ms=now_ms)
        key = TransactionKey(producer_id, ongoing.producer_epoch)
        timed_out.append(TimedOut(producer.transactional_id, key))
    return Result(tuple(timed_out), records)
