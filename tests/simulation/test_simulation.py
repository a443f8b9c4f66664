"""Seeds of the simulation: none finds anything, and each is the same wherever it runs.

The seeds run in a pool of processes of its own, one for each core, in pieces, so that a failure is
told early.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from source_tree import ROOT

from simulation.run import simulate

SEEDS = 40
"""As many as take some two minutes on two cores; `make simulate` takes any number."""
PIECE = 20
SEED_AGAIN = 5

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    # Spawned: pytest's own process may have threads, which a fork would break.
    cores = min(2, os.cpu_count() or 1)
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as executor:
        yield executor


@pytest.mark.parametrize("first", range(0, SEEDS, PIECE))
def test_no_seed_finds_anything(pool: Executor, first: int) -> None:
    for report in pool.map(simulate, range(first, first + PIECE)):
        assert not report.violations, "\n".join(
            (f"seed {report.seed}, step {report.steps}", *report.trace, *report.violations)
        )
        assert report.transactions >= 100
        assert report.faults >= 10


def test_a_seed_gives_the_same_history_in_every_process() -> None:
    code = f"from simulation.run import simulate; print(simulate({SEED_AGAIN}, digest=True).digest)"
    here = simulate(SEED_AGAIN, digest=True).digest
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
