"""Keeps the partitions of a consumer supplied: finds positions, and fetches ahead.

One loop takes the open questions from ``Positions`` and sends them: the offsets of the group in one
request, starts and ends of logs and the records themselves in one request for each broker. Every
request is a task of its own, and holds its partitions until it is done with them, pauses after
errors included; so the loop may ask for every partition that no request holds. A broker is asked
with long polls, a few at a time: when a partition needs one more, the loop gives up an older one
for it.

A broker answers a request as soon as one of its partitions has records, and then all of them must
be asked for again. So the loop asks for busy partitions, which had records since a request last
waited without a result, apart from quiet ones: however many partitions are quiet, they cost nothing
while others get records.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from typing import TypeVar

from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.fetching.committed_search import OFFSETS, CommittedSearch
from aiosemel._consumer.fetching.held_partitions import Held, HeldPartitions
from aiosemel._consumer.fetching.leader_requests import LeaderRequests
from aiosemel._consumer.fetching.leader_search import LeaderSearch, search_for
from aiosemel._consumer.fetching.recovery import Recovery
from aiosemel._consumer.group.committed_offsets import GroupOffsets
from aiosemel._consumer.partition_state import PositionState
from aiosemel._consumer.positions import FetchPosition, PositionQuestion, Positions
from aiosemel._shared.change_signal import Signal
from aiosemel.errors import RefreshRetriableError, SemelError
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.offsets import TopicPartition
from semel.common.v1.records_pb2 import RecordBatch
from semel_common import ids

FETCHES_MAX = 5
"""Unanswered fetches at one broker; past it, one of them makes way."""

TURNS_TO_ASK = 3
"""Of the event loop, from an answer until the next request has left: the loop of the fetcher looks,
the request begins, and what requests of one moment have to send is sent."""

UnderWay = dict[asyncio.Task[None], int]
"""Fetches, the oldest first, each with the number of its partitions."""
Item = TypeVar("Item", PositionQuestion, FetchPosition)


class Fetcher:
    """The supply of one consumer."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions[RecordBatch],
        committed: GroupOffsets | None,
        options: ConsumerOptions,
        arrived: Signal,
    ) -> None:
        """Take the positions to supply.

        Without a group, nothing is ``committed``. ``arrived`` is told when there is something new.
        """
        self._cluster = cluster
        self._positions = positions
        self._work = Signal()
        self._holds = HeldPartitions(positions, arrived, self._work)
        self._recovery = Recovery(cluster)
        self._requests = LeaderRequests(cluster, positions, options, self._holds, self._recovery)
        self._offsets = CommittedSearch(committed, positions, self._holds, self._recovery)
        self.leaders = LeaderSearch(cluster, positions, self._holds, self._recovery)
        """What finds the leaders."""
        self._fetches: defaultdict[str, UnderWay] = defaultdict(dict)

    def look(self) -> None:
        """Look again at what there is to ask."""
        self._work.notify()

    def trouble(self, of: TopicPartition) -> SemelError | None:
        """Return the last error of the instances asked about a partition, if any."""
        if (last := self._cluster.cache.failures.last) is not None:
            return last
        asked = [OFFSETS, search_for(of.topic)]
        topic = self._cluster.cache.cached_topic(of.topic)
        if topic is not None:
            with contextlib.suppress(RefreshRetriableError):
                partition = ids.TopicPartition(topic.topic_id, of.partition)
                asked.append(self._cluster.leader_address(partition))
        return next(self._recovery.last_errors(asked), None)

    async def ask_ahead(self) -> None:
        """Let the next requests leave first, before the caller opens the records that have arrived.

        To open megabytes holds up the event loop for as long as a broker takes to find the next.
        """
        for _ in range(TURNS_TO_ASK):
            await asyncio.sleep(0)

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as requests:
            while True:
                self._ask_for_committed(requests)
                self._ask_for_resets(requests)
                self._fetch(requests)
                await self._work.wait()

    # -- what to ask -----------------------------------------------------------------------------

    def _ask_for_committed(self, requests: asyncio.TaskGroup) -> None:
        questions = self._positions.awaiting(PositionState.AWAITING_COMMITTED)
        if questions:
            held = self._holds.hold(questions)
            self._ask(requests, held, "offsets", self._offsets.find(questions, held))

    def _ask_for_resets(self, requests: asyncio.TaskGroup) -> None:
        questions = self._positions.awaiting(PositionState.AWAITING_RESET)
        for address, group in self._by_leader(requests, questions).items():
            held = self._holds.hold(group)
            self._ask(requests, held, "resets", self._requests.find_resets(address, group, held))

    def _fetch(self, requests: asyncio.TaskGroup) -> None:
        groups: defaultdict[str, list[list[FetchPosition]]] = defaultdict(list)
        fetchable = self._positions.fetchable()
        for is_busy in (True, False):
            some = [each for each in fetchable if each.is_busy is is_busy]
            for address, group in self._by_leader(requests, some).items():
                groups[address].append(group)
        for address, of_leader in groups.items():
            under_way = self._fetches[address]
            if len(under_way) + len(of_leader) > FETCHES_MAX:
                # Its partitions come back, and are asked for with these. Nothing is asked before
                # there is room for all, or that would have to make room for the rest.
                _to_give_up(under_way).cancel()
                continue
            for group in of_leader:
                self._ask_for_records(requests, address, group)

    def _ask_for_records(
        self, requests: asyncio.TaskGroup, address: str, group: Sequence[FetchPosition]
    ) -> None:
        held, under_way = self._holds.hold(group), self._fetches[address]
        run = self._requests.fetch(address, group, held)
        task = self._ask(requests, held, f"fetch {address}", run)
        under_way[task] = len(group)
        task.add_done_callback(under_way.pop)

    def _by_leader(
        self, requests: asyncio.TaskGroup, asked: Iterable[Item]
    ) -> dict[str, list[Item]]:
        """Return what to ask whom, by address; starts to find out where that is unknown."""
        by_leader: defaultdict[str, list[Item]] = defaultdict(list)
        unknown: defaultdict[str, list[Item]] = defaultdict(list)
        for item in asked:
            partition = ids.TopicPartition(item.topic_id, item.ticket.topic_partition.partition)
            try:
                by_leader[self._cluster.leader_address(partition)].append(item)
            except RefreshRetriableError:
                unknown[item.ticket.topic_partition.topic].append(item)
        for topic, of_topic in unknown.items():
            run = self.leaders.find(topic, of_topic)
            self._ask(requests, self._holds.hold(of_topic), f"leaders of {topic}", run)
        return by_leader

    def _ask(
        self, requests: asyncio.TaskGroup, held: Held, name: str, run: Coroutine[None, None, None]
    ) -> asyncio.Task[None]:
        """Start a request; whatever it still holds when it is done is let go of."""
        task = requests.create_task(run, name=f"consumer {name}")
        task.add_done_callback(lambda _: self._holds.release(held, held.copy()))
        return task


def _to_give_up(under_way: UnderWay) -> asyncio.Task[None]:
    """Return the oldest fetch, except the one with the most partitions to ask for again."""
    largest = max(under_way, key=under_way.__getitem__)
    return next(each for each in under_way if each is not largest)
