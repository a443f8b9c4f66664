"""Looking for a planted defect: seed after seed, until one finds something."""

from simulation.alone import simulate_alone
from simulation.report import Report
from simulation.run import simulate

from defects import planted

SEEDS_MAX = 500


def hunt_alone(name: str, seeds: int = SEEDS_MAX) -> tuple[int, str] | None:
    """Return the first seed of one journal that finds the defect, and its first violation."""
    with planted(name):
        for seed in range(seeds):
            if violations := simulate_alone(seed):
                return seed, violations[0]
    return None


def hunt(name: str, seeds: int = SEEDS_MAX) -> Report | None:
    """Return the report of the first seed that finds the defect; None if no seed does."""
    with planted(name):
        for seed in range(seeds):
            report = simulate(seed)
            if report.violations:
                return report
    return None
