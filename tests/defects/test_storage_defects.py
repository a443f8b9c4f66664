"""The simulation of one journal finds each defect of its log, tables and files of payloads."""

import pytest

from defects import OF_A_JOURNAL
from defects.hunt import hunt_alone

SEEDS = 50
"""Of the defects, each is found within 41 seeds today."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(OF_A_JOURNAL))
def test_a_planted_defect_of_a_journal_is_found_soon(name: str) -> None:
    assert hunt_alone(name, SEEDS) is not None, f"{name} is not found in {SEEDS} seeds"
