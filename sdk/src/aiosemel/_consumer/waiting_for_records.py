"""Waiting for records at the ends of logs, of many brokers at once, without reading them on."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel.errors import SemelError
from aiosemel.types.isolation import ISOLATION, IsolationLevel
from aiosemel.types.offsets import TopicPartition
from semel.broker.v1 import broker_pb2 as broker
from semel_common import ids
from semel_common.wire.methods import FETCH

_GRACE_MS = 1_000
"""How much longer than asked for an answer may take."""


class Waiting:
    """Long polls that ask for one byte."""

    def __init__(self, cluster: Cluster, isolation: IsolationLevel) -> None:
        """Wait for records that a reader of this isolation level sees."""
        self._cluster = cluster
        self._isolation = ISOLATION[isolation]

    async def wait(self, ends: Mapping[TopicPartition, int], max_wait_ms: int) -> None:
        """Return when the first broker has found a record, when one has failed, or in the end.

        Without any partition, that is at the end.
        """
        deadline = Deadline.after_ms(max_wait_ms + _GRACE_MS)
        try:
            by_leader = await self._by_leader(ends, deadline)
        except SemelError:
            await self._pause(max_wait_ms)
            return
        if not by_leader:
            await asyncio.sleep(max_wait_ms / 1000)
            return
        async with asyncio.TaskGroup() as polls:
            tasks = [
                polls.create_task(self._poll(address, questions, max_wait_ms, deadline))
                for address, questions in by_leader.items()
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()

    async def _by_leader(
        self, ends: Mapping[TopicPartition, int], deadline: Deadline
    ) -> Mapping[str, Sequence[broker.FetchPartition]]:
        by_leader: defaultdict[str, list[broker.FetchPartition]] = defaultdict(list)
        for each, end in ends.items():
            topic = await self._cluster.cache.topic(each.topic, deadline)
            partition = ids.TopicPartition(topic.topic_id, each.partition)
            by_leader[self._cluster.leader_address(partition)].append(
                broker.FetchPartition(
                    topic_id=topic.topic_id,
                    partition=each.partition,
                    fetch_offset=end,
                    partition_max_bytes=1,
                )
            )
        return by_leader

    async def _poll(
        self,
        address: str,
        questions: Sequence[broker.FetchPartition],
        max_wait_ms: int,
        deadline: Deadline,
    ) -> None:
        request = broker.FetchRequest(
            isolation_level=self._isolation,
            min_bytes=1,
            max_bytes=1,
            max_wait_ms=max_wait_ms,
            partitions=questions,
        )
        try:
            await self._cluster.attempt_at(address, FETCH, request, deadline=deadline)
        except SemelError:
            await self._pause(max_wait_ms)

    async def _pause(self, max_wait_ms: int) -> None:
        """Wait after an error: the next listing of the offsets raises it."""
        await asyncio.sleep(min(max_wait_ms, self._cluster.options.retry_backoff_ms) / 1000)
