"""Looking for a planted defect: seed after seed, until one finds something."""

from simulation.report import Report
from simulation.run import simulate

from defects import planted

SEEDS_MAX = 500


def hunt(name: str, seeds: int = SEEDS_MAX) -> Report | None:
    """Return the report of the first seed that finds the defect; None if no seed does."""
    with planted(name):
        for seed in range(seeds):
            report = simulate(seed)
            if report.violations:
                return report
    return None
