"""Looking for a planted defect: seed after seed, until one finds something."""

from simulation.report import Report
from simulation.run import simulate

from defects import planted

SEEDS_MAX = 500


def hunt(name: str, seeds: int = SEEDS_MAX) -> Report | None:
    """Return what the first seed reports that finds the defect; None if none does."""
    with planted(name):
        for seed in range(seeds):
            report = simulate(seed)
            if report.violations:
                return report
    return None
