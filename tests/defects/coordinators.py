"""Defects of the transaction coordinator."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from defects.defect import collector
from semel_coordinator.transactions.machine import (
    InitProducerId,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
    TransactionKey,
    TransactionsMachine,
)
from semel_coordinator.transactions.machine import init_producer_id as init_module
from semel_coordinator.transactions.machine import inquiry as inquiry_module
from semel_coordinator.transactions.machine import timeouts as timeouts_module
from semel_coordinator.transactions.machine import transactions_machine as machine_module
from semel_coordinator.transactions.machine.decisions import aborted
from semel_coordinator.transactions.machine.end_txn import (
    END_TXN_TABLE,
    EndTxnAnswer,
    EndTxnCell,
    EpochRow,
    commit_records,
)
from semel_coordinator.transactions.machine.state.entities import (
    DecidedTransaction,
    Producer,
    TransactionalId,
    in_order,
)
from semel_coordinator.transactions.machine.state.records import (
    TransactionCompleted,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_coordinator.transactions.machine.state.transitions import Outcome, TransactionState
from semel_runtime.machine import Result

DEFECTS, defect = collector()


@defect("zombie-told-the-epoch", "a zombie's abort is answered with its successor's epoch")
def _zombie(patch: pytest.MonkeyPatch) -> None:
    cell = EndTxnCell(EndTxnAnswer.PRODUCER_FENCED, EndTxnAnswer.SUCCESS)
    patch.setitem(END_TXN_TABLE, EpochRow.LAST_FENCED, cell)


@defect("empty-commit-keeps-epoch", "a commit of nothing leaves the epoch as it is")
def _empty_commit(patch: pytest.MonkeyPatch) -> None:
    end_txn = TransactionsMachine.end_txn

    def kept(
        self: TransactionsMachine, name: str, key: TransactionKey, **rest: Any
    ) -> Result[TransactionKey, TransactionsRecord]:
        result = end_txn(self, name, key, **rest)
        decided = any(isinstance(record, DecidedTransaction) for record in result.records)
        return Result(key) if rest["commit"] and result.records and not decided else result

    patch.setattr(TransactionsMachine, "end_txn", kept)


@defect("participants-dropped", "EndTxn forgets the last of the participants that are to commit")
def _participants(patch: pytest.MonkeyPatch) -> None:
    def dropped(*args: Any, **rest: Any) -> tuple[TransactionsRecord, ...]:
        return tuple(
            replace(commit_record, committing=in_order(list(commit_record.committing)[:-1]))
            if isinstance(commit_record, DecidedTransaction)
            else commit_record
            for commit_record in commit_records(*args, **rest)
        )

    patch.setattr(machine_module, "commit_records", dropped)


@defect(
    "forgotten-early", "a decision's participants are forgotten before their markers are written"
)
def _forgotten(patch: pytest.MonkeyPatch) -> None:
    def forgotten(*args: Any, **rest: Any) -> tuple[TransactionsRecord, ...]:
        records = commit_records(*args, **rest)
        completed = (
            TransactionCompleted(
                producer_id=record.producer_id,
                producer_epoch=record.producer_epoch,
                state=TransactionState.COMPLETE_COMMIT,
            )
            for record in records
            if isinstance(record, DecidedTransaction)
        )
        return (*records, *completed)

    patch.setattr(machine_module, "commit_records", forgotten)


@defect("ongoing-for-ever", "an inquiry is always answered ONGOING")
def _ongoing(patch: pytest.MonkeyPatch) -> None:
    def ongoing(
        _self: TransactionsMachine, inquiries: Sequence[Inquiry], *, now_ms: int
    ) -> Result[tuple[InquiryAnswer, ...], TransactionsRecord]:
        del now_ms
        answer = InquiryAnswer(outcome=InquiryOutcome.ONGOING, time_left_ms=1_000)
        return Result((answer,) * len(inquiries))

    patch.setattr(TransactionsMachine, "inquire_transactions", ongoing)


@defect("aborted-undecided", "an inquiry is answered ABORTED without a decision: the epoch goes on")
def _undecided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inquiry_module, "aborted", lambda *_, **__: ())


@defect("init-keeps-epoch", "InitProducerId of a new instance does not raise the epoch")
def _init(patch: pytest.MonkeyPatch) -> None:
    next_init = init_module.next_init

    def kept(
        state: TransactionsState, known: TransactionalId, call: InitProducerId, *, now_ms: int
    ) -> Result[TransactionKey, TransactionsRecord]:
        result = next_init(state, known, call, now_ms=now_ms)
        epoch = state.producers[known.producer_id].producer_epoch
        in_charge = [record for record in result.records if isinstance(record, TransactionalId)]
        return Result(
            TransactionKey(known.producer_id, epoch),
            tuple(replace(each, init_epoch=epoch) for each in in_charge),
        )

    patch.setattr(machine_module, "next_init", kept)


@defect("timed-out-keeps-epoch", "a time-out aborts a transaction and leaves the epoch as it is")
def _timed_out(patch: pytest.MonkeyPatch) -> None:
    def kept(*args: Any, **rest: Any) -> tuple[TransactionsRecord, ...]:
        return tuple(each for each in aborted(*args, **rest) if not isinstance(each, Producer))

    patch.setattr(timeouts_module, "aborted", kept)


@defect("replay-validates", "replay leaves out a decision whose producer it does not know yet")
def _replay(patch: pytest.MonkeyPatch) -> None:
    decide = TransactionsState._decide

    def validated(self: TransactionsState, record: DecidedTransaction) -> None:
        if record.producer_id in self.producers:
            decide(self, record)

    patch.setattr(TransactionsState, "_decide", validated)


@defect(
    "claim-keeps-epoch", "a new owner of transaction-log partitions keeps the coordinator epoch"
)
def _claim(patch: pytest.MonkeyPatch) -> None:
    claim = TransactionsMachine.claim

    def kept(self: TransactionsMachine) -> Result[int, TransactionsRecord]:
        result = claim(self)
        known = self._state.coordinator_epochs
        new = [
            record for record in result.records if getattr(record, "partition", None) not in known
        ]
        return Result(result.response, new)

    patch.setattr(TransactionsMachine, "claim", kept)


@defect("outcome-of-its-neighbour", "an epoch's outcome is told as that of the epoch before it")
def _neighbour(patch: pytest.MonkeyPatch) -> None:
    outcome_of = Producer.outcome_of

    def before(self: Producer, producer_epoch: int) -> Outcome | None:
        return outcome_of(self, max(0, producer_epoch - 1))

    patch.setattr(Producer, "outcome_of", before)
