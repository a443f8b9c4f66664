"""Fetch: plan, read, and wait for more until there is enough.

Theory of operation. A plan is decided behind the runner's barrier, so every record that it allows
is durable. If the read has found less than ``min_bytes``, and nothing more fits or failed, the call
waits for the commit that moves one of its partitions, and goes on from where it stopped.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from semel.broker.v1.broker_pb2 import FetchRequest, FetchResponse
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import FetchPosition, IsolationLevel, PartitionName, ReadPlan
from semel_broker.rpc.fetch_waiters import Waiters
from semel_broker.rpc.partition_names import isolation_level, partition_name
from semel_broker.rpc.read_budget import Budget
from semel_broker.storage.batch_outcomes import add_outcomes
from semel_broker.storage.log_reader import LogReader
from semel_broker.storage.opened_payloads import PayloadOpener
from semel_broker.storage.partition_reader import AsBatches, AsRecords, Cursor, Turns
from semel_common.errors import InvalidRequestError, SemelError, ThrottlingQuotaExceededError
from semel_common.wire.messages.request_bounds import FETCHED_PARTITIONS_MAX
from semel_common.wire.status import to_value
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_count, require_int

_DEFAULT_MAX_BYTES = 1 << 20
_PLAIN_MAX_BYTES = 1 << 20
"""Plain records are handled one by one, and meanwhile the loop serves no other call."""
_BATCH_BYTES = 1 << 20
"""What a read may find, however little it asks for: the first batch is answered whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much one call may read."""

    fetch_max_bytes: int = 16 << 20
    """The most that one call answers, whatever it asks for; one batch may go over it."""
    in_progress_max_bytes: int = 128 << 20
    """The most that all calls together may read and have read while their answers are not written;
    past it, none waits for more records, and after a while new ones are refused."""
    room_max_wait_ms: int = 1_000
    """How long a call waits for others to give back what they hold."""
    partitions_max: int = FETCHED_PARTITIONS_MAX
    """The most partitions of one call."""


@dataclass(slots=True, kw_only=True)
class _Partition:
    """One partition of a call."""

    name: PartitionName
    cursor: Cursor
    log_id: int | None = None
    """Set as long as it can be read."""


@dataclass(slots=True, kw_only=True)
class _Query:
    """A checked call."""

    isolation: IsolationLevel
    with_outcomes: bool
    min_bytes: int
    max_bytes: int
    records_left: int
    """How many records the answer has room for; INT32_MAX: as many as ``max_bytes`` allows."""
    until: float
    """When to stop waiting, in event-loop time."""
    partitions: Sequence[_Partition]
    found_bytes: int = 0
    held_bytes: int = 0
    """What was found takes in memory, about."""

    def complete(self) -> bool:
        """Whether waiting would add nothing."""
        is_full = self.found_bytes >= self.min_bytes or self.records_left <= 0
        return is_full or any(
            partition.log_id is None or partition.cursor.more for partition in self.partitions
        )

    def awaited_offsets(self) -> dict[int, int]:
        """Return where each log is waited for; of one named twice, where it is furthest behind."""
        offsets: dict[int, int] = {}
        for partition in self.partitions:
            assert partition.log_id is not None, "a call with an error is answered at once"
            at = partition.cursor.next_offset
            offsets[partition.log_id] = min(at, offsets.get(partition.log_id, at))
        return offsets


class Fetcher:
    """Answers Fetch."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        logs: LogReader,
        waiters: Waiters,
        limits: FetchLimits,
        opener: PayloadOpener,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._logs = logs
        self._waiters = waiters
        self._limits = limits
        self._opener = opener
        self._budget = Budget(limits.in_progress_max_bytes)

    @property
    def held_bytes(self) -> int:
        """Bytes that reads hold until their answers are written."""
        return self._budget.held_bytes

    async def fetch(self, request: FetchRequest, call: Call) -> FetchResponse:
        """Read from partitions; wait for ``min_bytes``, at most for ``max_wait_ms``."""
        response = FetchResponse()
        query = self._check(request, call, response)
        try:
            await self._fetch(query)
        except BaseException:
            self._budget.release(query.held_bytes)
            raise
        call.when_written(partial(self._budget.release, query.held_bytes))
        return response

    async def _fetch(self, query: _Query) -> None:
        await self._read_on(query)
        while not query.complete() and self._budget.has_room():
            offsets = query.awaited_offsets()
            if not await self._waiters.wait(offsets, query.isolation, until=query.until):
                break
            await self._read_on(query)

    def _check(self, request: FetchRequest, call: Call, response: FetchResponse) -> _Query:
        require_count(
            "partitions", request.partitions, minimum=1, maximum=self._limits.partitions_max
        )
        isolation = isolation_level(request.isolation_level)
        max_wait_ms = require_int("max_wait_ms", request.max_wait_ms, maximum=INT32_MAX)
        wait_ms = min(max_wait_ms, call.remaining_ms(max_wait_ms))
        max_bytes = self._max_bytes("max_bytes", request.max_bytes, _DEFAULT_MAX_BYTES)
        if request.plain_records:
            max_bytes = min(max_bytes, _PLAIN_MAX_BYTES)
        return _Query(
            isolation=isolation,
            with_outcomes=_with_outcomes(request),
            min_bytes=max(1, require_int("min_bytes", request.min_bytes, maximum=INT32_MAX)),
            max_bytes=max_bytes,
            records_left=require_int("max_records", request.max_records, maximum=INT32_MAX)
            or INT32_MAX,
            until=asyncio.get_running_loop().time() + wait_ms / 1000,
            partitions=self._partitions(request, isolation, max_bytes, response),
        )

    def _partitions(
        self,
        request: FetchRequest,
        isolation: IsolationLevel,
        max_bytes: int,
        response: FetchResponse,
    ) -> Sequence[_Partition]:
        unpacks = request.plain_records
        turns = Turns()
        partitions = []
        for partition in request.partitions:
            result = response.partitions.add()
            partition_max_bytes = partition.partition_max_bytes
            cursor = Cursor(
                result=result,
                isolation=isolation,
                form=AsRecords(result, self._opener) if unpacks else AsBatches(result),
                turns=turns,
                unpacks=unpacks,
                next_offset=require_int("fetch_offset", partition.fetch_offset),
                bytes_left=self._max_bytes("partition_max_bytes", partition_max_bytes, max_bytes),
            )
            partitions.append(_Partition(name=partition_name(partition), cursor=cursor))
        return partitions

    def _max_bytes(self, field: str, value: int, default: int) -> int:
        require_int(field, value, maximum=INT32_MAX)
        return min(value or default, self._limits.fetch_max_bytes)

    async def _read_on(self, query: _Query) -> None:
        """Plan again, and read what the plan allows."""
        positions = [FetchPosition(each.name, each.cursor.next_offset) for each in query.partitions]
        decide = partial(
            self._machine.reads.fetch,
            positions,
            query.isolation,
            with_outcomes=query.with_outcomes,
        )
        plans = await self._runner.run(decide)
        for partition, plan in zip(query.partitions, plans, strict=True):
            await self._read_partition(query, partition, plan)

    async def _read_partition(
        self, query: _Query, partition: _Partition, plan: ReadPlan | SemelError
    ) -> None:
        cursor = partition.cursor
        if isinstance(plan, SemelError):
            _fail(partition, plan)
            return
        partition.log_id = plan.log_id
        room_bytes = min(query.max_bytes - query.held_bytes, cursor.bytes_left)
        if cursor.next_offset < plan.upto:
            if room_bytes > 0 and query.records_left > 0:
                await self._read_reserved(query, partition, plan, room_bytes)
            else:
                cursor.more = (
                    True  # Nothing would be waited for: there is more, and no room for it.
                )
        _describe(cursor, plan)
        if query.with_outcomes:
            await add_outcomes(cursor.result, plan, cursor.turns)

    async def _read_reserved(
        self, query: _Query, partition: _Partition, plan: ReadPlan, room_bytes: int
    ) -> None:
        """Read with room for it; without room, answer what was found before."""
        cursor = partition.cursor
        topic = self._machine.cluster.find_topic(plan.partition.topic_id)
        cursor.topic = "" if topic is None else topic.name
        until = asyncio.get_running_loop().time() + self._limits.room_max_wait_ms / 1000
        wanted_bytes = max(room_bytes, _BATCH_BYTES)
        granted_bytes = await self._budget.reserve(wanted_bytes, until=until)
        if not granted_bytes:
            if not query.found_bytes:
                raise ThrottlingQuotaExceededError(
                    f"fetches in progress hold {self._budget.held_bytes} bytes already"
                )
            cursor.more = True
            return
        found_before, held_before = cursor.found_bytes, cursor.held_bytes
        cursor.records_left = query.records_left
        try:
            await cursor.read(self._logs, plan, min(granted_bytes, room_bytes))
        except SemelError as error:
            _fail(partition, error)
        finally:
            held_bytes = cursor.held_bytes - held_before
            query.records_left = cursor.records_left
            query.found_bytes += cursor.found_bytes - found_before
            query.held_bytes += held_bytes
            self._budget.take(held_bytes)
            self._budget.release(granted_bytes)


def _with_outcomes(request: FetchRequest) -> bool:
    if request.batch_outcomes and request.plain_records:
        raise InvalidRequestError(
            "batch_outcomes is set, and the outcomes are of batches: plain_records has none",
            field="batch_outcomes",
        )
    return request.batch_outcomes


def _describe(cursor: Cursor, plan: ReadPlan) -> None:
    result = cursor.result
    result.topic_id = plan.partition.topic_id
    result.partition = plan.partition.partition
    result.log_start_offset = plan.log_start_offset
    result.high_watermark = plan.high_watermark
    result.last_stable_offset = plan.last_stable_offset
    result.next_offset = cursor.next_offset


def _fail(partition: _Partition, error: SemelError) -> None:
    """Answer an error, unless the call found something before: then that comes first."""
    partition.log_id = None
    if not partition.cursor.found_bytes:
        result = partition.cursor.result
        result.topic_id = partition.name.topic_id
        result.partition = partition.name.partition
        result.next_offset = partition.cursor.next_offset
        result.error.CopyFrom(to_value(error))
