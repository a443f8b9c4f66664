"""Lets groups forget offsets that they have not needed for long."""

import asyncio
from collections.abc import Sequence

import structlog

from semel_group.loops.bounded_steps import RECORDS_PER_STEP, through_groups
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_runtime.clock import Clock
from semel_runtime.machine import Result
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)


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
        """Delete the offsets that have expired by now."""
        expired = await through_groups(self._runner, self._machine.groups.group_ids(), self._expire)
        if expired:
            log.info("offsets expired", records=expired)

    def _expire(self, group_ids: Sequence[str]) -> Result[int, Record]:
        return self._machine.deletion.expire_offsets(
            group_ids, RECORDS_PER_STEP, now_ms=self._clock.now_ms()
        )
