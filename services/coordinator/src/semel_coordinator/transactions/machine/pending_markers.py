"""The transactions that wait for markers, and the step that notes that all are written.

Markers are no effect of a decision: a decided transaction that is not complete has
markers to be sent, also after a restart.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice

from semel_common.ids import Participant
from semel_coordinator.transactions.machine.history.ended_transaction import PARTICIPANTS_KEPT
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.entities import DecidedTransaction, TransactionKey
from semel_coordinator.transactions.machine.state.records import (
    TransactionCompleted,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import COMPLETED
from semel_runtime.machine import Result

_NOTHING: Mapping[TransactionKey, Mapping[Participant, int]] = {}


class PendingMarkers:
    """A part of the transactions' machine, over its state."""

    def __init__(self, state: TransactionsState, ownership: Ownership) -> None:
        """Answer for the state as it is at each call."""
        self._state = state
        self._ownership = ownership

    def serving(self) -> dict[int, int]:
        """Return the coordinator epochs of the partitions that are served here."""
        epochs = self._state.coordinator_epochs
        return {
            partition: epochs[partition]
            for partition in self._ownership.partitions()
            if partition in epochs
        }

    def pending(self) -> list[DecidedTransaction]:
        """Return the transactions whose markers are not all written, as they were decided."""
        decided = self._state.decided.values()
        return [txn for txn in decided if self._ownership.serves(txn.producer_id)]

    def is_complete(self, key: TransactionKey) -> bool:
        """Whether a transaction waits for no marker. Raises NotCoordinatorError."""
        self._ownership.check_producer_id(key.producer_id)
        return key not in self._state.decided

    def is_complete_below(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether no transaction of a producer before an epoch waits for a marker.

        Raises NotCoordinatorError.
        """
        self._ownership.check_producer_id(producer_id)
        return self._state.is_complete_below(producer_id, producer_epoch)

    def complete_txn(
        self,
        keys: Sequence[TransactionKey],
        *,
        earlier_ms: Mapping[TransactionKey, Mapping[Participant, int]] = _NOTHING,
        now_ms: int,
    ) -> Result[None, TransactionsRecord]:
        """Note that all markers of these transactions are acknowledged. Idempotent.

        ``earlier_ms``: for how long those of some participants have been, in milliseconds.
        Handed-over transactions are left out: their new server asks once more, and notes it.
        """
        decided = self._state.decided
        records = [
            TransactionCompleted(
                producer_id=key.producer_id,
                producer_epoch=key.producer_epoch,
                state=COMPLETED[decided[key].state],
                completed_ms=now_ms,
                acknowledged_before_ms=_earlier(decided[key], earlier_ms.get(key)),
            )
            for key in dict.fromkeys(keys)
            if key in decided and self._ownership.serves(key.producer_id)
        ]
        return Result(None, records)


def _earlier(
    decided: DecidedTransaction, earlier_ms: Mapping[Participant, int] | None
) -> tuple[int, ...]:
    """Return how much earlier each of the first participants had its marker than the last one."""
    if earlier_ms is None:
        return ()
    those = islice(chain(decided.committing, decided.aborting), PARTICIPANTS_KEPT)
    return tuple(earlier_ms.get(each, 0) for each in those)
