"""Defects planted in compaction: the simulation finds each of them, and soon."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from semel_broker.compaction.content import BatchContent
from semel_broker.compaction.rules import Cleaning, Fate, Kept, Removed, Rewritten
from semel_broker.machine import compaction
from semel_broker.machine.compaction import CompactionPlan
from semel_broker.machine.log import PartitionLog
from simulation.compaction import CompactionWatch
from simulation.run import simulate

SEEDS = 5

pytestmark = pytest.mark.slow

Plant = Callable[[pytest.MonkeyPatch], None]


def drop_markers_too_early(patch: pytest.MonkeyPatch) -> None:
    """A marker goes as soon as no record of its transaction is left."""
    decide = Cleaning._decide_marker

    def hasty(self: Cleaning, batch: BatchContent) -> Fate:
        fate = decide(self, batch)
        return Removed() if isinstance(fate, Rewritten) else fate

    patch.setattr(Cleaning, "_decide_marker", hasty)


def keep_aborted(patch: pytest.MonkeyPatch) -> None:
    """What was aborted stays, and the aborted index forgets it."""
    decide = Cleaning.decide

    def sparing(self: Cleaning, batch: BatchContent, *, now_ms: int) -> Fate:
        return Kept() if batch.aborted else decide(self, batch, now_ms=now_ms)

    patch.setattr(Cleaning, "decide", sparing)


def go_past_the_last_stable_offset(patch: pytest.MonkeyPatch) -> None:
    """Records of open transactions take others away, and are taken themselves."""
    plan = compaction._plan

    def reckless(log: PartitionLog) -> CompactionPlan:
        return replace(plan(log), last_stable_offset=log.log_end_offset)

    patch.setattr(compaction, "_plan", reckless)


def drop_tombstones_too_early(patch: pytest.MonkeyPatch) -> None:
    """No horizon is ever waited for."""
    patch.setattr(Cleaning, "_is_past", lambda *_: True)


def found() -> str:
    """Return the first violation within some seeds."""
    for seed in range(SEEDS):
        report = simulate(seed)
        if report.violations:
            return report.violations[0]
    return f"nothing in {SEEDS} seeds"


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (drop_markers_too_early, "is gone before its time"),
        (keep_aborted, "goes before the records of its transaction"),
        (go_past_the_last_stable_offset, "lost the newest record of its key"),
        (drop_tombstones_too_early, "is gone before its time"),
    ],
)
def test_a_defect_is_found(plant: Plant, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert words in found()


def test_aborted_records_that_are_kept_are_found_in_the_history_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep_aborted(monkeypatch)
    for watched in ("rewritten", "compacted"):
        monkeypatch.setattr(CompactionWatch, watched, lambda *_, **__: None)
    assert "was read committed, but" in found()
