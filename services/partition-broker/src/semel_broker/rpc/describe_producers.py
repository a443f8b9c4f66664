"""Answers DescribeProducers: producers of partitions, and holders of their last stable offsets."""

import asyncio
from functools import partial

from semel.broker.v1 import producers_pb2 as wire
from semel.common.v1.participants_pb2 import TopicPartition as TopicPartitionOnWire
from semel_broker.machine import BrokerMachine
from semel_broker.machine.descriptions import DescribedProducer, PartitionProducers
from semel_broker.machine.records import ProducerState, Record
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_common.record_batches.sequence_numbers import next_sequence
from semel_common.wire.messages.request_bounds import DESCRIBED_PARTITIONS_MAX, ID_LENGTH_MAX
from semel_common.wire.status import to_value
from semel_runtime.clock import Clock
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    INT32_MAX,
    INT64_MAX,
    require_count,
    require_int,
    require_name,
)
from semel_runtime.server.pages import Page, PageTokens, no_room, refuse_token

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
        if request.paged:
            return await self._page(request)
        refuse_token(request.page_token, unless="paged")
        limit = require_int("limit", request.limit, maximum=_PRODUCERS_MAX) or _PRODUCERS_MAX
        partitions = list(map(_checked, request.partitions))
        query = partial(self._machine.descriptions.describe_producers, partitions, limit)
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

    async def _page(self, request: wire.DescribeProducersRequest) -> wire.DescribeProducersResponse:
        """Describe a page of one partition's producers, in the order of their ids."""
        require_count("partitions", request.partitions, minimum=1, maximum=1)
        (asked,) = request.partitions
        page = Page(request.limit, unless_limited=_PRODUCERS_MAX)
        tokens = PageTokens("DescribeProducers", f"{asked.topic_id}:{asked.partition}")
        query = partial(
            self._machine.descriptions.describe_producers_behind,
            _checked(asked),
            _producer_id(request.page_token, tokens),
            page.items_max + 1,
        )
        described = await self._runner.run(query)
        response = wire.DescribeProducersResponse()
        out = response.partitions.add(partition=asked)
        if isinstance(described, SemelError):
            out.error.CopyFrom(to_value(described))
            return response
        _write_standing(described, out)
        now_ms = self._clock.now_ms()
        for producer in described.producers:
            entry = _producer(producer, now_ms)
            if not page.takes(entry):
                last = out.producers[-1].producer_id
                response.next_page_token = tokens.after(str(last))
                break
            out.producers.append(entry)
        return response


def _checked(asked: TopicPartitionOnWire) -> TopicPartition:
    return TopicPartition(
        require_name("topic_id", asked.topic_id, length_max=ID_LENGTH_MAX),
        require_int("partition", asked.partition, maximum=INT32_MAX),
    )


def _producer_id(token: str, tokens: PageTokens) -> int:
    """Return the producer id behind which a page begins. Raises InvalidRequestError."""
    key = tokens.key(token)
    if key is None:
        return 0
    if not key.isdecimal() or int(key) > INT64_MAX:
        raise tokens.unknown(token)
    return int(key)


def _write(described: PartitionProducers, now_ms: int, out: wire.PartitionProducers) -> None:
    _write_standing(described, out)
    out.producers.extend(_producer(producer, now_ms) for producer in described.producers)


def _write_standing(described: PartitionProducers, out: wire.PartitionProducers) -> None:
    out.high_watermark = described.high_watermark
    out.last_stable_offset = described.last_stable_offset
    out.producer_count = described.producer_count


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
                producer_epoch=open_transaction.producer_epoch,
                first_offset=open_transaction.first_offset,
                start_time_ms=open_transaction.start_ms,
                age_ms=max(0, now_ms - open_transaction.start_ms),
            )
            for open_transaction in described.open_transactions
        ],
    )


def _last_sequence(state: ProducerState) -> int:
    if not state.batches:
        return -1
    last = state.batches[-1]
    return next_sequence(last.base_sequence, last.record_count - 1)
