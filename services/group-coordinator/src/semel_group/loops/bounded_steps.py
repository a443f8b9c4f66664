"""Going through all groups in the background: in bounded steps, and others have their turn between.

A step that finds nothing writes nothing, and the runner answers it without a pause: so there is
one here.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from semel_group.machine.records import Record
from semel_runtime.machine import Result
from semel_runtime.runner import Runner

RECORDS_PER_STEP = 1_000
_GROUPS_PER_STEP = 100


async def through_groups(
    runner: Runner[Record],
    group_ids: Sequence[str],
    decide: Callable[[Sequence[str]], Result[int, Record]],
) -> int:
    """Decide on some groups after others, each step durable before the next. Answers the sum.

    ``decide`` takes on `RECORDS_PER_STEP` at most, and answers how many it were; it is asked about
    the same groups again as long as it were so many.
    """
    done = 0
    for start in range(0, len(group_ids), _GROUPS_PER_STEP):
        step = partial(decide, group_ids[start : start + _GROUPS_PER_STEP])
        last = RECORDS_PER_STEP
        while last == RECORDS_PER_STEP:
            last = await runner.run(step, privileged=True)
            done += last
            await asyncio.sleep(0)
    return done
