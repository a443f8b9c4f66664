"""Seeds of the simulation: none finds anything, and each is the same wherever it runs."""

import os
import subprocess
import sys

import pytest
from source_tree import ROOT

from simulation.run import simulate

SEEDS = 12
SEED_AGAIN = 5

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_seed_finds_nothing(seed: int) -> None:
    report = simulate(seed)
    assert not report.violations, "\n".join(
        (f"seed {seed}, step {report.steps}", *report.trace, *report.violations)
    )
    assert report.transactions >= 100
    assert report.faults >= 10


def test_a_seed_gives_the_same_history_in_every_process() -> None:
    code = f"from simulation.run import simulate; print(simulate({SEED_AGAIN}).digest)"
    here = simulate(SEED_AGAIN).digest
    for hash_seed in ("1", "2"):
        environment = os.environ | {
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": str(ROOT / "tests"),
        }
        there = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        assert there.stdout.strip() == here
