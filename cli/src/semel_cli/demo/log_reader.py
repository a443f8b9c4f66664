"""Reads everything in the logs of a topic, markers and aborted records too, as it is written.

A client library shows neither: this goes to the brokers by their own calls, and goes on whatever
happens to them.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import RecordBatch
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel_common.errors import SemelError
from semel_common.wire.connection import Connector
from semel_common.wire.methods import FETCH, METADATA

_TIMEOUT_MS = 2_000
_MAX_WAIT_MS = 10
_RETRY_S = 0.1


class LogReader:
    """One reader of one topic."""

    def __init__(self, connector: Connector, bootstrap: str, topic: str) -> None:
        """Do no I/O yet."""
        self._connector = connector
        self._bootstrap = bootstrap
        self._topic = topic
        self._offsets: defaultdict[int, int] = defaultdict(int)

    async def batches(self) -> AsyncIterator[list[tuple[int, RecordBatch]]]:
        """Yield partitions with their next batches, in log order for each, without end."""
        while True:
            try:
                for address, partitions in (await self._leaders()).items():
                    yield await self._fetch(address, partitions)
            except SemelError:
                await asyncio.sleep(_RETRY_S)

    def offset(self, partition: int) -> int:
        """Return up to where a partition has been read."""
        return self._offsets[partition]

    async def _leaders(self) -> dict[str, list[int]]:
        """Return which partitions are at which address."""
        request = cluster.MetadataRequest(topics=[self._topic])
        connection = self._connector.connect(self._bootstrap)
        answer = await connection.call(METADATA, request, timeout_ms=_TIMEOUT_MS)
        addresses = {
            instance.instance_id: f"{instance.host}:{instance.port}"
            for instance in answer.instances
            if instance.role == cluster.SERVICE_ROLE_BROKER
        }
        leaders: defaultdict[str, list[int]] = defaultdict(list)
        for partition in (partition for topic in answer.topics for partition in topic.partitions):
            if partition.leader_id in addresses:
                leaders[addresses[partition.leader_id]].append(partition.index)
        return leaders

    async def _fetch(self, address: str, partitions: list[int]) -> list[tuple[int, RecordBatch]]:
        request = broker.FetchRequest(
            isolation_level=broker.ISOLATION_LEVEL_READ_UNCOMMITTED,
            min_bytes=1,
            max_wait_ms=_MAX_WAIT_MS,
            partitions=[
                broker.FetchPartition(
                    topic=self._topic, partition=partition, fetch_offset=self._offsets[partition]
                )
                for partition in partitions
            ],
        )
        answer = await self._connector.connect(address).call(FETCH, request, timeout_ms=_TIMEOUT_MS)
        fetched: list[tuple[int, RecordBatch]] = []
        for result in answer.partitions:
            if result.HasField("error"):
                continue
            fetched.extend((result.partition, batch) for batch in result.batches)
            if (
                result.partition in partitions
                and result.next_offset > self._offsets[result.partition]
            ):
                self._offsets[result.partition] = result.next_offset
        return fetched
