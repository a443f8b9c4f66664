"""Sends the markers that the plan has: one task for each instance with participants.

A marker leaves as soon as its decision is durable: the journal tells, without polling. Every step
that can fail is tried again, for ever, with growing pauses. After a restart, all markers of decided
transactions are sent again; participants take repeats. A transaction-log partition that was handed
over gets no more markers; a new one is resumed as after a restart, once its coordinator epoch is
durable.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

import structlog
from opentelemetry.trace import Tracer

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import cluster_pb2
from semel_common.errors import (
    InvalidRequestError,
    RetriableError,
    SemelError,
    TransactionCoordinatorFencedError,
    UnknownServerError,
)
from semel_common.ids import Participant, transaction_log_partition_of
from semel_common.wire.connection import Connector
from semel_common.wire.methods import (
    BROKER_WRITE_TXN_MARKERS,
    GROUP_WRITE_TXN_MARKERS,
    METADATA,
    Method,
)
from semel_common.wire.status import from_value
from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    TransactionCompleted,
    TransactionKey,
    TransactionLogForgotten,
    TransactionLogHandedOver,
    TransactionLogServed,
    TransactionsMachine,
    TransactionsRecord,
)
from semel_coordinator.transactions.machine.state.entities import NOBODY, ParticipantSet
from semel_coordinator.transactions.markers.marker import NOWHERE, Marker, Target
from semel_coordinator.transactions.markers.messages import (
    markers_request,
    not_gone,
    refusing,
    topic_ids_of,
)
from semel_coordinator.transactions.markers.options import MarkerOptions
from semel_coordinator.transactions.markers.plan import LaneStanding, MarkerPlan
from semel_coordinator.transactions.markers.routes import Routes
from semel_coordinator.transactions.markers.spans import MarkerSpans
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.machine import Result

log = structlog.get_logger(__name__)

MarkersMethod: TypeAlias = Method[
    participants_pb2.WriteTxnMarkersRequest, participants_pb2.WriteTxnMarkersResponse
]


class MarkerSender:
    """Sends decisions to participants, and reports to the machine when all of them know."""

    def __init__(
        self,
        *,
        runner: Runs,
        machine: TransactionsMachine,
        cluster: ClusterCopy,
        connector: Connector,
        random: Random,
        options: MarkerOptions,
        clock: Clock,
        tracer: Tracer | None = None,
    ) -> None:
        """Listen to the journal from now on; send nothing before `run`."""
        self._runner = runner
        self._machine = machine
        self._cluster = cluster
        self._connector = connector
        self._options = options
        self._clock = clock
        self._spans = None if tracer is None else MarkerSpans(tracer)
        self._plan = MarkerPlan(
            options, route=Routes(cluster), wake=self._wake, jitter=random.random
        )
        self._events: dict[Target, asyncio.Event] = {}
        self._group: asyncio.TaskGroup | None = None
        self._finished: list[TransactionKey] = []
        self._any_finished = asyncio.Event()
        self._completions: dict[int, asyncio.Event] = {}
        self._serving: dict[int, int] = {}
        """Durable coordinator epochs of the transaction-log partitions whose markers are sent."""
        self._resuming: set[int] = set()
        """The partitions served since `run` has asked for the pending transactions."""
        runner.on_durable(self._on_durable)

    # -- for the service -----------------------------------------------------------------------

    def completion_of(self, producer_id: int) -> asyncio.Event:
        """Return what is set when the next transaction of a producer is complete."""
        return self._completions.setdefault(producer_id, asyncio.Event())

    def missing(self, decided: TransactionKey) -> ParticipantSet | None:
        """Return the participants that have not acknowledged; None: not known before `run`."""
        missing = self._plan.missing(decided)
        return NOBODY if missing is None and self._group is not None else missing

    def standing(self) -> Iterator[tuple[Target, LaneStanding]]:
        """Yield how much each instance is still to be told."""
        return self._plan.standing()

    # -- the work ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send what the journal has, then what comes, until cancelled. To be run after `claim`."""
        for decided in await self._runner.run(self._begin):
            self._decided(decided)
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for target in self._events:
                    self._start(target)
                for partition in sorted(self._resuming):
                    group.create_task(self._resume(partition))
                await self._complete()
            finally:
                self._group = None  # Later decisions are for the next start.

    def _begin(self) -> Result[list[DecidedTransaction], TransactionsRecord]:
        """Return the pending transactions. Later decisions come by the journal."""
        self._serving = self._machine.markers.serving()
        self._resuming.clear()
        return Result(self._machine.markers.pending())

    def _on_durable(self, records: Sequence[object]) -> None:
        for record in records:
            match record:
                case DecidedTransaction():
                    self._decided(record)
                case TransactionCompleted():
                    self._completed(record.producer_id)
                case TransactionLogServed():
                    self._serve(record)
                case TransactionLogHandedOver() | TransactionLogForgotten():
                    self._leave(record.partition)
                case _:
                    pass

    def _completed(self, producer_id: int) -> None:
        completion = self._completions.pop(producer_id, None)
        if completion is not None:
            completion.set()

    def _serve(self, served: TransactionLogServed) -> None:
        """Send the markers of a partition from now on, the pending ones first."""
        self._serving[served.partition] = served.coordinator_epoch
        if self._group is None:
            self._resuming.add(served.partition)
        else:
            name = f"markers of partition {served.partition}"
            self._group.create_task(self._resume(served.partition), name=name)

    async def _resume(self, partition: int) -> None:
        for decided in await self._runner.run(lambda: Result(self._machine.markers.pending())):
            if transaction_log_partition_of(decided.producer_id) == partition:
                self._decided(decided)

    def _leave(self, partition: int) -> None:
        """Send no more markers of a partition; the calls that wait for them ask elsewhere.

        Markers in flight are harmless: see the machine's moves.py.
        """
        self._serving.pop(partition, None)
        self._plan.drop(partition)
        if self._spans is not None:
            self._spans.left(partition)
        for producer_id in list(self._completions):
            if transaction_log_partition_of(producer_id) == partition:
                self._completed(producer_id)

    def _decided(self, decided: DecidedTransaction) -> None:
        if transaction_log_partition_of(decided.producer_id) not in self._serving:
            return  # It has moved, or it is a copy of one that moves here.
        if self._spans is not None and decided.traceparent:
            self._spans.decided(decided)
        self._plan.add(decided)

    def _wake(self, target: Target) -> None:
        event = self._events.get(target)
        if event is None:
            event = self._events[target] = asyncio.Event()
            self._start(target)
        event.set()

    def _start(self, target: Target) -> None:
        if self._group is not None:
            name = f"markers for {target.role.name.lower()} {target.instance_id}"
            self._group.create_task(self._deliver_all(target), name=name)

    async def _deliver_all(self, target: Target) -> None:
        event = self._events[target]
        while True:
            event.clear()
            batch = self._plan.next_batch(target, _now())
            if batch:
                await self._deliver(target, batch)
            else:
                await _wait(event, until=self._plan.due_at(target))

    async def _deliver(self, target: Target, batch: Sequence[Marker]) -> None:
        ask = self._ask_controller if target is NOWHERE else self._write_txn_markers
        try:
            refused = await ask(target, batch)
        except (InvalidRequestError, UnknownServerError) as error:
            self._plan.rejected(target, _now())
            log.error("markers rejected, will be sent again", **_failure(target, error))  # noqa: TRY400 - the other side's log has the traceback
            await asyncio.sleep(0)
            return
        except SemelError as error:
            self._plan.undelivered(target, _now())
            if self._plan.failures_of(target) == 1:
                log.warning("markers not delivered, will be sent again", **_failure(target, error))
            await asyncio.sleep(0)  # It may have failed without waiting, and the pause may be 0.
            return
        finished = self._plan.delivered(target, refused, _now())
        if finished:
            self._finished += finished
            self._any_finished.set()

    async def _complete(self) -> None:
        while True:
            await self._any_finished.wait()
            self._any_finished.clear()
            keys, self._finished = self._finished, []
            if self._spans is None or not self._spans.pending:
                await self._complete_txn(keys)
            else:
                with self._spans.completing(keys):
                    await self._complete_txn(keys)

    async def _complete_txn(self, keys: Sequence[TransactionKey]) -> None:
        """Note it: at once if a call waits; otherwise a restart would only send markers again."""
        complete = partial(
            self._machine.markers.complete_txn,
            keys,
            earlier_ms=self._earlier_ms(keys),
            now_ms=self._clock.now_ms(),
        )
        if self._any_awaited(keys):
            await self._runner.run(complete, privileged=True)
        else:
            self._runner.run_lazily(complete, privileged=True)

    def _earlier_ms(
        self, keys: Iterable[TransactionKey]
    ) -> dict[TransactionKey, dict[Participant, int]]:
        """Return for how long participants have acknowledged, where not all did so at once."""
        now = _now()
        return {
            key: {each: int((now - at) * 1000) for each, at in earlier.items()}
            for key in keys
            if (earlier := self._plan.earlier(key)) is not None
        }

    def _any_awaited(self, keys: Iterable[TransactionKey]) -> bool:
        """Whether a call waits until one of these transactions is complete."""
        return bool(self._completions) and any(key.producer_id in self._completions for key in keys)

    # -- asking participants -------------------------------------------------------------------

    async def _write_txn_markers(
        self, target: Target, batch: Sequence[Marker]
    ) -> Mapping[int, ParticipantSet]:
        """Deliver a batch; return the participants that have not taken it, by the marker's index.

        Raises SemelError when nothing is known about the whole batch.
        """
        method = (
            BROKER_WRITE_TXN_MARKERS
            if target.role is ServiceRole.BROKER
            else GROUP_WRITE_TXN_MARKERS
        )
        address = self._cluster.address(target.role, target.instance_id, self._options.listener)
        if self._spans is None or not self._spans.pending:
            return await self._call(method, address, batch)
        with self._spans.sending(method, address, target, batch) as (traced, traceparent):
            return await self._call(method, address, traced, traceparent)

    async def _call(
        self, method: MarkersMethod, address: str, batch: Sequence[Marker], traceparent: str = ""
    ) -> Mapping[int, ParticipantSet]:
        request = markers_request(
            batch,
            cluster_id=self._cluster.cluster_id,
            coordinator_epoch=self._serving.__getitem__,
            awaited=self._any_awaited(marker.key for marker in batch),
        )
        response = await self._connector.connect(address).call(
            method, request, timeout_ms=self._options.request_timeout_ms, traceparent=traceparent
        )
        if len(response.results) != len(batch):
            raise UnknownServerError(
                f"{address} answered {len(response.results)} of {len(batch)} markers"
            )
        refused: dict[int, ParticipantSet] = {}
        for index, result in enumerate(response.results):
            if result.errors:
                sent_under = request.markers[index].coordinator_epoch
                refused[index] = self._refusing(batch[index], result.errors, sent_under)
                if not refused[index] <= set(batch[index].participants):
                    raise UnknownServerError(f"{address} refused for whom it was not asked")
        return refused

    def _refusing(
        self,
        marker: Marker,
        errors: Sequence[participants_pb2.ParticipantError],
        coordinator_epoch: int,
    ) -> ParticipantSet:
        partition = transaction_log_partition_of(marker.key.producer_id)
        # If the marker was in flight when its partition moved away, or away and back, the refusal
        # says nothing about the present markers.
        is_current = self._serving.get(partition) == coordinator_epoch
        for refusal in errors:
            error = from_value(refusal.error)
            if isinstance(error, TransactionCoordinatorFencedError) and is_current:
                self._plan.stop(partition)
                log.error(
                    "another coordinator owns this transaction-log partition, its markers stop",
                    partition=partition,
                    error=error.message,
                )
            else:
                level = log.debug if isinstance(error, RetriableError) else log.error
                level(
                    "marker refused, will be sent again",
                    producer_id=marker.key.producer_id,
                    producer_epoch=marker.key.producer_epoch,
                    error=error.message,
                )
        return refusing(errors)

    # -- asking the controller -----------------------------------------------------------------

    async def _ask_controller(
        self, _: Target, batch: Sequence[Marker]
    ) -> Mapping[int, ParticipantSet]:
        """Find out which partitions are gone; return the others, by the marker's index.

        An older copy of the metadata may not know a topic yet. The controller, asked after the
        decision, knows every topic that was ever written to, so an unknown topic is deleted.
        """
        asked = topic_ids_of(batch)[: self._options.topics_per_question_max]
        address = self._cluster.address(
            ServiceRole.COORDINATOR, CONTROLLER_ID, self._options.listener
        )
        response = await self._connector.connect(address).call(
            METADATA,
            cluster_pb2.MetadataRequest(topic_ids=asked),
            timeout_ms=self._options.request_timeout_ms,
        )
        return not_gone(batch, response.topics)


def _failure(target: Target, error: SemelError) -> dict[str, str | int]:
    return {
        "role": target.role.name.lower(),
        "instance_id": target.instance_id,
        "error": error.message,
    }


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _wait(event: asyncio.Event, *, until: float | None) -> None:
    """Wait for an event, or for a moment of the event loop's clock."""
    try:
        async with asyncio.timeout_at(until):
            await event.wait()
    except TimeoutError:
        pass
