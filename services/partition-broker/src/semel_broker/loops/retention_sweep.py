"""Applies retention to all logs from time to time; the rule is in ``machine/log/retention.py``."""

import asyncio
from collections.abc import Sequence
from functools import partial

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_runtime.clock import Clock
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.topic_options import Overrides
from semel_runtime.runner import Runner

_PIECE = 1_000
"""Partitions that are looked at in one go, some milliseconds."""


class RetentionSweep:
    """Cuts off the records that retention does not keep."""

    def __init__(
        self, runner: Runner[Record], machine: BrokerMachine, clock: Clock, *, interval_ms: int
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock
        self._interval_ms = interval_ms
        self._options = _options_of(machine.cluster.image)
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Look at every interval, and whenever options of topics change, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._interval_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            await self.apply()

    async def apply(self) -> None:
        """Look at all partitions once."""
        partitions = await self._runner.run(self._machine.led_partitions)
        for start in range(0, len(partitions), _PIECE):
            some = partitions[start : start + _PIECE]
            decide = partial(
                self._machine.log_starts.apply_retention, some, now_ms=self._clock.now_ms()
            )
            # Retention goes on while the disk is full.
            await self._runner.run(decide, privileged=True)
            await asyncio.sleep(0)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that options of a topic have changed, which may have records already."""
        for record in records:
            if isinstance(record, ClusterImage):
                known, self._options = self._options, _options_of(record)
                if any(known.get(name, now) != now for name, now in self._options.items()):
                    self._changed.set()


def _options_of(image: ClusterImage | None) -> dict[str, Overrides]:
    return {} if image is None else {topic.topic_id: topic.configs for topic in image.topics}
