"""What has become of the calls of a run, asked of the cluster.

An answer of Produce or Fetch, or a frame, may hold an error where ghz sees a call that succeeded.
"""

import asyncio
import time
from collections.abc import Sequence

import grpc

from aiosemel import IsolationLevel, SemelClient
from loadtest.requests import RECORDS_PER_CALL, fetch_request
from loadtest.scenarios import Run
from loadtest.target import TOPIC, Target
from semel.broker.v1.broker_pb2_grpc import BrokerServiceStub
from semel_common.wire.channel_options import DIRECT

_MARKERS_TIMEOUT_S = 30.0
_POLL_S = 0.1


class Effects:
    """Counts before a run and after it."""

    def __init__(self, client: SemelClient, target: Target) -> None:
        self._client = client
        self._target = target
        self._before = 0

    async def begin(self, run: Run) -> None:
        """Look at what there is before a run; a read finds something, or raises AssertionError."""
        self._before = await self._count(IsolationLevel.READ_UNCOMMITTED)
        if run.scenario == "fetch":
            async with grpc.aio.insecure_channel(self._target.broker, options=[DIRECT]) as channel:
                for partition in self._target.partitions:
                    request = fetch_request(self._target, partition, 0)
                    answer = await BrokerServiceStub(channel).Fetch(request)
                    assert answer.partitions[0].records, answer

    async def check(self, run: Run, groups: Sequence[str]) -> list[str]:
        """Return what is missing after a run."""
        match run.scenario:
            case "produce-plain" | "produce-transactional" | "stream-produce":
                expected = self._before + run.operations * RECORDS_PER_CALL
                found = await self._count(IsolationLevel.READ_UNCOMMITTED)
                return _differs("records", found, expected)
            case "end-txn":
                return _differs("committed records", await self._settled(), self._before)
            case "commit-offsets" | "stream-end-txn":
                found = await self._groups_with_offsets(groups)
                return _differs("groups with offsets", found, len(groups))
            case _:
                return []

    async def _count(self, isolation_level: IsolationLevel) -> int:
        starts = {(TOPIC, partition): 0 for partition in self._target.partitions}
        counts = await self._client.admin().count_records(starts, isolation_level=isolation_level)
        return sum(counts.values())

    async def _settled(self) -> int:
        """Return how many records are committed, once all markers are there or time is up."""
        give_up_at = time.monotonic() + _MARKERS_TIMEOUT_S
        while True:
            found = await self._count(IsolationLevel.READ_COMMITTED)
            if found >= self._before or time.monotonic() >= give_up_at:
                return found
            await asyncio.sleep(_POLL_S)

    async def _groups_with_offsets(self, groups: Sequence[str]) -> int:
        async with asyncio.timeout(_MARKERS_TIMEOUT_S):
            found = 0
            for group_id in groups:
                offsets = await self._client.admin().list_consumer_group_offsets(
                    group_id, require_stable=True
                )
                found += bool(offsets)
            return found


def _differs(what: str, found: int, expected: int) -> list[str]:
    return [] if found == expected else [f"{found} {what}, not {expected}"]
