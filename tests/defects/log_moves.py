"""Defects of moves of transactions: at both leaders, and in the state that they hand over."""

import pytest

from defects.defect import collector
from semel_coordinator.transactions.machine.moves import TransactionLogMoves
from semel_coordinator.transactions.machine.state.entities import DecidedTransaction
from semel_coordinator.transactions.machine.state.records import (
    EndedTransactionsKept,
    ParticipantsAdded,
    ProducerIdsGiven,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.moving.move_state import PartitionMove

DEFECTS, defect = collector()


def _left_out(patch: pytest.MonkeyPatch, kind: type[TransactionsRecord]) -> None:
    handed_over = TransactionLogMoves.handed_over

    def without(self: TransactionLogMoves, move: PartitionMove) -> tuple[TransactionsRecord, ...]:
        return tuple(each for each in handed_over(self, move) if not isinstance(each, kind))

    patch.setattr(TransactionLogMoves, "handed_over", without)


@defect("transactions-move-undelivered", "markers that are not delivered stay behind in a move")
def _undelivered(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, DecidedTransaction)


@defect("transactions-move-without-open", "the new coordinator knows no ongoing transaction")
def _ongoing(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, ParticipantsAdded)


@defect("history-does-not-move", "the new coordinator knows no ended transaction")
def _history(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, EndedTransactionsKept)


@defect("producer-ids-given-again", "the new coordinator gives out the same producer ids again")
def _given(patch: pytest.MonkeyPatch) -> None:
    _left_out(patch, ProducerIdsGiven)


@defect("transactions-served-after-move", "the old coordinator decides after its hand-over")
def _served(patch: pytest.MonkeyPatch) -> None:
    replay = TransactionsState.replay

    def forgetful(self: TransactionsState, offset: int, record: TransactionsRecord) -> None:
        replay(self, offset, record)
        if isinstance(record, TransactionLogHandedOver):
            del self.handed_over[record.partition]

    patch.setattr(TransactionsState, "replay", forgetful)


@defect("move-keeps-coordinator-epoch", "the new coordinator speaks under the old one's epoch")
def _keeps_epoch(patch: pytest.MonkeyPatch) -> None:
    def same(self: TransactionLogMoves, partition: int) -> TransactionLogServed:
        epoch = self._state.coordinator_epochs[partition]
        return TransactionLogServed(partition=partition, coordinator_epoch=epoch)

    patch.setattr(TransactionLogMoves, "_served", same)
