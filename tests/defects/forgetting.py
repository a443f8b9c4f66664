"""Defects of compaction, and of the expiry of ids and producers."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from defects.defect import collector
from semel_broker.compaction.content import BatchContent
from semel_broker.compaction.keys import KeyMap
from semel_broker.compaction.rules import Cleaning, Fate, Kept, Removed, Rewritten
from semel_broker.machine import compaction, idle_producers
from semel_broker.machine.compaction import CompactionPlan
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.records import LogCompacted, LogRecord, ProducerState
from semel_common.ids import producer_id_of
from semel_coordinator.transactions.machine import TransactionKey
from semel_coordinator.transactions.machine import transactions_machine as machine_module
from semel_coordinator.transactions.machine.init_producer_id import first_init
from semel_coordinator.transactions.machine.state.principal_counts import IdsOfPrincipals
from semel_coordinator.transactions.machine.state.records import (
    ProducerIdsGiven,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.machine import Result
from semel_runtime.participant import producer_expiry_loop
from semel_runtime.participant.producer_expiry import IdleProducer
from semel_runtime.process.pause_detector import SteadyTicks

DEFECTS, defect = collector()

_HASTE_MS = 50


# -- transactional ids ---------------------------------------------------------------------------


@defect("ids-counted-for-ever", "a transactional id counts for its principal after it has expired")
def _counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IdsOfPrincipals, "leave", lambda *_: None)


# -- compaction ----------------------------------------------------------------------------------


@defect("marker-dropped-early", "a marker goes as soon as no record of its transaction is left")
def _marker(patch: pytest.MonkeyPatch) -> None:
    decide = Cleaning._decide_marker

    def hasty(self: Cleaning, batch: BatchContent) -> Fate:
        fate = decide(self, batch)
        return Removed() if isinstance(fate, Rewritten) else fate

    patch.setattr(Cleaning, "_decide_marker", hasty)


@defect("tombstone-dropped-early", "tombstones and markers go without waiting for a horizon")
def _tombstone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cleaning, "_is_past", lambda *_: True)


@defect("newest-value-lost", "compaction takes the newest record of a key for one with a newer one")
def _newest(patch: pytest.MonkeyPatch) -> None:
    has_newer = KeyMap.has_newer
    patch.setattr(KeyMap, "has_newer", lambda self, key, offset: has_newer(self, key, offset - 1))


@defect("aborted-kept", "compaction keeps what was aborted, and the aborted index forgets it")
def _aborted(patch: pytest.MonkeyPatch) -> None:
    decide = Cleaning.decide

    def sparing(self: Cleaning, batch: BatchContent, *, now_ms: int) -> Fate:
        return Kept() if batch.aborted else decide(self, batch, now_ms=now_ms)

    patch.setattr(Cleaning, "decide", sparing)


@defect("compacts-what-is-open", "compaction goes past the last stable offset")
def _open(patch: pytest.MonkeyPatch) -> None:
    plan = compaction._plan

    def reckless(log: PartitionLog) -> CompactionPlan:
        return replace(plan(log), last_stable_offset=log.log_end_offset)

    patch.setattr(compaction, "_plan", reckless)


@defect("gap-not-noted", "compaction begins without a record of where batches may be missing")
def _gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compaction, "thinned", lambda *_: ())
    patch.setattr(PartitionLog, "replay", _without_compaction(PartitionLog.replay))


def _without_compaction(
    replay: Callable[[PartitionLog, LogRecord], None],
) -> Callable[[PartitionLog, LogRecord], None]:
    """Let the end of a pass tell nothing of gaps, too: else the next pass would be in order."""

    def replayed(self: PartitionLog, record: LogRecord) -> None:
        known = self._gaps
        replay(self, record)
        if isinstance(record, LogCompacted):
            self._gaps = known

    return replayed


# -- expiry --------------------------------------------------------------------------------------


@defect("expired-id-reused", "a producer id that has expired is given out again, from epoch 0")
def _reused(patch: pytest.MonkeyPatch) -> None:
    def reused(
        state: TransactionsState, *args: Any, partition: int, now_ms: int
    ) -> Result[TransactionKey, TransactionsRecord]:
        result = first_init(state, *args, partition=partition, now_ms=now_ms)
        given = state.ids_given(partition)
        numbers = range(given.start + 1, given.count + 1)
        ids = (producer_id_of(partition, number) for number in numbers)
        free = next((each for each in ids if each not in state.producers), None)
        if free is None:
            return result
        records: list[Any] = [r for r in result.records if not isinstance(r, ProducerIdsGiven)]
        return Result(
            TransactionKey(free, 0), tuple(replace(record, producer_id=free) for record in records)
        )

    patch.setattr(machine_module, "first_init", reused)


@defect("fence-forgotten-early", "a broker forgets fences soon, and asks no coordinator before")
def _fence(patch: pytest.MonkeyPatch) -> None:
    def is_idle(state: ProducerState, now_ms: int, _limits: object) -> bool:
        return not state.open_epochs and now_ms - state.last_timestamp_ms >= _HASTE_MS

    patch.setattr(idle_producers, "_is_idle", is_idle)
    patch.setattr(IdleProducer, "had_transactions", property(lambda _: False))


@defect("forgets-after-a-jump", "a clock that has jumped ahead makes producers idle at once")
def _jump(patch: pytest.MonkeyPatch) -> None:
    def hasty(interval_ms: int, *, settling_ms: int) -> SteadyTicks:
        return SteadyTicks(interval_ms, settling_ms=min(interval_ms, settling_ms))

    patch.setattr(producer_expiry_loop, "SteadyTicks", hasty)
