"""One journal alone on a simulated disk: no seed loses an acknowledged step."""

import pytest

from simulation.alone import simulate_alone

SEEDS = 40


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_seed_of_a_journal_alone_finds_anything() -> None:
    assert {seed: found for seed in range(SEEDS) if (found := simulate_alone(seed))} == {}
