"""Quick attacks on one cluster: each is answered as it must be, and no one else notices it.

``make hostile`` runs all attacks and prints the cost of each.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hostile.attack import Attack, judge
from hostile.attacks import ALL
from hostile.stage import Stage, opened

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    async with opened(folder) as stage:
        yield stage


@pytest.mark.parametrize("attack", [each for each in ALL if each.quick], ids=lambda each: each.name)
async def test_no_attack_succeeds(stage: Stage, attack: Attack) -> None:
    verdict = await judge(stage, attack)
    assert not verdict.violations, "\n".join(verdict.violations)
