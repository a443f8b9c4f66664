"""Produce: checks the form of batches, lets the machine give them offsets, writes the response.

Batches ride in the same journal append as the records that were decided of them, and are never
opened.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from semel.broker.v1 import broker_pb2 as wire
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import Appended
from semel_broker.rpc.request_batches import Arrival, KeyChecks, ProduceLimits, receive
from semel_common.errors import (
    SemelError,
)
from semel_common.wire.messages import request_bounds
from semel_common.wire.status import to_value
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import Reserve, StoredBatch
from semel_runtime.machine import Result
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    require_count,
    require_int,
    require_name,
)

_NO_OFFSET = -1


class BatchAppender:
    """Answers Produce."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        clock: Clock,
        limits: ProduceLimits,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock
        self._limits = limits

    async def produce(self, request: wire.ProduceRequest, call: Call) -> wire.ProduceResponse:
        """Append to each partition for itself; answer once all of it is durable."""
        del call
        _check_size(request)
        now_ms = self._clock.now_ms()
        keys = KeyChecks()
        received = [self._receive(partition, now_ms, keys) for partition in request.partitions]
        arrivals = [each for each in received if isinstance(each, Arrival)]
        appended = await self._runner.run(
            partial(self._append, arrivals, now_ms), may_use=Reserve.NONE
        )
        answers = iter(appended)
        response = wire.ProduceResponse()
        for each, result in zip(request.partitions, received, strict=True):
            answer = next(answers) if isinstance(result, Arrival) else result
            _answer(response.partitions.add(), each, answer)
        return response

    def _receive(
        self, partition: wire.ProducePartition, now_ms: int, keys: KeyChecks
    ) -> Arrival | SemelError:
        try:
            arrival = receive(partition, now_ms=now_ms, limits=self._limits)
            maximum = self._machine.compaction.keyed_batch_max_bytes(arrival.request.name)
            if maximum is not None:
                keys.check(arrival, batch_max_bytes=maximum)
            return arrival
        except SemelError as error:
            return error.as_value()

    def _append(
        self, arrivals: Sequence[Arrival], now_ms: int
    ) -> Result[list[Appended | SemelError], Record]:
        decided = self._machine.produce([arrival.request for arrival in arrivals], now_ms=now_ms)
        return Result(decided.response, decided.records, list(_placed(arrivals, decided.response)))


def _check_size(request: wire.ProduceRequest) -> None:
    """Check how much a request holds, before any of it is looked at."""
    require_count(
        "partitions", request.partitions, minimum=1, maximum=request_bounds.PRODUCED_PARTITIONS_MAX
    )
    batches = plain_records = 0
    for partition in request.partitions:
        batches += len(partition.batches)
        if partition.HasField("records"):  # To look into a message that is not there makes one.
            plain_records += len(partition.records.records)
    require_int("number of batches", batches, maximum=request_bounds.BATCHES_MAX)
    require_int("number of plain records", plain_records, maximum=request_bounds.PLAIN_RECORDS_MAX)
    if request.transactional_id:
        require_name("transactional_id", request.transactional_id)


def _placed(
    arrivals: Sequence[Arrival], answers: Sequence[Appended | SemelError]
) -> Iterator[StoredBatch]:
    """Yield the batches that were given an offset."""
    for arrival, answer in zip(arrivals, answers, strict=True):
        if isinstance(answer, Appended):
            for batch, base_offset in zip(arrival.batches, answer.base_offsets, strict=True):
                if base_offset is not None:
                    yield batch.at(answer.log_id, base_offset)


def _answer(
    result: wire.ProducePartitionResult,
    partition: wire.ProducePartition,
    answer: Appended | SemelError,
) -> None:
    if isinstance(answer, SemelError):
        result.topic_id = partition.topic_id
        result.partition = partition.partition
        result.base_offset = _NO_OFFSET
        result.error.CopyFrom(to_value(answer))
        return
    result.topic_id = answer.partition.topic_id
    result.partition = answer.partition.partition
    result.base_offset = answer.base_offset
    result.log_start_offset = answer.log_start_offset
