"""CountRecords: how many records lie before a reader, markers and aborted ones left out.

Theory of operation. The broker counts nothing in advance: an up-to-date sum would cost every write
something, and every abort, deletion and compaction would have to correct it. Instead, a call looks
at the headers of the batches in question; payloads stay closed, except where compaction may have
taken records out of them. So a count costs as much as the lag has batches. A call looks at a
bounded number of them, and answers where to go on.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from semel.broker.v1.broker_pb2 import (
    CountRecordsPartitionResult,
    CountRecordsRequest,
    CountRecordsResponse,
)
from semel.common.v1.records_pb2 import RecordBatch
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import IsolationLevel, ReadPlan
from semel_broker.rpc.partition_names import isolation_level, partition_name
from semel_broker.storage.log_reader import LogReader
from semel_broker.storage.opened_payloads import PayloadOpener, opens_to
from semel_broker.storage.partition_reader import is_committed
from semel_broker.storage.stored_batches import read_batch, read_header
from semel_common.errors import SemelError
from semel_common.record_batches.batches import decode_records
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_common.wire.messages.request_bounds import ASKED_PARTITIONS_MAX
from semel_common.wire.status import to_value
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int

_BATCHES_PER_CALL = 20_000
_BATCHES_PER_STEP = 1_000
_OPENED_BYTES_PER_STEP = 1 << 20
_OPENED_COST = 20
"""How many headers take as long to look at as one small payload, about."""
_OPENED_BYTES_OF_HEADER = 4 << 10
"""How much of a large payload takes as long to open as one header to look at, about."""


class RecordCounter:
    """Answers CountRecords."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        logs: LogReader,
        opener: PayloadOpener,
    ) -> None:
        self._opener = opener
        self._runner = runner
        self._machine = machine
        self._logs = logs

    async def count_records(self, request: CountRecordsRequest, call: Call) -> CountRecordsResponse:
        """Count in each partition; errors are values."""
        del call
        require_count("partitions", request.partitions, minimum=1, maximum=ASKED_PARTITIONS_MAX)
        isolation = isolation_level(request.isolation_level)
        names = [partition_name(partition) for partition in request.partitions]
        starts = [
            require_int("from_offset", partition.from_offset) for partition in request.partitions
        ]
        plans = await self._runner.run(partial(self._machine.reads.list_offsets, names, isolation))
        response = CountRecordsResponse()
        left = _BATCHES_PER_CALL
        for name, start, plan in zip(names, starts, plans, strict=True):
            result = response.partitions.add(topic_id=name.topic_id, partition=name.partition)
            try:
                left = await self._count(plan, start, isolation, result, left)
            except SemelError as error:
                result.error.CopyFrom(to_value(error))
        return response

    async def _count(
        self,
        plan: ReadPlan | SemelError,
        start: int,
        isolation: IsolationLevel,
        result: CountRecordsPartitionResult,
        left: int,
    ) -> int:
        """Count on in one partition; returns how many batches may still be looked at."""
        if isinstance(plan, SemelError):
            raise plan
        result.topic_id = plan.partition.topic_id
        result.end_offset = plan.upto
        result.next_offset = max(start, plan.log_start_offset)
        while left > 0 and result.next_offset < plan.upto:
            batches = await self._read(plan, result.next_offset, left)
            if not batches:
                result.next_offset = plan.upto
            for stored in batches:
                header = read_header(stored)
                if _is_seen(header, stored.base_offset, plan, isolation):
                    count = await self._records_from(stored, result.next_offset)
                    if count and not result.record_count:
                        result.first_timestamp_ms = header.max_timestamp_ms
                    result.record_count += count
                result.next_offset = stored.base_offset + stored.record_count
                left -= _cost(stored)
                if left <= 0:
                    break
        return left

    async def _records_from(self, stored: StoredBatch, offset: int) -> int:
        if not stored.payload:
            return _records_from(stored, offset)
        return await self._opener.run(stored, partial(_records_from, stored, offset))

    async def _read(self, plan: ReadPlan, offset: int, left: int) -> Sequence[StoredBatch]:
        """Read some batches; their payloads only if those are needed."""
        if offset < plan.sparse_below:
            return await self._logs.read(
                plan.place, offset, max_bytes=_OPENED_BYTES_PER_STEP, upto=plan.upto
            )
        rows_max = min(left, _BATCHES_PER_STEP)
        return await self._logs.read_headers(plan.place, offset, rows_max=rows_max, upto=plan.upto)


def _cost(stored: StoredBatch) -> int:
    """Return how many headers take as long to look at as a batch, about."""
    if not stored.payload:
        return 1
    return max(_OPENED_COST, opens_to(stored) // _OPENED_BYTES_OF_HEADER)


def _is_seen(
    header: RecordBatch, base_offset: int, plan: ReadPlan, isolation: IsolationLevel
) -> bool:
    if isolation is IsolationLevel.READ_COMMITTED:
        return is_committed(header, base_offset, plan)
    return not header.control


def _records_from(stored: StoredBatch, offset: int) -> int:
    """Return how many records a batch has from an offset on.

    Of a batch that cannot be opened, compaction has taken none.
    """
    offsets: Sequence[int] = range(stored.base_offset, stored.base_offset + stored.record_count)
    if stored.payload:
        with suppress(SemelError):
            columns = decode_records(read_batch(stored), payload_max_bytes=OPENED_MAX_BYTES)
            offsets = columns.offsets(stored.base_offset)
    return len(offsets) - bisect_left(offsets, offset)
