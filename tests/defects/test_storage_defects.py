"""The simulation of one journal finds each defect of its log, tables and files of payloads."""

import pytest

from defects import OF_A_JOURNAL
from defects.hunt import hunt_alone

SEEDS = 40
"""Of the defects below, each is found within 29 seeds today."""
LATE = {"older-claims-file-written-to", "older-logs-taken"}
"""`make defects` looks for these in more seeds."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(OF_A_JOURNAL - LATE))
def test_a_planted_defect_of_a_journal_is_found_soon(name: str) -> None:
    assert hunt_alone(name, SEEDS) is not None, f"{name} is not found in {SEEDS} seeds"


def test_defects_that_are_found_late_exist() -> None:
    assert LATE <= OF_A_JOURNAL
