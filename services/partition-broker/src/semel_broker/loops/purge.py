"""Gives back the space of deleted topics, and of records cut off at the start of logs.

Theory of operation. Unreachable batches are deleted in steps that are bounded in rows and bytes,
and then the file is shortened in bounded steps. An append waits for one step at most. After each
step there is a pause as long as some steps, so that most appends meet none at all; while there is
something new to delete, the file is not shortened. A start finds the rest that an earlier process
has left.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

import structlog

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import LogDropped, LogStartMoved, LogTakenOver, Record
from semel_runtime.journal.contract import BatchStore
from semel_runtime.process.background_pace import paced
from semel_runtime.runner import Runner
from semel_runtime.server.form_checks import INT64_MAX

log = structlog.get_logger(__name__)

_ROWS_PER_STEP = 100
_BYTES_PER_STEP = 1 << 18


class Purger:
    """Deletes from the store what machine and readers are done with."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, store: BatchStore) -> None:
        self._runner = runner
        self._machine = machine
        self._store = store
        self._cut: dict[int, int] = {}
        self._wanted = asyncio.Event()
        self._wanted.set()  # A process before this one may have left something.

    async def run(self) -> None:
        """Purge whenever there is something to purge, until cancelled."""
        cut = await self._runner.run(self._machine.log_starts.cut_logs)
        # Meanwhile logs may have been cut further.
        self._cut = {**cut, **self._cut}
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            for log_id in await self._runner.run(self._machine.dropped_logs):
                await self._purge_dropped(log_id)
            while self._cut:
                log_id, log_start_offset = self._cut.popitem()
                await self._purge_cut(log_id, log_start_offset)
            await self._shorten()

    def on_durable(self, records: Sequence[Record]) -> None:
        """Note that logs were dropped, or cut off."""
        for record in records:
            if isinstance(record, LogStartMoved | LogTakenOver):
                self._cut[record.log_id] = record.log_start_offset
                self._wanted.set()
            elif isinstance(record, LogDropped):
                self._wanted.set()

    async def _purge_dropped(self, log_id: int) -> None:
        batches = await self._delete(log_id, before=INT64_MAX)
        await self._runner.run(partial(self._machine.purged, log_id), privileged=True)
        log.info("deleted topic's partition purged", log_id=log_id, batches=batches)

    async def _purge_cut(self, log_id: int, log_start_offset: int) -> None:
        batches = await self._delete(log_id, before=log_start_offset)
        if batches:
            log.info(
                "old records purged",
                log_id=log_id,
                log_start_offset=log_start_offset,
                batches=batches,
            )

    async def _delete(self, log_id: int, *, before: int) -> int:
        total = deleted = await self._delete_step(log_id, before)
        while deleted:
            deleted = await self._delete_step(log_id, before)
            total += deleted
        return total

    async def _delete_step(self, log_id: int, before: int) -> int:
        return await paced(
            self._store.delete(
                log_id, before=before, rows_max=_ROWS_PER_STEP, bytes_max=_BYTES_PER_STEP
            )
        )

    async def _shorten(self) -> None:
        while not self._wanted.is_set() and await self._store.give_back():
            pass
