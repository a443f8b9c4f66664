"""Answers DescribeProducers: who writes to partitions, and who holds their last stable offsets."""

import asyncio
from functools import partial

from semel.broker.v1 import producers_pb2 as wire
from semel_broker.machine import BrokerMachine
from semel_broker.machine.describe import DescribedProducer, PartitionProducers
from semel_broker.machine.records import ProducerState, Record
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_common.sequences import next_sequence
from semel_common.wire.request_bounds import DESCRIBED_PARTITIONS_MAX, ID_LENGTH_MAX
from semel_common.wire.status import to_value
from semel_runtime.clock import Clock
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.checks import INT32_MAX, require_count, require_int, require_name
from semel_runtime.server.pages import Page, no_room

_PRODUCERS_MAX = 1_000


class ProducerDescriber:
    """Answers DescribeProducers."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine, clock: Clock) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock

    async def describe_producers(
        self, request: wire.DescribeProducersRequest, _call: Call
    ) -> wire.DescribeProducersResponse:
        """Describe each partition, or say why not."""
        require_count("partitions", request.partitions, minimum=1, maximum=DESCRIBED_PARTITIONS_MAX)
        limit = require_int("limit", request.limit, maximum=_PRODUCERS_MAX) or _PRODUCERS_MAX
        partitions = [
            TopicPartition(
                require_name("topic_id", each.topic_id, length_max=ID_LENGTH_MAX),
                require_int("partition", each.partition, maximum=INT32_MAX),
            )
            for each in request.partitions
        ]
        query = partial(self._machine.describe_producers, partitions, limit)
        described = await self._runner.run(query)
        now_ms, page = self._clock.now_ms(), Page(0)
        response = wire.DescribeProducersResponse()
        for asked, answer in zip(request.partitions, described, strict=True):
            out = wire.PartitionProducers(partition=asked)
            if isinstance(answer, SemelError):
                out.error.CopyFrom(to_value(answer))
            else:
                _write(answer, now_ms, out)
            if not page.takes(out):
                refused = no_room(f"partition {asked.partition} of topic id {asked.topic_id!r}")
                out = wire.PartitionProducers(partition=asked, error=to_value(refused))
            response.partitions.append(out)
            await asyncio.sleep(0)
        return response


def _write(described: PartitionProducers, now_ms: int, out: wire.PartitionProducers) -> None:
    out.high_watermark = described.high_watermark
    out.last_stable_offset = described.last_stable_offset
    out.producer_count = described.producer_count
    out.producers.extend(_producer(each, now_ms) for each in described.producers)


def _producer(described: DescribedProducer, now_ms: int) -> wire.ProducerDescription:
    state = described.state
    return wire.ProducerDescription(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=_last_sequence(state),
        last_timestamp_ms=state.last_timestamp_ms,
        fence=state.fence,
        open_transactions=[
            wire.OpenTransactionOfProducer(
                producer_epoch=each.producer_epoch,
                first_offset=each.first_offset,
                start_time_ms=each.start_ms,
                age_ms=max(0, now_ms - each.start_ms),
            )
            for each in described.open_transactions
        ],
    )


def _last_sequence(state: ProducerState) -> int:
    if not state.batches:
        return -1
    last = state.batches[-1]
    return next_sequence(last.base_sequence, last.record_count - 1)
