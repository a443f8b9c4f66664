"""ListOffsets: the earliest offset, the latest, or the first at or after a time.

A search by time finds the batch by its newest timestamp, then opens that one payload to find the
record: next to plain records, the only reason to open one.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

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
from semel_broker.names import isolation_level, partition_name
from semel_broker.reader import OPENED_MAX_BYTES, is_committed
from semel_broker.stored import NEVER, read_batch
from semel_common.batches import decode_records
from semel_common.errors import InvalidRequestError, KafkaStorageError, SemelError
from semel_common.wire.status import to_value
from semel_runtime.journal.base import BatchStore, StoredBatch
from semel_runtime.journal.errors import JournalError
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.checks import require_count, require_int, require_known

NO_OFFSET = -1
_PARTITIONS_MAX = 10_000
_STEP_BYTES = 1 << 20


class OffsetLister:
    """Answers ListOffsets."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, store: BatchStore) -> None:
        self._runner = runner
        self._machine = machine
        self._store = store

    async def list_offsets(self, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
        """Find one offset in each partition; errors are values."""
        del call
        require_count("partitions", request.partitions, minimum=1, maximum=_PARTITIONS_MAX)
        isolation = isolation_level(request.isolation_level)
        names = [_checked(each) for each in request.partitions]
        plans = await self._runner.run(partial(self._machine.list_offsets, names, isolation))
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
            await self._find_by_time(wanted.timestamp_ms, plan, isolation, result)
        elif wanted.spec == OffsetSpec.OFFSET_SPEC_EARLIEST:
            result.offset = plan.log_start_offset
        else:
            result.offset = plan.upto

    async def _find_by_time(
        self,
        timestamp_ms: int,
        plan: ReadPlan,
        isolation: IsolationLevel,
        result: ListOffsetsPartitionResult,
    ) -> None:
        result.offset = NO_OFFSET
        try:
            found = await self._search(timestamp_ms, plan, isolation)
        except JournalError as error:
            raise KafkaStorageError(f"log cannot be searched: {error}") from error
        if found is not None:
            _answer_record(result, found, timestamp_ms)

    async def _search(
        self, timestamp_ms: int, plan: ReadPlan, isolation: IsolationLevel
    ) -> StoredBatch | None:
        """Return the first batch with a record at or after a time that the reader may see."""
        found = await self._store.first_at(plan.log_id, timestamp_ms, upto=plan.upto)
        offset = plan.upto if found is None else max(found.base_offset, plan.log_start_offset)
        while offset < plan.upto:
            batches = await self._store.read(
                plan.log_id, offset, max_bytes=_STEP_BYTES, upto=plan.upto
            )
            for stored in batches:
                if _is_late_enough(stored, timestamp_ms) and _is_visible(stored, plan, isolation):
                    return stored
            offset = batches[-1].base_offset + batches[-1].record_count if batches else plan.upto
        return None


def _checked(partition: ListOffsetsPartition) -> PartitionName:
    match partition.WhichOneof("position"):
        case "timestamp_ms":
            require_int("timestamp_ms", partition.timestamp_ms)
        case "spec":
            known = (OffsetSpec.OFFSET_SPEC_EARLIEST, OffsetSpec.OFFSET_SPEC_LATEST)
            require_known("spec", partition.spec, known)
        case None:
            raise InvalidRequestError("neither spec nor timestamp_ms is set", field="spec")
    return partition_name(partition)


def _is_late_enough(stored: StoredBatch, timestamp_ms: int) -> bool:
    return stored.max_timestamp_ms != NEVER and stored.max_timestamp_ms >= timestamp_ms


def _is_visible(stored: StoredBatch, plan: ReadPlan, isolation: IsolationLevel) -> bool:
    return isolation is IsolationLevel.READ_UNCOMMITTED or is_committed(stored, plan)


def _answer_record(
    result: ListOffsetsPartitionResult, stored: StoredBatch, timestamp_ms: int
) -> None:
    """Answer the record of a batch that is late enough; of one that cannot be opened, the first."""
    position = 0
    offsets: Sequence[int] = [stored.base_offset]
    times_ms: Sequence[int] = [stored.max_timestamp_ms]
    with suppress(SemelError):
        columns = decode_records(read_batch(stored), payload_max_bytes=OPENED_MAX_BYTES)
        offsets, times_ms = columns.offsets(stored.base_offset), columns.timestamps_ms
        position = next((i for i, time_ms in enumerate(times_ms) if time_ms >= timestamp_ms), 0)
    result.offset = offsets[position]
    result.timestamp_ms = times_ms[position]
