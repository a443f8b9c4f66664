"""Produce and WriteTxnMarkers: check the form, run a handler of the machine, write the response.

Batches ride in the same journal append as the records that were decided of them, and are never
opened.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from semel.broker.v1 import broker_pb2 as wire
from semel.common.v1.participants_pb2 import (
    Participant,
    TransactionResult,
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from semel.common.v1.participants_pb2 import TopicPartition as WirePartition
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import Appended, Outcome
from semel_broker.rpc.fetch_waiters import Waiters
from semel_broker.rpc.request_batches import Arrival, KeyChecks, ProduceLimits, receive
from semel_broker.storage.stored_batches import markers
from semel_common.errors import (
    BrokerNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
    SemelError,
)
from semel_common.ids import TopicPartition
from semel_common.wire.messages import request_bounds
from semel_common.wire.status import to_value
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import Reserve, StoredBatch
from semel_runtime.machine import Result
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import (
    INT64_MAX,
    require_count,
    require_int,
    require_known,
    require_name,
)

_COMMIT = TransactionResult.TRANSACTION_RESULT_COMMIT
_ABORT = TransactionResult.TRANSACTION_RESULT_ABORT
_NO_OFFSET = -1
_OUTCOMES_PER_DECISION = 512
"""As many markers go into one decision: a journal append holds a bounded number of batches."""


class BrokerWriter:
    """Answers Produce and WriteTxnMarkers."""

    def __init__(
        self,
        runner: Runner[Record],
        machine: BrokerMachine,
        waiters: Waiters,
        clock: Clock,
        limits: ProduceLimits,
    ) -> None:
        self._runner = runner
        self._machine = machine
        self._waiters = waiters
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

    async def write_txn_markers(
        self, request: WriteTxnMarkersRequest, call: Call
    ) -> WriteTxnMarkersResponse:
        """End transactions here; answer once the outcomes are durable.

        Where no reader waits for them, nor anybody behind the coordinator, they have time.
        """
        del call
        self._check_cluster(request.cluster_id)
        require_count("markers", request.markers, maximum=request_bounds.MARKERS_MAX)
        _check_participants(request.markers)
        outcomes = [_outcomes(marker) for marker in request.markers]
        refusals = iter(await self._apply(_flat(outcomes), patient=not request.awaited))
        response = WriteTxnMarkersResponse()
        for marker, of_one in zip(request.markers, outcomes, strict=True):
            result = response.results.add()
            for outcome in of_one:
                refusal = next(refusals)
                if refusal is not None:
                    result.errors.add(participant=_participant(outcome), error=to_value(refusal))
            for group_id in marker.participants.group_ids:
                error = InvalidRequestError(f"group {group_id!r} is no participant at a broker")
                result.errors.add(participant=Participant(group_id=group_id), error=to_value(error))
        return response

    async def apply(self, outcomes: Sequence[Outcome]) -> list[SemelError | None]:
        """Close transactions; answers why each outcome was refused, or None once it is durable."""
        return await self._apply(outcomes, patient=False)

    async def _apply(
        self, outcomes: Sequence[Outcome], *, patient: bool
    ) -> list[SemelError | None]:
        patient = patient and len(outcomes) <= _OUTCOMES_PER_DECISION
        now_ms = self._clock.now_ms()
        refusals: list[SemelError | None] = []
        for start in range(0, len(outcomes), _OUTCOMES_PER_DECISION):
            step = outcomes[start : start + _OUTCOMES_PER_DECISION]
            decide = partial(self._close, step, now_ms, patient=patient)
            refused = await self._runner.run(decide, privileged=True)
            refusals += refused
        return refusals

    def _receive(
        self, partition: wire.ProducePartition, now_ms: int, keys: KeyChecks
    ) -> Arrival | SemelError:
        try:
            arrival = receive(partition, now_ms=now_ms, limits=self._limits)
            maximum = self._machine.keyed_batch_max_bytes(arrival.request.name)
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

    def _close(
        self, outcomes: Sequence[Outcome], now_ms: int, *, patient: bool
    ) -> Result[list[SemelError | None], Record]:
        decided = self._machine.write_txn_markers(outcomes, now_ms=now_ms)
        batches = list(markers(decided.records))
        patient = patient and not self._waiters.any_at(batch.partition for batch in batches)
        return Result(decided.response, decided.records, batches, patient=patient)

    def _check_cluster(self, cluster_id: str) -> None:
        own = self._machine.cluster.cluster_id
        if not own:
            raise BrokerNotAvailableError("this broker has not heard from the controller yet")
        if cluster_id != own:
            raise InconsistentClusterIdError(
                f"this broker belongs to cluster {own}, not to {cluster_id!r}"
            )


def _flat(outcomes: Sequence[Sequence[Outcome]]) -> list[Outcome]:
    return [each for of_one in outcomes for each in of_one]


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


def _check_participants(markers: Sequence[TxnMarker]) -> None:
    """Check how much markers are about, before any of it is looked at."""
    partitions = groups = 0
    for marker in markers:
        partitions += sum(len(topic.partitions) for topic in marker.participants.topics)
        groups += len(marker.participants.group_ids)
    require_int("number of partitions", partitions, maximum=request_bounds.ABORTED_PARTICIPANTS_MAX)
    require_int("number of groups", groups, maximum=request_bounds.ABORTED_PARTICIPANTS_MAX)


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


def _outcomes(marker: TxnMarker) -> list[Outcome]:
    """Check a marker, and make one outcome for each of its partitions."""
    producer_id = require_int("producer_id", marker.producer_id, minimum=1)
    epoch = require_int("producer_epoch", marker.producer_epoch, maximum=INT64_MAX - 1)
    coordinator_epoch = require_int("coordinator_epoch", marker.coordinator_epoch)
    committed = require_known("result", marker.result, (_COMMIT, _ABORT)) == _COMMIT
    return [
        Outcome(
            partition=TopicPartition(topic.topic_id, partition),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
        )
        for topic in marker.participants.topics
        for partition in topic.partitions
    ]


def _participant(outcome: Outcome) -> Participant:
    topic_id, partition = outcome.partition
    return Participant(topic_partition=WirePartition(topic_id=topic_id, partition=partition))
