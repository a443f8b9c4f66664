"""Gives back the space of deleted topics: the batches of dropped logs go in bounded steps."""

import asyncio
from collections.abc import Sequence
from functools import partial

import structlog

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import LogDropped, Record
from semel_runtime.journal.base import BatchStore
from semel_runtime.runner import Runner
from semel_runtime.server.checks import INT64_MAX

log = structlog.get_logger(__name__)

_ROWS_PER_STEP = 100


class Purger:
    """Deletes what dropped logs have left in the store."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, store: BatchStore) -> None:
        self._runner = runner
        self._machine = machine
        self._store = store
        self._dropped = asyncio.Event()
        self._dropped.set()  # A process before this one may have left something.

    async def run(self) -> None:
        """Purge whenever a log was dropped, until cancelled."""
        while True:
            await self._dropped.wait()
            self._dropped.clear()
            for log_id in await self._runner.run(self._machine.dropped_logs):
                await self._purge(log_id)

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that logs were dropped."""
        if any(isinstance(record, LogDropped) for record in records):
            self._dropped.set()

    async def _purge(self, log_id: int) -> None:
        rows = deleted = await self._delete(log_id)
        while deleted == _ROWS_PER_STEP:
            deleted = await self._delete(log_id)
            rows += deleted
        await self._runner.run(partial(self._machine.purged, log_id), privileged=True)
        log.info("deleted topic's partition purged", log_id=log_id, batches=rows)

    async def _delete(self, log_id: int) -> int:
        return await self._store.delete(log_id, before=INT64_MAX, rows_max=_ROWS_PER_STEP)
