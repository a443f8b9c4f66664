"""Defects planted in compaction: the simulation finds each of them soon, and names the fault."""

import re

import pytest
from defects.hunt import hunt

from simulation.compaction import CompactionWatch

SEEDS = 5

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("marker-dropped-early", "is gone before its time"),
        ("tombstone-dropped-early", "is gone before its time"),
        ("newest-value-lost", "lost the newest record of its key"),
        ("aborted-kept", "goes before the records of its transaction|has kept what was aborted"),
        ("gap-not-noted", "has a gap from"),
        ("compacts-what-is-open", "past the last stable offset|lost the newest record of its key"),
    ],
)
def test_a_defect_is_found(name: str, words: str) -> None:
    report = hunt(name, SEEDS)
    assert report is not None
    assert re.search(words, report.violations[0])


def test_aborted_records_that_are_kept_are_found_in_the_history_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for watched in ("rewritten", "compacted"):
        monkeypatch.setattr(CompactionWatch, watched, lambda *_, **__: None)
    report = hunt("aborted-kept", SEEDS)
    assert report is not None
    assert "was read committed, but" in report.violations[0]
