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
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import TypeVar

from aiosemel._cluster.failures import WARN_AGAIN_MS, Failures, named
from aiosemel._cluster.permanent_errors import UNHEALED, UNHEALED_MAX
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._consumer.group.committed_offsets import GroupOffsets, quick_pauses_ms
from aiosemel._consumer.partition_state import Chunk, OffsetReset, PositionState
from aiosemel._consumer.positions import FetchPosition, PositionQuestion, Positions, Ticket
from aiosemel._shared.change_signal import Signal
from aiosemel.errors import (
    ApplicationRecoverableError,
    RefreshRetriableError,
    RetriableError,
    SemelError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from aiosemel.options.consumer_options import ConsumerOptions
from aiosemel.types.isolation import ISOLATION
from aiosemel.types.offsets import TopicPartition
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import RecordBatch
from semel_common import ids
from semel_common.library_log import get_logger
from semel_common.wire import status
from semel_common.wire.methods import FETCH, LIST_OFFSETS, Method, Req, Res

FETCHES_MAX = 5
"""Unanswered fetches at one broker; past it, one of them makes way."""

TURNS_TO_ASK = 3
"""Of the event loop, from an answer until the next request has left: the loop of the fetcher looks,
the request begins, and what requests of one moment have to send is sent."""

Held = set[Ticket]
"""The partitions that a request has not let go of."""
UnderWay = dict[asyncio.Task[None], int]
"""Fetches, the oldest first, each with the number of its partitions."""
Asked = TypeVar("Asked", PositionQuestion, FetchPosition)

_AGAIN = (RetriableError, UnknownServerError)
"""Errors that another attempt may heal. The client cannot repair a failure inside a server, so it
asks until the server answers, as Kafka's consumer does.
"""

_OFFSETS = "for committed offsets"
_log = get_logger(__name__)
_SPECS = {
    OffsetReset.EARLIEST: broker.OFFSET_SPEC_EARLIEST,
    OffsetReset.LATEST: broker.OFFSET_SPEC_LATEST,
}


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
        self._committed = committed
        self._options = options
        self._arrived = arrived
        self._isolation = ISOLATION[options.isolation_level]
        self.reports_missing = False
        """Whether the user named the partitions, and so is told when one is not there."""
        self._work = Signal()
        self._fetches: defaultdict[str, UnderWay] = defaultdict(dict)
        self._pauses: dict[str, Iterator[float]] = {}
        self._failures: defaultdict[str, Failures] = defaultdict(
            lambda: Failures(quiet_ms=WARN_AGAIN_MS)
        )

    def look(self) -> None:
        """Look again at what there is to ask."""
        self._work.notify()

    def trouble(self, of: TopicPartition) -> SemelError | None:
        """Return the last error of the instances asked about a partition, if any."""
        rows = [self._cluster.cache.failures]
        rows += [self._failures[asked] for asked in (_OFFSETS, _for_topic(of.topic))]
        topic = self._cluster.cache.cached_topic(of.topic)
        if topic is not None:
            with contextlib.suppress(RefreshRetriableError):
                partition = ids.TopicPartition(topic.topic_id, of.partition)
                rows.append(self._failures[self._cluster.leader_address(partition)])
        return next((row.last for row in rows if row.last is not None), None)

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
            held = self._hold(questions)
            self._ask(requests, held, "offsets", self._find_committed(questions, held))

    def _ask_for_resets(self, requests: asyncio.TaskGroup) -> None:
        questions = self._positions.awaiting(PositionState.AWAITING_RESET)
        for address, group in self._by_leader(requests, questions).items():
            held = self._hold(group)
            self._ask(requests, held, "resets", self._find_resets(address, group, held))

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
        held, under_way = self._hold(group), self._fetches[address]
        run = self._fetch_from(address, group, held)
        task = self._ask(requests, held, f"fetch {address}", run)
        under_way[task] = len(group)
        task.add_done_callback(under_way.pop)

    def _by_leader(
        self, requests: asyncio.TaskGroup, asked: Iterable[Asked]
    ) -> dict[str, list[Asked]]:
        """Return what to ask whom, by address; starts to find out where that is unknown."""
        by_leader: defaultdict[str, list[Asked]] = defaultdict(list)
        unknown: defaultdict[str, list[Asked]] = defaultdict(list)
        for item in asked:
            partition = ids.TopicPartition(item.topic_id, item.ticket.topic_partition.partition)
            try:
                by_leader[self._cluster.leader_address(partition)].append(item)
            except RefreshRetriableError:
                unknown[item.ticket.topic_partition.topic].append(item)
        for topic, of_topic in unknown.items():
            run = self._find_leaders(topic, of_topic)
            self._ask(requests, self._hold(of_topic), f"leaders of {topic}", run)
        return by_leader

    def _hold(self, asked: Iterable[PositionQuestion | FetchPosition]) -> Held:
        """Hold partitions, so that nothing else asks for them, until ``_release``."""
        held = {item.ticket for item in asked}
        self._positions.asked(held)
        return held

    def _release(self, held: Held, tickets: Iterable[Ticket]) -> None:
        """Let go of some partitions of a request: they do not come back to the request."""
        released = held.intersection(tickets)
        held -= released
        self._positions.given_up(released)
        self._work.notify()
        self._arrived.notify()

    def _ask(
        self, requests: asyncio.TaskGroup, held: Held, name: str, run: Coroutine[None, None, None]
    ) -> asyncio.Task[None]:
        """Start a request; whatever it still holds when it is done is let go of."""
        task = requests.create_task(run, name=f"consumer {name}")
        task.add_done_callback(lambda _: self._release(held, held.copy()))
        return task

    # -- asking ----------------------------------------------------------------------------------

    async def _find_leaders(
        self, topic: str, asked: Sequence[PositionQuestion | FetchPosition]
    ) -> None:
        """Find the leaders of one topic, for which no other waits; requests are shared."""
        what = _for_topic(topic)
        try:
            await self._find_topic(topic, asked)
        except UNHEALED as error:
            self._fail(asked, error)
        except _AGAIN as error:
            if self.reports_missing and isinstance(error, UnknownTopicOrPartitionError):
                self._fail(asked, error)
            else:
                await self._recover(what, error)
        except SemelError as error:
            self._fail(asked, error)
        else:
            self._recovered(what)
            for item in asked:
                self._identify(item)

    async def _find_topic(
        self, topic: str, asked: Sequence[PositionQuestion | FetchPosition]
    ) -> None:
        deadline = self._deadline()
        # The known topic has no leader; or only its topic id was missing, and is fresh.
        stale = self._cluster.cache.cached_topic(topic) is not None and not all(
            not item.topic_id
            and self._cluster.cache.was_just_asked_for(*item.ticket.topic_partition)
            for item in asked
        )
        await self._cluster.cache.topic(topic, deadline)
        if stale:
            await self._cluster.cache.refresh(deadline)

    def _identify(self, asked: PositionQuestion | FetchPosition) -> None:
        name, partition = asked.ticket.topic_partition
        topic = self._cluster.cache.cached_topic(name)
        if topic is None:
            return
        if not asked.topic_id:
            self._positions.identify(asked.ticket, topic.topic_id)
        if not self.reports_missing:
            return
        if asked.topic_id not in {"", topic.topic_id}:
            gone = f"topic {name} with id {asked.topic_id} is gone, its id is {topic.topic_id}"
            self._positions.failed(asked.ticket, UnknownTopicIdError(gone))
        if not 0 <= partition < len(topic.partitions):
            count = len(topic.partitions)
            none = f"topic {name} has {count} partitions, no partition {partition}"
            self._positions.failed(asked.ticket, UnknownTopicOrPartitionError(none))

    async def _find_committed(self, questions: Sequence[PositionQuestion], held: Held) -> None:
        waiting = await self._find_stable(questions, held)
        for pause_ms in quick_pauses_ms():
            if not waiting:
                return
            await asyncio.sleep(pause_ms / 1000)
            current = [each for each in waiting if self._positions.is_current(each.ticket)]
            waiting = await self._find_stable(current, held)

    async def _find_stable(
        self, questions: Sequence[PositionQuestion], held: Held
    ) -> list[PositionQuestion]:
        """Ask for committed offsets once; returns the partitions without a definite answer."""
        if self._committed is None:
            for item in questions:
                self._positions.committed(item.ticket, None)
            return []
        partitions = [(item.ticket.topic_partition, item.topic_id) for item in questions]
        try:
            answers = await self._committed.fetch(partitions, self._deadline())
        except UNHEALED as error:
            self._fail(questions, error)
            return []
        except (*_AGAIN, ApplicationRecoverableError) as error:
            level = self._failures[_OFFSETS].failed(error)
            _log.log(level, "asking %s failed: %s", _OFFSETS, error)
            return list(questions)  # of a member that is fenced: until it lets go of them
        except SemelError as error:
            self._fail(questions, error)
            return []
        self._failures[_OFFSETS].succeeded()
        waiting = []
        for item in questions:
            answer = answers[item.ticket.topic_partition]
            if isinstance(answer, _AGAIN):
                waiting.append(item)
            elif isinstance(answer, SemelError):
                self._positions.failed(item.ticket, answer)
            else:
                self._positions.committed(item.ticket, None if answer is None else answer.offset)
        self._release(held, [item.ticket for item in questions if item not in waiting])
        return waiting

    async def _find_resets(
        self, address: str, questions: Sequence[PositionQuestion], held: Held
    ) -> None:
        request = broker.ListOffsetsRequest(
            isolation_level=self._isolation,
            partitions=[
                broker.ListOffsetsPartition(
                    topic_id=item.topic_id,
                    partition=item.ticket.topic_partition.partition,
                    spec=_SPECS[item.reset],
                )
                for item in questions
            ],
        )
        response = await self._attempt(address, LIST_OFFSETS, request, questions)
        results = () if response is None else response.partitions
        failures = []
        for each, result in zip(questions, results, strict=response is not None):
            if result.HasField("error"):
                failures.append((each, status.from_value(result.error)))
            else:
                self._positions.found(each.ticket, result.offset)
        await self._settle(address, held, failures)

    async def _fetch_from(self, address: str, asked: Sequence[FetchPosition], held: Held) -> None:
        partition_max_bytes = self._positions.partition_max_bytes
        request = broker.FetchRequest(
            isolation_level=self._isolation,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=min(self._options.fetch_max_bytes, partition_max_bytes * len(asked)),
            max_wait_ms=self._options.fetch_max_wait_ms,
            partitions=[
                broker.FetchPartition(
                    topic_id=item.topic_id,
                    partition=item.ticket.topic_partition.partition,
                    fetch_offset=item.offset,
                    partition_max_bytes=partition_max_bytes,
                )
                for item in asked
            ],
        )
        response = await self._attempt(address, FETCH, request, asked)
        results = () if response is None else response.partitions
        if response is not None and not any(result.batches for result in results):
            self._positions.quiet(item.ticket for item in asked)
        failures = []
        for each, result in zip(asked, results, strict=response is not None):
            if result.HasField("error"):
                failures.append((each, status.from_value(result.error)))
            else:
                chunks = map(_chunk, result.batches)
                self._positions.fetched(each, chunks, result.next_offset)
        await self._settle(address, held, failures)

    # -- what became of it -----------------------------------------------------------------------

    async def _attempt(
        self,
        address: str,
        method: Method[Req, Res],
        request: Req,
        asked: Sequence[PositionQuestion | FetchPosition],
    ) -> Res | None:
        """Ask once; None when it failed, and that was taken care of."""
        try:
            response = await self._cluster.attempt_at(
                address, method, request, deadline=self._deadline()
            )
        except _AGAIN as error:
            await self._recover(address, error)
            if isinstance(error, UNHEALED) and self._failures[address].count >= UNHEALED_MAX:
                self._fail(asked, error)
        except SemelError as error:
            self._fail(asked, error)
        else:
            self._recovered(address)
            return response
        return None

    async def _settle(
        self,
        address: str,
        held: Held,
        failures: Sequence[tuple[PositionQuestion | FetchPosition, SemelError]],
    ) -> None:
        """Let go of the answered partitions; pause the others, which are asked for again."""
        retriable = []
        for each, error in failures:
            if isinstance(error, _AGAIN):
                retriable.append((each.ticket, error))
            else:
                self._positions.failed(each.ticket, named(error, each.ticket.topic_partition))
        if not retriable:
            return
        self._release(held, held - {ticket for ticket, _ in retriable})
        worst = [error for _, error in retriable if isinstance(error, RefreshRetriableError)]
        await self._recover(address, worst[0] if worst else retriable[0][1])

    async def _recover(self, address: str, error: SemelError) -> None:
        """Pause after an error, and look for the instance in charge if need be."""
        level = self._failures[address].failed(error)
        _log.log(level, "asking %s failed: %s", address, error)
        pauses = self._pauses.setdefault(address, self._cluster.backoff())
        await asyncio.sleep(next(pauses) / 1000)
        if isinstance(error, (RefreshRetriableError, UnknownServerError)):
            with contextlib.suppress(SemelError):  # then it is found out with the next error
                await self._cluster.cache.refresh(self._deadline())

    def _recovered(self, address: str) -> None:
        self._pauses.pop(address, None)
        self._failures[address].succeeded()

    def _fail(self, asked: Iterable[PositionQuestion | FetchPosition], error: SemelError) -> None:
        for item in asked:
            self._positions.failed(item.ticket, error)

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._cluster.options.default_api_timeout_ms)


def _for_topic(topic: str) -> str:
    return f"for topic {topic}"


def _to_give_up(under_way: UnderWay) -> asyncio.Task[None]:
    """Return the oldest fetch, except the one with the most partitions to ask for again."""
    largest = max(under_way, key=under_way.__getitem__)
    return next(each for each in under_way if each is not largest)


def _chunk(batch: RecordBatch) -> Chunk[RecordBatch]:
    return Chunk(
        batch=None if batch.control else batch,
        size_bytes=len(batch.payload),
        next_offset=batch.base_offset + batch.record_count,
    )
