"""Killed processes and losses of power, on real files: what was acknowledged is there."""

from pathlib import Path

import pytest
from journal_crashes import kill_often, lose_often


async def test_killed_processes_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    await kill_often(tmp_path / "data", 3, seed=1)


@pytest.mark.parametrize("seed", range(3))
async def test_losses_of_power_take_nothing_that_was_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    assert await lose_often(tmp_path, steps=60, seed=seed) > 0
