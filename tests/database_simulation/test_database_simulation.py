"""Some seeds find nothing, some planted defects at once; `make simulate-database` takes more."""

import pytest

from database_simulation.planted import DEFECTS, hunt, planted
from database_simulation.run import simulate

SEEDS = 4
QUICK = ("completed-before-commit", "position-apart")
QUICK_SEEDS = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_seed_finds_anything(seed: int) -> None:
    report = simulate(seed)
    assert not report.violations, "\n".join((*report.trace, *report.violations))
    assert report.commits >= 100
    assert report.faults >= 10


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_defect_is_found_at_once(name: str) -> None:
    assert hunt(name, QUICK_SEEDS) is not None, f"{name} is not found in {QUICK_SEEDS} seeds"


@pytest.mark.parametrize("name", DEFECTS)
def test_the_code_that_a_defect_replaces_exists(name: str) -> None:
    with planted(name):
        pass


def test_enough_defects_are_planted_and_each_says_what_it_is() -> None:
    assert len(DEFECTS) >= 8
    assert all(each.says for each in DEFECTS.values())
