"""Lets groups forget offsets that they have not needed for long."""

import asyncio
from functools import partial

import structlog

from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_runtime.clock import Clock
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)

_GROUPS_PER_STEP = 100
_RECORDS_PER_STEP = 1_000


class OffsetRetention:
    """Looks at all groups from time to time, in bounded steps."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: GroupMachine,
        clock: Clock,
        *,
        check_interval_ms: int,
    ) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine = machine
        self._clock = clock
        self._interval_s = check_interval_ms / 1000

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.expire()

    async def expire(self) -> None:
        """Let go of what has expired by now."""
        expired = 0
        group_ids = self._machine.group_ids()
        for start in range(0, len(group_ids), _GROUPS_PER_STEP):
            some = group_ids[start : start + _GROUPS_PER_STEP]
            step = partial(
                self._machine.expire_offsets, some, _RECORDS_PER_STEP, now_ms=self._clock.now_ms()
            )
            last = _RECORDS_PER_STEP
            while last == _RECORDS_PER_STEP:
                last = await self._runner.run(step, privileged=True)
                expired += last
        if expired:
            log.info("offsets expired", records=expired)
