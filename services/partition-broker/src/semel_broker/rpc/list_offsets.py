"""ListOffsets: the earliest offset, the latest, or that of a record that is found by its time.

A search by time finds the batch by its newest timestamp, then opens that one payload to find the
record: next to plain records, the only reason to open one.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from semel.broker.v1.broker_pb2 import (
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetSpec,
)
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import IsolationLevel, PartitionName, ReadPlan
from semel_broker.rpc.partition_names import isolation_level, partition_name
from semel_broker.storage.batch_integrity import NEVER
from semel_broker.storage.log_reader import LogReader
from semel_broker.storage.opened_payloads import PayloadOpener
from semel_broker.storage.partition_reader import is_committed
from semel_broker.storage.stored_batches import read_batch, read_header
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.record_batches.batches import decode_records
from semel_common.record_batches.payload_limits import OPENED_MAX_BYTES
from semel_common.wire.messages.request_bounds import ASKED_PARTITIONS_MAX
from semel_common.wire.status import to_value
from semel_runtime.journal.contract import BatchPosition, StoredBatch
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int, require_known

NO_OFFSET = -1
_SPECS = (
    OffsetSpec.OFFSET_SPEC_EARLIEST,
    OffsetSpec.OFFSET_SPEC_LATEST,
    OffsetSpec.OFFSET_SPEC_MAX_TIMESTAMP,
)
_HEADERS_PER_STEP = 100
"""The number of batches that a search by time looks at, from the first that the index has found.
Dropped batches and late ones stand side by side: the index finds all others.
"""


class RecordAt(NamedTuple):
    """A record, by its offset and its timestamp."""

    offset: int
    timestamp_ms: int


class OffsetLister:
    """Answers ListOffsets."""

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

    async def list_offsets(self, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
        """Find one offset in each partition; errors are values."""
        del call
        require_count("partitions", request.partitions, minimum=1, maximum=ASKED_PARTITIONS_MAX)
        isolation = isolation_level(request.isolation_level)
        names = [_checked(partition) for partition in request.partitions]
        plans = await self._runner.run(partial(self._machine.reads.list_offsets, names, isolation))
        response = ListOffsetsResponse()
        for each, name, plan in zip(request.partitions, names, plans, strict=True):
            result = response.partitions.add(topic_id=name.topic_id, partition=name.partition)
            try:
                await self._find(each, plan, isolation, result)
            except SemelError as error:
                result.error.CopyFrom(to_value(error))
        return response

    async def _find(
        self,
        wanted: ListOffsetsPartition,
        plan: ReadPlan | SemelError,
        isolation: IsolationLevel,
        result: ListOffsetsPartitionResult,
    ) -> None:
        if isinstance(plan, SemelError):
            raise plan
        result.topic_id = plan.partition.topic_id
        result.timestamp_ms = NO_OFFSET
        if wanted.HasField("timestamp_ms"):
            _answer(result, await self._search(wanted.timestamp_ms, plan, isolation))
        elif wanted.spec == OffsetSpec.OFFSET_SPEC_EARLIEST:
            result.offset = plan.log_start_offset
        elif wanted.spec == OffsetSpec.OFFSET_SPEC_MAX_TIMESTAMP:
            _answer(result, await self._newest(plan, isolation))
        else:
            result.offset = plan.upto

    async def _search(
        self, timestamp_ms: int, plan: ReadPlan, isolation: IsolationLevel
    ) -> RecordAt | None:
        """Return the first record at or after a time that the reader may see."""
        # The first batch may begin before the log does, where the index does not look for it.
        offset, rows_max = plan.log_start_offset, 1
        while offset < plan.upto:
            for stored in await self._logs.read_headers(
                plan.place, offset, rows_max=rows_max, upto=plan.upto
            ):
                offset = stored.base_offset + stored.record_count
                if stored.max_timestamp_ms >= timestamp_ms and _is_visible(stored, plan, isolation):
                    record = await self._open(stored.base_offset, timestamp_ms, plan, isolation)
                    if record is not None:
                        return record
            found = await self._logs.first_at(
                plan.place, timestamp_ms, upto=plan.upto, start=offset
            )
            offset = plan.upto if found is None else found.base_offset
            rows_max = _HEADERS_PER_STEP
        return None

    async def _newest(self, plan: ReadPlan, isolation: IsolationLevel) -> RecordAt | None:
        """Return the first of the records with the newest timestamp that the reader may see."""
        newest: RecordAt | None = None
        upto: int | None = plan.upto
        while upto is not None and upto > plan.log_start.offset:
            earliest_ms = 0 if newest is None else newest.timestamp_ms
            later = await self._logs.later(plan.place, earliest_ms, upto=upto)
            newest = await self._first_visible(later.found, plan, isolation) or newest
            upto = later.upto
        return newest

    async def _first_visible(
        self, positions: Sequence[BatchPosition], plan: ReadPlan, isolation: IsolationLevel
    ) -> RecordAt | None:
        for position in positions:
            record = await self._open(
                position.base_offset, position.max_timestamp_ms, plan, isolation
            )
            if record is not None:
                return record
        return None

    async def _open(
        self, at: int, timestamp_ms: int, plan: ReadPlan, isolation: IsolationLevel
    ) -> RecordAt | None:
        """Return the first record at or after a time of one batch, if the reader may see it."""
        for stored in await self._logs.read(plan.place, at, max_bytes=1, upto=at + 1):
            # What was cut off since the plan was made is not answered any more.
            start = plan.log_start.offset
            is_cut = stored.base_offset + stored.record_count <= start
            if not is_cut and _is_visible(stored, plan, isolation):
                work = partial(_first_record, stored, timestamp_ms, start)
                return await self._opener.run(stored, work)
        return None


def _answer(result: ListOffsetsPartitionResult, found: RecordAt | None) -> None:
    result.offset, result.timestamp_ms = found or (NO_OFFSET, NO_OFFSET)


def _checked(partition: ListOffsetsPartition) -> PartitionName:
    match partition.WhichOneof("position"):
        case "timestamp_ms":
            require_int("timestamp_ms", partition.timestamp_ms)
        case "spec":
            require_known("spec", partition.spec, _SPECS)
        case None:
            raise InvalidRequestError("neither spec nor timestamp_ms is set", field="spec")
    return partition_name(partition)


def _is_visible(stored: StoredBatch, plan: ReadPlan, isolation: IsolationLevel) -> bool:
    if isolation is IsolationLevel.READ_UNCOMMITTED:
        return True
    return is_committed(read_header(stored), stored.base_offset, plan)


def _first_record(stored: StoredBatch, timestamp_ms: int, log_start_offset: int) -> RecordAt | None:
    """Return the first record of a batch that is late enough, if it has one.

    Of a batch that cannot be opened, or whose records are all older than its header says, it is the
    batch itself: a search goes by headers, and opens no more than one payload of a whole batch.
    """
    if stored.max_timestamp_ms == NEVER or stored.max_timestamp_ms < timestamp_ms:
        return None
    try:
        columns = decode_records(read_batch(stored), payload_max_bytes=OPENED_MAX_BYTES)
    except SemelError:
        return RecordAt(max(stored.base_offset, log_start_offset), stored.max_timestamp_ms)
    offsets = columns.offsets(stored.base_offset)
    for offset, time_ms in zip(offsets, columns.timestamps_ms, strict=True):
        if time_ms >= timestamp_ms and offset >= log_start_offset:
            return RecordAt(offset, time_ms)
    if stored.base_offset >= log_start_offset and columns.offset_deltas is None:
        return RecordAt(stored.base_offset, stored.max_timestamp_ms)
    return None
