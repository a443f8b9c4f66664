"""One kill at each step of each call, on each engine; `make database-chaos` makes many."""

from pathlib import Path

import pytest

from database_chaos.run import Engine, run
from database_chaos.steps import Call, steps_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def test_database_and_topic_agree_whatever_step_a_process_died_at(
    tmp_path: Path, engine: Engine
) -> None:
    report = await run(engine, tmp_path, rounds=1, seed=1)
    for call in Call:
        for step in steps_of(call):
            tally = report.tallies[str(step)]
            assert tally.rounds == 1
            assert tally.kills >= 1
        sums = report.sums[call]
        assert sums.given == sums.in_database > 0
        assert sums.in_topic == (0 if call is Call.STORE else sums.given)
