"""How far groups are behind, in records that their readers see: asked of brokers from time to time.

Only brokers know how many of the records ahead are markers or aborted. A count costs them the
headers of the batches in question, so it runs seldom, and each call is bounded: if a lag is too
long to count, the uncounted rest counts by its offsets. The loop gathers positions in pieces, so
that no request waits for it, however many there are.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import structlog

from semel.broker.v1 import broker_pb2 as broker
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_common.wire.connection import Connector
from semel_common.wire.methods import COUNT_RECORDS
from semel_group.machine import GroupMachine
from semel_runtime.cluster.metadata_image import ServiceRole

log = structlog.get_logger(__name__)

_PARTITIONS_PER_CALL = 1_000
_POSITIONS_PER_STEP = 1_000
"""Positions that are looked up in one go, a few milliseconds."""


class Position(NamedTuple):
    """Where a group stands in a partition."""

    group_id: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LagOptions:
    """How often to look, and how to ask."""

    interval_ms: int
    request_timeout_ms: int
    listener: str
    """Name of the brokers' listener."""


class LagWatch:
    """Keeps the lag of every group that has a position."""

    def __init__(self, machine: GroupMachine, connector: Connector, options: LagOptions) -> None:
        """Know nothing yet."""
        self._machine = machine
        self._connector = connector
        self._options = options
        self._lags: dict[Position, int] = {}

    @property
    def lags(self) -> Mapping[Position, int]:
        """As of the last look; what could not be found out then is left out."""
        return self._lags

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._options.interval_ms / 1000)

    async def look(self) -> None:
        """Ask all brokers once."""
        lags: dict[Position, int] = {}
        for address, positions in (await self._by_leader()).items():
            rest = iter(positions.items())
            while some := dict(islice(rest, _PARTITIONS_PER_CALL)):
                try:
                    lags.update(await self._count(address, some))
                except SemelError as error:
                    log.warning("lag is not known", broker=address, error=error.message)
        self._lags = lags

    async def _by_leader(self) -> Mapping[str, Mapping[Position, int]]:
        by_leader: defaultdict[str, dict[Position, int]] = defaultdict(dict)
        everything = self._positions()
        while some := tuple(islice(everything, _POSITIONS_PER_STEP)):
            for position, offset in some:
                address = self._leader_address(position)
                if address is not None:
                    by_leader[address][position] = offset
            await asyncio.sleep(0)
        return by_leader

    def _leader_address(self, position: Position) -> str | None:
        cluster = self._machine.cluster
        try:
            leader = cluster.leader_of(position.partition).leader_id
            return cluster.address(ServiceRole.BROKER, leader, self._options.listener)
        except SemelError as error:
            log.debug("lag is not known", partition=position.partition, error=error.message)
            return None

    def _positions(self) -> Iterator[tuple[Position, int]]:
        """Yield each group as it is when it has its turn: others go on in between."""
        for group_id in self._machine.groups.group_ids():
            for partition, offset in tuple(self._machine.groups.committed_offsets(group_id)):
                yield Position(group_id, partition), offset

    async def _count(
        self, address: str, positions: Mapping[Position, int]
    ) -> Iterator[tuple[Position, int]]:
        request = broker.CountRecordsRequest(
            isolation_level=broker.ISOLATION_LEVEL_READ_COMMITTED,
            partitions=[
                broker.CountRecordsPartition(
                    topic_id=position.partition.topic_id,
                    partition=position.partition.partition,
                    from_offset=offset,
                )
                for position, offset in positions.items()
            ],
        )
        response = await self._connector.connect(address).call(
            COUNT_RECORDS, request, timeout_ms=self._options.request_timeout_ms
        )
        return _lags(tuple(positions), response.partitions)


def _lags(
    positions: Sequence[Position], results: Sequence[broker.CountRecordsPartitionResult]
) -> Iterator[tuple[Position, int]]:
    for position, result in zip(positions, results, strict=True):
        if not result.HasField("error"):
            not_looked_at = max(0, result.end_offset - result.next_offset)
            yield position, result.record_count + not_looked_at
