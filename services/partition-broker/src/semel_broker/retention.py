"""Retention: looks from time to time whether topics hold more than they keep."""

import asyncio
from collections.abc import Sequence
from functools import partial

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_runtime.clock import Clock
from semel_runtime.cluster.image import ClusterImage
from semel_runtime.runner import Runner


class RetentionLoop:
    """Cuts off what is too old or too much."""

    def __init__(
        self, runner: Runner[Record], machine: BrokerMachine, clock: Clock, *, interval_ms: int
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock
        self._interval_ms = interval_ms
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Look at every interval, and whenever the metadata change, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._interval_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            await self.apply()

    async def apply(self) -> None:
        """Look once."""
        decide = partial(self._machine.apply_retention, now_ms=self._clock.now_ms())
        # A full disk must not keep anybody from deleting.
        await self._runner.run(decide, privileged=True)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that options of topics may have changed."""
        if any(isinstance(record, ClusterImage) for record in records):
            self._changed.set()
