"""Short runs with every part of a long one: processes, faults, a history, a verdict."""

from pathlib import Path

import pytest
from semel_checker.storage import read_history

from chaos.run import Engine, Report, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CLIENTS = (
    "writers-0",
    "duellist-0",
    "transformer-0",
    "joint-owner",
    "joint-workers",
    "readers",
)
"""Half of them: to start a process takes a second of a core."""


async def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    """C-022, C-023."""
    report = await short_run(tmp_path, seed=1, window_s=6.0)
    assert report.faults.total() >= 3
    assert report.kills.total() >= 1
    assert report.committed >= 50
    assert report.joint_versions >= 1
    # Each operation is invoked and returns, unless its client was killed.
    assert len(read_history(report.history)) > 1.9 * report.operations


async def test_a_short_run_on_postgres_finds_nothing(tmp_path: Path) -> None:
    """C-022, C-023."""
    report = await short_run(tmp_path, seed=54, window_s=10.0, engine="postgres")
    assert report.kills["primary"] >= 1
    assert report.committed >= 20


async def short_run(
    folder: Path, *, seed: int, window_s: float, engine: Engine = "sqlite"
) -> Report:
    """Make a run that finds nothing."""
    report = await run(
        folder,
        seed=seed,
        window_s=window_s,
        interval_s=0.5,
        calm_s=2.0,
        names=CLIENTS,
        engine=engine,
    )
    assert not report.violations, "\n".join((f"seed {seed}", *report.violations))
    return report
