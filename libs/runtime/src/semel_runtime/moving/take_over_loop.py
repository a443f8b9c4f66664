"""Taking over partitions that move here: again and again, until the controller knows of it.

Says when to try, which instance to ask, and which to tell.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from random import Random

import structlog
from msgspec import Struct

from semel.coordinator.v1.moves_pb2 import CompletePartitionReassignmentRequest
from semel_common.errors import SemelError
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.methods import COMPLETE_PARTITION_REASSIGNMENT
from semel_runtime.clock import Clock
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.machine import UnknownRecordError

log = structlog.get_logger(__name__)

_CONTROLLER_ID = 0


class TakeOverOptions(Struct, frozen=True, kw_only=True):
    """How others are asked."""

    listener: str
    request_timeout_ms: int = 5_000
    retry_backoff_ms: int = 500
    """How long to wait before a move that failed is tried again."""


class TakeOvers:
    """When to take over what moves to one instance, and whom that instance talks to."""

    def __init__(
        self,
        cluster: ClusterCopy,
        connector: Connector,
        random: Random,
        clock: Clock,
        options: TakeOverOptions,
        *,
        expect_newer: Callable[[], None],
    ) -> None:
        """Want a look at once: a process before this one may have left a move half-way.

        ``expect_newer`` is told when the controller has changed the metadata.
        """
        self._cluster = cluster
        self._connector = connector
        self._random = random
        self._clock = clock
        self._options = options
        self._expect_newer = expect_newer
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._failed: set[Hashable] = set()
        """What was complained about already."""

    @property
    def request_timeout_ms(self) -> int:
        """How long one request may take."""
        return self._options.request_timeout_ms

    def now_ms(self) -> int:
        """Return the time here: that of the old leader may be another."""
        return self._clock.now_ms()

    def look(self) -> None:
        """Note that something may move here from now on."""
        self._wanted.set()

    async def run(self, take_all: Callable[[], Awaitable[bool]]) -> None:
        """Take over what moves here, until cancelled; ``take_all`` answers if nothing is left."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not await take_all():
                self._wanted.set()
                backoff_s = self._options.retry_backoff_ms / 1000
                await asyncio.sleep(backoff_s * self._random.uniform(0.5, 1.0))

    async def attempt(
        self, move: Hashable, take: Callable[[], Awaitable[None]], **facts: object
    ) -> bool:
        """Try a move once, and log what became of it; answers whether it came to its end.

        ``facts`` name it in the log. One that fails again and again is a warning once.
        """
        try:
            await take()
        except (SemelError, UnknownRecordError) as error:
            level = log.debug if move in self._failed else log.warning
            self._failed.add(move)
            level("partition not taken over", **facts, error=str(error))
            return False
        self._failed.discard(move)
        log.info("partition taken over", **facts)
        return True

    def connect(self, role: ServiceRole, instance_id: int) -> Connection:
        """Return a way to another instance; raises if its address is unknown."""
        address = self._cluster.address(role, instance_id, self._options.listener)
        return self._connector.connect(address)

    async def complete(
        self, topic_id: str, partition: int, *, leader_epoch: int, instance_id: int
    ) -> None:
        """Tell the controller that all of a partition is here; may be repeated.

        It is served from the next image on: until that comes, no instance serves it.
        ``leader_epoch`` is that of the leader that has handed it over.
        """
        controller = self.connect(ServiceRole.COORDINATOR, _CONTROLLER_ID)
        request = CompletePartitionReassignmentRequest(
            topic_id=topic_id,
            partition=partition,
            leader_epoch=leader_epoch,
            broker_id=instance_id,
        )
        await controller.call(
            COMPLETE_PARTITION_REASSIGNMENT, request, timeout_ms=self.request_timeout_ms
        )
        self._expect_newer()
