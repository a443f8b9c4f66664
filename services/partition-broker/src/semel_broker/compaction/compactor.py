"""Looks from time to time for logs that are dirty enough, and compacts one after the other."""

import asyncio
from functools import partial

import structlog
from msgspec import Struct

from semel_broker.compaction.passes import CompactionPass, UnreadableLogError
from semel_broker.machine import BrokerMachine
from semel_broker.machine.compaction import CompactionPlan
from semel_broker.machine.records import Record
from semel_broker.storage.log_reader import LogReader
from semel_common.errors import CorruptMessageError, KafkaStorageError
from semel_runtime.clock import Clock
from semel_runtime.cluster.topic_options import DEFAULTS
from semel_runtime.journal.contract import BatchPosition, BatchStore
from semel_runtime.process.worker_threads import Offload
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)


class CompactorOptions(Struct, frozen=True, kw_only=True):
    """When to look, and how much a pass may hold."""

    backoff_ms: int = 15_000
    """How long to wait after a look."""
    keys_max: int = 400_000
    """How many keys a pass remembers; what is dirty beyond them is left to the next one."""


class Compactor:
    """Compacts the logs that one broker leads."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        store: BatchStore,
        logs: LogReader,
        clock: Clock,
        offload: Offload,
        options: CompactorOptions,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._store = store
        self._logs = logs
        self._clock = clock
        self._offload = offload
        self._options = options

    async def run(self) -> None:
        """Compact what is dirty enough, until cancelled."""
        while True:
            await asyncio.sleep(self._options.backoff_ms / 1000)
            await self.compact()

    async def compact(self) -> None:
        """Look once, and make a pass over each log that is dirty enough."""
        for plan in await self._runner.run(self._machine.compaction.logs_to_compact):
            try:
                upto = await self._cleanable_upto(plan)
                if plan.is_due(upto, overdue=await self._is_overdue(plan)):
                    await self._pass(plan, upto)
            except UnreadableLogError as error:
                log.warning("log not compacted", log_id=plan.log_id, error=str(error))

    async def _cleanable_upto(self, plan: CompactionPlan) -> int:
        """Return where the first record lies that is too young, or the last stable offset."""
        lag_ms = plan.config.min_compaction_lag_ms
        if not lag_ms:
            return plan.last_stable_offset
        young = await self._first_at(plan, self._clock.now_ms() - lag_ms + 1)
        return plan.last_stable_offset if young is None else young.base_offset

    async def _is_overdue(self, plan: CompactionPlan) -> bool:
        """Whether the first record that is not compacted has waited for too long."""
        lag_ms = plan.config.max_compaction_lag_ms
        if lag_ms == DEFAULTS.max_compaction_lag_ms:
            return False
        oldest = await self._first_at(plan, 0)
        return oldest is not None and oldest.max_timestamp_ms <= self._clock.now_ms() - lag_ms

    async def _first_at(self, plan: CompactionPlan, timestamp_ms: int) -> BatchPosition | None:
        try:
            return await self._logs.first_at(
                plan.place,
                timestamp_ms,
                upto=plan.last_stable_offset,
                start=plan.dirty_offset,
            )
        except (CorruptMessageError, KafkaStorageError) as error:
            raise UnreadableLogError(error.message) from error

    async def _pass(self, plan: CompactionPlan, upto: int) -> None:
        work = CompactionPass(plan, self._store, self._logs, self._clock, self._offload)
        keys = await work.survey(upto=upto, keys_max=self._options.keys_max)
        # Durable before the first batch goes: readers have to know why it is missing.
        begin = partial(self._machine.compaction.thin_out, plan.log_id, keys.upto)
        if not await self._runner.run(begin, privileged=True):
            return
        end = await work.clean(
            keys, wanted=partial(self._machine.compaction.is_compacted, plan.log_id)
        )
        if end is None:
            return
        await self._runner.run(partial(self._machine.compaction.compacted, end), privileged=True)
        log.info(
            "log compacted",
            log_id=plan.log_id,
            upto=end.upto,
            keys=len(keys),
            records_left=end.records_left,
            size_bytes_left=end.size_bytes_left,
            unopened_batches=work.unopened,
        )
