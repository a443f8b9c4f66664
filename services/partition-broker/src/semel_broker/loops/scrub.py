"""Reads what clients seldom read, to find damage while there is still a copy to restore.

Theory of operation. From time to time every log is read from its start to its end, as a reader
does: each batch is checked, and none may be missing. What is found is told as all damage is. One
piece is read at a time, and then so much time is left that the rate stays below its limit; clients
read as before. Ends of logs in memory are passed by: they are read from the medium.
"""

import asyncio
from functools import partial

import structlog
from msgspec import Struct

from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import IsolationLevel, PartitionName, ReadPlan
from semel_broker.storage.log_reader import Damage, LogReader
from semel_common.errors import KafkaStorageError
from semel_common.ids import TopicPartition
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)

_PIECE_BYTES = 256 << 10


class ScrubOptions(Struct, frozen=True, kw_only=True):
    """How often, and how fast."""

    interval_ms: int
    """How long to wait before each round."""
    bytes_per_second: int
    """The most that is read; 0: nothing is."""


class Scrubber:
    """Reads all logs of one broker, again and again."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        logs: LogReader,
        options: ScrubOptions,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._logs = logs
        self._options = options

    async def run(self) -> None:
        """Read everything once an interval, until cancelled."""
        while self._options.bytes_per_second:
            await asyncio.sleep(self._options.interval_ms / 1000)
            await self.scrub()

    async def scrub(self) -> None:
        """Read everything once."""
        size_bytes = 0
        for partition in await self._runner.run(self._machine.led_partitions):
            try:
                size_bytes += await self._read(partition)
            except KafkaStorageError as error:
                log.warning("log not read to its end", error=error.message)
        log.info("logs read for damage", size_bytes=size_bytes)

    async def _read(self, partition: TopicPartition) -> int:
        """Read one log; answer how many bytes. Raises KafkaStorageError."""
        size_bytes, at = 0, 0
        while (plan := await self._plan(partition)) is not None:
            at = max(at, plan.log_start_offset)
            if at >= plan.upto:
                break
            found = await self._logs.look(plan.place, at, max_bytes=_PIECE_BYTES, upto=plan.upto)
            if isinstance(found, Damage):
                at = _behind(found, at)
                continue
            read_bytes = sum(each.size_bytes for each in found)
            size_bytes += read_bytes
            at = found[-1].base_offset + found[-1].record_count if found else plan.upto
            await asyncio.sleep(read_bytes / self._options.bytes_per_second)
        return size_bytes

    async def _plan(self, partition: TopicPartition) -> ReadPlan | None:
        """Return where the log lies now; None if it is not served here any more."""
        name = PartitionName(topic="", topic_id=partition.topic_id, partition=partition.partition)
        decide = partial(self._machine.reads.list_offsets, [name], IsolationLevel.READ_UNCOMMITTED)
        (plan,) = await self._runner.run(decide)
        return plan if isinstance(plan, ReadPlan) else None


def _behind(damage: Damage, at: int) -> int:
    """Return where to go on: behind the damaged batch, if it says so, or at the next offset."""
    if damage.batch is None:
        return at + 1
    return max(at + 1, damage.batch.base_offset + damage.batch.record_count)
