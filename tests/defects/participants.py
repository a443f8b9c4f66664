"""Defects of participants, brokers and groups, and of the runner beneath them."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from defects.defect import collector
from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.loops import inquiry as inquiry_module
from semel_broker.machine.log import sequence_checks as broker_sequences
from semel_broker.machine.log.aborted_index import AbortedIndex
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.markers import MarkerRecord, OutcomeDecisions
from semel_broker.machine.records import (
    BatchAppended,
    LogRecord,
    LogState,
    OpenTransaction,
    ProducerFenced,
    ProducerState,
    Record,
)
from semel_broker.machine.values import Outcome
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_common.record_batches.sequence_numbers import next_sequence
from semel_group.machine import offset_commits as commits_module
from semel_group.machine.committed_offsets import CommittedOffsets
from semel_group.machine.offsets import offsets_machine as offsets_module
from semel_group.machine.offsets import producer as offsets_producer
from semel_group.machine.offsets import state as offsets_state
from semel_group.machine.offsets.offsets_machine import OffsetsMachine
from semel_group.machine.offsets.state import GroupOffsets
from semel_group.machine.records import OffsetCommitted
from semel_group.machine.values import Transaction
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochCheck
from semel_runtime.participant.inquiry import InquiryAnswer
from semel_runtime.participant.producer_state import check_epoch
from semel_runtime.runner import Runner

DEFECTS, defect = collector()


# -- brokers -------------------------------------------------------------------------------------


@defect("lso-off-by-one", "the last stable offset lets the first record of an open transaction by")
def _lso(patch: pytest.MonkeyPatch) -> None:
    def stable(self: PartitionLog) -> int:
        for open_transaction in self.open_transactions.values():
            return open_transaction.first_offset + 1
        return self.log_end_offset

    patch.setattr(PartitionLog, "last_stable_offset", property(stable))


@defect("marker-of-any-epoch", "a marker closes any open transaction of its producer")
def _any_epoch(patch: pytest.MonkeyPatch) -> None:
    decide = OutcomeDecisions._decide

    def closed(
        self: OutcomeDecisions, log: PartitionLog, outcome: Outcome
    ) -> Iterator[MarkerRecord]:
        for epoch in self._producer(log, outcome.producer_id).open_epochs[:1]:
            return decide(self, log, replace(outcome, producer_epoch=epoch))
        return decide(self, log, outcome)

    patch.setattr(OutcomeDecisions, "_decide", closed)


@defect(
    "inquiry-without-fence", "the answer to an inquiry closes a transaction, but raises no fence"
)
def _unfenced(patch: pytest.MonkeyPatch) -> None:
    def closed(answer: InquiryAnswer[TopicPartition]) -> Outcome:
        outcome = as_outcome(answer)
        return replace(outcome, current_epoch=outcome.producer_epoch)

    as_outcome = inquiry_module._outcome
    patch.setattr(inquiry_module, "_outcome", closed)


@defect("marker-without-fence", "a marker for a transaction that is not open here raises no fence")
def _no_fence(patch: pytest.MonkeyPatch) -> None:
    decide = OutcomeDecisions._decide

    def closed(
        self: OutcomeDecisions, log: PartitionLog, outcome: Outcome
    ) -> Iterator[MarkerRecord]:
        return (each for each in decide(self, log, outcome) if not isinstance(each, ProducerFenced))

    patch.setattr(OutcomeDecisions, "_decide", closed)


@defect("fence-in-memory", "the fence is not written to disk, and forgotten at a restart")
def _volatile_fence(patch: pytest.MonkeyPatch) -> None:
    encode = BrokerSerde.encode

    def without_fence(self: BrokerSerde, record: Record) -> bytes:
        return encode(
            self, replace(record, fence=0) if isinstance(record, ProducerFenced) else record
        )

    patch.setattr(BrokerSerde, "encode", without_fence)


@defect("older-epoch-taken", "a batch of an older epoch is taken after one of a newer epoch")
def _older_epoch(patch: pytest.MonkeyPatch) -> None:
    def unchecked(producer_id: int, producer_epoch: int, *, fence: int, **_: int) -> None:
        check_epoch(producer_id, producer_epoch, fence=fence, highest_epoch=0)

    patch.setattr(broker_sequences, "check_epoch", unchecked)


@defect("repeats-stored-again", "a repeated batch is stored once more")
def _repeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(broker_sequences, "repeated", lambda *_: None)
    patch.setattr(broker_sequences, "check_sequence", lambda *_, **__: None)


@defect("sequence-wraps-wrong", "after the highest sequence comes 1")
def _wrap(patch: pytest.MonkeyPatch) -> None:
    def wrong(sequence: int, record_count: int) -> int:
        after = next_sequence(sequence, record_count)
        return after + (after <= sequence)

    patch.setattr(broker_sequences, "next_sequence", wrong)


@defect("aborted-range-short", "an aborted transaction's range ends with its first batch")
def _short_range(patch: pytest.MonkeyPatch) -> None:
    def covers(self: AbortedIndex, producer_id: int, producer_epoch: int, offset: int) -> bool:
        ranges = self._by_transaction.get((producer_id, producer_epoch), ())
        return any(each.first_offset == offset for each in ranges)

    patch.setattr(AbortedIndex, "covers", covers)


@defect("snapshot-closes", "a snapshot leaves out which transactions are open")
def _snapshot(patch: pytest.MonkeyPatch) -> None:
    snapshot = PartitionLog.snapshot

    def without_open(self: PartitionLog) -> Iterator[LogState | LogRecord]:
        for each in snapshot(self):
            if isinstance(each, ProducerState):
                yield replace(each, open_epochs=())
            elif not isinstance(each, OpenTransaction):
                yield each

    patch.setattr(PartitionLog, "snapshot", without_open)


@defect("reopened-at-the-end", "a transaction's later batches move its first offset")
def _reopened(patch: pytest.MonkeyPatch) -> None:
    append = PartitionLog._append

    def moved(self: PartitionLog, batch: BatchAppended) -> None:
        append(self, batch)
        if batch.transactional:
            self._open_transaction(batch)

    patch.setattr(PartitionLog, "_append", moved)


@defect("repeat-by-sequence", "another batch under used sequences is taken for a repeat")
def _by_sequence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(broker_sequences, "check_same", lambda *_, **__: None)


# -- groups --------------------------------------------------------------------------------------


@defect("offsets-without-sequence", "TxnOffsetCommit is taken whatever its sequence")
def _no_sequence(patch: pytest.MonkeyPatch) -> None:
    def check_only_epoch(state: Any, transaction: Transaction, _sequence: int) -> None:
        check_epoch(*transaction, fence=state.fence, highest_epoch=state.producer_epoch)

    patch.setattr(OffsetsMachine, "is_repeat", lambda *_, **__: False)
    patch.setattr(offsets_module, "check_next", check_only_epoch)


@defect("repeat-by-offsets-sequence", "another TxnOffsetCommit under a used sequence is a repeat")
def _offsets_by_sequence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offsets_producer, "check_same", lambda *_, **__: None)


@defect("late-marker-moves-back", "a late marker moves a group back behind a later commit")
def _moves_back(patch: pytest.MonkeyPatch) -> None:
    def move(self: GroupOffsets, position: int, committed: OffsetCommitted) -> None:
        self.committed[committed.partition] = (position, committed)

    patch.setattr(GroupOffsets, "_move", move)


@defect("unstable-offsets-told", "an offset is told to a successor while a transaction may move it")
def _unstable(patch: pytest.MonkeyPatch) -> None:
    fetch_offsets = CommittedOffsets.fetch_offsets

    def told(
        self: CommittedOffsets, reader: Any, asked: Any, *, require_stable: bool, page: Any
    ) -> Any:
        del require_stable
        return fetch_offsets(self, reader, asked, require_stable=False, page=page)

    patch.setattr(CommittedOffsets, "fetch_offsets", told)


@defect("any-member-commits", "a member commits offsets of partitions that it does not hold")
def _any_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commits_module, "stale_partition", lambda *_: None)


@defect("group-without-fence", "an outcome raises no fence in a group")
def _group_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offsets_state, "after_end", lambda state, *_, **__: state)


# -- both ----------------------------------------------------------------------------------------


@defect("answered-before-sync", "an answer leaves before what it says is on disk")
def _before_sync(patch: pytest.MonkeyPatch) -> None:
    async def at_once(_self: Runner[Any]) -> None:
        pass

    patch.setattr(Runner, "_durable", at_once)


@defect("deposed-coordinator-heard", "what a deposed coordinator says is taken")
def _deposed(patch: pytest.MonkeyPatch) -> None:
    see = CoordinatorEpochCheck.see

    def heard(self: CoordinatorEpochCheck, producer_id: int, coordinator_epoch: int) -> Any:
        try:
            return see(self, producer_id, coordinator_epoch)
        except SemelError:
            return ()

    patch.setattr(CoordinatorEpochCheck, "see", heard)
