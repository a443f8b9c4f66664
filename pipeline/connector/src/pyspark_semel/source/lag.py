"""How far a query is behind, for its progress: offsets each time, records and time now and then.

Offsets say it at no cost, but count markers and aborted records. To count records, and to see when
the first unread one was sent, brokers must be asked; so that is done seldom, and never waited for
long.
"""

import asyncio
from collections.abc import Mapping
from heapq import nlargest

from aiosemel import ConsumerOptions, LogRange, SemelClient, TopicPartition
from aiosemel.errors import SemelError
from pyspark_semel.source.offsets import Positions
from pyspark_semel.source.options import SourceOptions

INTERVAL_S = 10.0
"""How often brokers are asked."""
_ASK_TIMEOUT_S = 1.0
_PARTITIONS_MAX = 16
"""In how many partitions the first unread record is looked at: those with the most offsets left."""

Behind = dict[str, dict[str, int]]
"""By topic: ``offsets``, and ``records`` and ``milliseconds`` as they were last asked for."""


_NOTHING = {"records": 0, "milliseconds": 0}


class Lag:
    """How far one run of a query is behind."""

    def __init__(self, client: SemelClient, options: SourceOptions) -> None:
        self._client = client
        self._isolation = options.isolation_level
        self._asked_at = -INTERVAL_S
        self._asked: Behind = {}
        self.behind: Behind = {}
        """When the last micro-batch was planned."""

    async def note(
        self,
        stops: Positions,
        ends: Positions,
        topic_ids: Mapping[str, str],
        now_ms: int,
    ) -> None:
        """Take where a micro-batch ends, and where the logs do; time is that of the machine."""
        left = {each: ends[each] - stop for each, stop in stops.items() if ends.get(each, 0) > stop}
        now = asyncio.get_running_loop().time()
        if left and now - self._asked_at >= INTERVAL_S:
            self._asked_at = now
            self._asked = await self._ask(left, stops, topic_ids, now_ms)
        self.behind = {}
        for topic in topic_ids:
            offsets = sum(count for each, count in left.items() if each.topic == topic)
            asked = self._asked.get(topic, {}) if offsets else _NOTHING
            self.behind[topic] = {"offsets": offsets, **asked}

    async def _ask(
        self,
        left: Positions,
        stops: Positions,
        topic_ids: Mapping[str, str],
        now_ms: int,
    ) -> Behind:
        """Return what brokers say in time; nothing is no reason to fail a query."""
        first = nlargest(_PARTITIONS_MAX, left, key=lambda each: left[each])
        unread = [
            LogRange(
                topic=each.topic,
                topic_id=topic_ids[each.topic],
                partition=each.partition,
                start_offset=stops[each],
                end_offset=stops[each] + left[each],
            )
            for each in first
        ]
        try:
            async with asyncio.timeout(_ASK_TIMEOUT_S):
                counts = await self._client.admin().count_records(
                    {each: stops[each] for each in left}, isolation_level=self._isolation
                )
                times_ms = [await self._time_ms(each) for each in unread]
        except (SemelError, TimeoutError):
            return {}
        return _by_topic(counts, dict(zip(first, times_ms, strict=True)), now_ms)

    async def _time_ms(self, unread: LogRange) -> int | None:
        """Return when the first record of a range was sent; None: it has none."""
        options = ConsumerOptions(
            isolation_level=self._isolation, max_partition_fetch_bytes=1, fetch_max_bytes=1
        )
        batches = await self._client.read_range(unread, options).read()
        return batches[0].timestamps_ms[0] if batches else None


def _by_topic(
    counts: Mapping[TopicPartition, int],
    times_ms: Mapping[TopicPartition, int | None],
    now_ms: int,
) -> Behind:
    found: Behind = {}
    for each, count in counts.items():
        of_topic = found.setdefault(each.topic, dict(_NOTHING))
        of_topic["records"] += count
    for each, time_ms in times_ms.items():
        if time_ms is not None:
            of_topic = found[each.topic]
            of_topic["milliseconds"] = max(of_topic["milliseconds"], now_ms - time_ms)
    return found
