"""Forgets producers that are idle; asks their coordinators first. See ``producer_expiry.py``.

Looks through all participants in pieces, so that requests go on. Nothing is forgotten until
some time after a start or a pause of the process or a jump of its clock, because the clock does not
say then for how long a producer was idle; see ``semel_runtime.process.pause_detector``.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

import structlog

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import SemelError
from semel_common.wire.connection import Connector
from semel_common.wire.methods import INQUIRE_TRANSACTIONS
from semel_runtime.clock import Clock
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.machine import Result
from semel_runtime.participant.inquiry import P
from semel_runtime.participant.inquiry_loop import participant_to_wire
from semel_runtime.participant.producer_expiry import IdleProducer
from semel_runtime.process.pause_detector import SteadyTicks

log = structlog.get_logger(__name__)

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)
T = TypeVar("T")

_PIECE = 1_000
"""So many producers are looked at or forgotten in one go, and asked about in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryOptions:
    """How often to look, and how to ask."""

    interval_ms: int = 600_000
    settling_ms: int = 600_000
    """How long nothing is forgotten after a start, a pause or a jump of the clock."""
    request_timeout_ms: int = 5_000
    listener: str = "default"
    """Name of the coordinators' listener."""


class ForgetfulMachine(Protocol[P, R_co]):
    """A service's machine, as far as it forgets."""

    def participants(self) -> Result[Sequence[P], R_co]:
        """Return everything that knows producers."""
        ...

    def producer_ids(self, participant: P, /) -> Result[Sequence[int], R_co]:
        """Return the producers that one knows."""
        ...

    def idle_producers(
        self, participant: P, producer_ids: Sequence[int], /, *, now_ms: int
    ) -> Result[list[IdleProducer[P]], R_co]:
        """Return the producers that are idle now."""
        ...

    def forget_producers(
        self, idle: Sequence[IdleProducer[P]], /, *, now_ms: int
    ) -> Result[int, R_co]:
        """Forget the producers that are still idle. Answers their number."""
        ...


class Runs(Protocol[R_contra]):
    """What the loop needs of the runner."""

    async def run(
        self, handler: Callable[[], Result[T, R_contra]], *, privileged: bool = False
    ) -> T:
        """Run one handler."""
        ...


class ProducerExpiry(Generic[P, R]):
    """Forgets what is idle, tick by tick."""

    def __init__(
        self,
        runner: Runs[R],
        machine: ForgetfulMachine[P, R],
        cluster: ClusterCopy,
        *,
        connector: Connector,
        clock: Clock,
        options: ExpiryOptions,
    ) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine: ForgetfulMachine[P, R] = machine
        self._cluster = cluster
        self._connector = connector
        self._clock = clock
        self._options = options

    async def run(self) -> None:
        """Forget, until cancelled."""
        ticks = SteadyTicks(self._options.interval_ms, settling_ms=self._options.settling_ms)
        while True:
            now_ms = self._clock.now_ms()  # It notices a jump: so it comes first.
            if ticks.is_steady(now_ms, self._clock.jumps):
                await self.forget_idle()
            await asyncio.sleep(self._options.interval_ms / 1000)

    async def forget_idle(self) -> None:
        """Forget everything that is idle now, as far as coordinators agree.

        Nothing is forgotten any more once the clock jumps.
        """
        jumps = self._clock.jumps
        idle: list[IdleProducer[P]] = []
        forgotten = 0
        for participant in await self._runner.run(self._machine.participants):
            idle += await self._idle_in(participant)
            if len(idle) >= _PIECE:
                forgotten += await self._forget(idle, jumps)
                idle = []
            await asyncio.sleep(0)
        forgotten += await self._forget(idle, jumps)
        if forgotten:
            log.info("idle producers forgotten", producers=forgotten)

    async def _idle_in(self, participant: P) -> list[IdleProducer[P]]:
        producer_ids = await self._runner.run(partial(self._machine.producer_ids, participant))
        now_ms = self._clock.now_ms()
        idle: list[IdleProducer[P]] = []
        for start in range(0, len(producer_ids), _PIECE):
            piece = producer_ids[start : start + _PIECE]
            look = partial(self._machine.idle_producers, participant, piece, now_ms=now_ms)
            idle += await self._runner.run(look)
            await asyncio.sleep(0)
        return idle

    async def _forget(self, idle: Sequence[IdleProducer[P]], jumps: int) -> int:
        """Ask about producers with transactions; forget the needless ones."""
        needless = [each for each in idle if not each.had_transactions]
        for coordinator, asked in self._by_coordinator(idle).items():
            for start in range(0, len(asked), _PIECE):
                needless += await self._ask(coordinator, asked[start : start + _PIECE])
        forgotten = 0
        for start in range(0, len(needless), _PIECE):
            now_ms = self._clock.now_ms()
            if self._clock.jumps != jumps:
                break
            piece = needless[start : start + _PIECE]
            decide = partial(self._machine.forget_producers, piece, now_ms=now_ms)
            forgotten += await self._runner.run(decide, privileged=True)
        return forgotten

    def _by_coordinator(self, idle: Iterable[IdleProducer[P]]) -> dict[int, list[IdleProducer[P]]]:
        by_coordinator: dict[int, list[IdleProducer[P]]] = defaultdict(list)
        for producer in idle:
            if producer.had_transactions:
                by_coordinator[self._cluster.coordinator_of(producer.producer_id)].append(producer)
        return by_coordinator

    async def _ask(
        self, coordinator: int, idle: Sequence[IdleProducer[P]]
    ) -> list[IdleProducer[P]]:
        """Return those whose fences are needless; none if the coordinator cannot say now."""
        listener = self._options.listener
        try:
            address = self._cluster.address(ServiceRole.COORDINATOR, coordinator, listener)
            response = await self._connector.connect(address).call(
                INQUIRE_TRANSACTIONS,
                wire.InquireTransactionsRequest(
                    cluster_id=self._cluster.cluster_id, fences=map(_inquiry, idle)
                ),
                timeout_ms=self._options.request_timeout_ms,
            )
        except SemelError as error:
            log.info(
                "coordinator cannot be asked about idle producers",
                coordinator=coordinator,
                error=error.message,
            )
            return []
        answers = zip(idle, response.fences, strict=False)
        return [each for each, answer in answers if answer.needless]


def _inquiry(idle: IdleProducer[P]) -> wire.FenceInquiry:
    return wire.FenceInquiry(
        producer_id=idle.producer_id,
        fence=idle.fence,
        participant=participant_to_wire(idle.participant),
    )
