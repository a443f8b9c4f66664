"""DescribeWrites: what one transaction has written to partitions, also after it has ended.

Theory of operation. The broker keeps no index of transactions that have committed: it would cost
every transaction something, for a question that people ask seldom. The headers of batches name
their transaction, so a call looks at the headers from an offset or a time on, up to the marker.
A call looks at a bounded number of them, and answers where to go on.
"""

from functools import partial

from semel.broker.v1.producers_pb2 import (
    DescribeWritesPartition,
    DescribeWritesRequest,
    DescribeWritesResponse,
    PartitionWrites,
)
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import IsolationLevel, PartitionName, ReadPlan
from semel_broker.rpc.partition_names import partition_name
from semel_broker.storage.log_reader import LogReader
from semel_broker.storage.stored_batches import read_header
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire.messages.request_bounds import ASKED_PARTITIONS_MAX
from semel_common.wire.status import to_value
from semel_runtime.journal.contract import StoredBatch
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int

NONE = -1
_BATCHES_PER_CALL = 20_000
_BATCHES_PER_STEP = 1_000


class WriteDescriber:
    """Answers DescribeWrites."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, logs: LogReader) -> None:
        self._runner = runner
        self._machine = machine
        self._logs = logs

    async def describe_writes(
        self, request: DescribeWritesRequest, call: Call
    ) -> DescribeWritesResponse:
        """Look for the transaction in each partition; errors are values."""
        del call
        require_count("partitions", request.partitions, minimum=1, maximum=ASKED_PARTITIONS_MAX)
        require_int("producer_id", request.producer_id, minimum=1)
        require_int("producer_epoch", request.producer_epoch)
        names = [_checked(partition) for partition in request.partitions]
        locate = partial(self._machine.reads.list_offsets, names, IsolationLevel.READ_UNCOMMITTED)
        plans = await self._runner.run(locate)
        response = DescribeWritesResponse()
        left = _BATCHES_PER_CALL
        for asked, name, plan in zip(request.partitions, names, plans, strict=True):
            found = response.partitions.add(
                topic_id=name.topic_id,
                partition=name.partition,
                first_offset=NONE,
                last_offset=NONE,
                first_timestamp_ms=NONE,
                marker_offset=NONE,
            )
            try:
                if isinstance(plan, SemelError):
                    raise plan
                found.topic_id, found.end_offset = plan.partition.topic_id, plan.upto
                found.next_offset = await self._start(asked, plan)
                left = await self._look(request, plan, found, left)
            except SemelError as error:
                found.error.CopyFrom(to_value(error))
        return response

    async def _start(self, asked: DescribeWritesPartition, plan: ReadPlan) -> int:
        if asked.HasField("from_offset"):
            return max(asked.from_offset, plan.log_start_offset)
        found = await self._logs.first_at(
            plan.place, asked.from_time_ms, upto=plan.upto, start=plan.log_start_offset
        )
        return plan.upto if found is None else found.base_offset

    async def _look(
        self, request: DescribeWritesRequest, plan: ReadPlan, found: PartitionWrites, left: int
    ) -> int:
        """Look on in one partition; returns how many batches the call may still look at."""
        while left > 0 and found.next_offset < plan.upto:
            rows_max = min(left, _BATCHES_PER_STEP)
            headers = await self._logs.read_headers(
                plan.place, found.next_offset, rows_max=rows_max, upto=plan.upto
            )
            if not headers:
                found.next_offset = plan.upto  # Compaction has left nothing.
            for stored in headers:
                left -= 1
                _note(request, stored, found)
                if found.marker_offset != NONE:
                    return left
        return left


def _note(request: DescribeWritesRequest, stored: StoredBatch, found: PartitionWrites) -> None:
    """Take a batch into the answer, if the transaction wrote it."""
    found.next_offset = stored.base_offset + stored.record_count
    header = read_header(stored)
    writer = (header.producer_id, header.producer_epoch)
    if not header.transactional or writer != (request.producer_id, request.producer_epoch):
        return
    if header.control:
        found.marker_offset = stored.base_offset
        return
    if found.first_offset == NONE:
        found.first_offset = stored.base_offset
        found.first_timestamp_ms = header.max_timestamp_ms
    found.last_offset = found.next_offset - 1
    found.record_count += header.record_count


def _checked(asked: DescribeWritesPartition) -> PartitionName:
    match asked.WhichOneof("start"):
        case "from_offset":
            require_int("from_offset", asked.from_offset)
        case "from_time_ms":
            require_int("from_time_ms", asked.from_time_ms)
        case None:
            raise InvalidRequestError(
                "neither from_offset nor from_time_ms is set", field="from_offset"
            )
    return partition_name(asked)
