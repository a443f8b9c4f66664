"""The end of a run: all input is consumed, every transaction decided, and everything read once."""

import asyncio
from collections.abc import Awaitable, Callable

from semel_checker.names import Partition
from semel_checker.observations import FinalGroup, FinalPartition, StoredRecord
from semel_checker.operations import GroupOffset
from simulation.recorded import Records
from simulation.workloads import GROUP, read_all

from aiosemel import ConsumerOptions, IsolationLevel, RetriableError, SemelClient, TopicPartition
from chaos.clients import TOPICS

BOUND_S = 60.0
"""How long each of these may take."""
PLACES = [TopicPartition(topic, at) for topic, n in TOPICS.items() for at in range(n)]
INPUTS = [place for place in PLACES if place.topic == "in"]
_POLL_S = 0.2


class Ending:
    """The state that an operator sees when a run is over."""

    def __init__(self, client: SemelClient, records: Records) -> None:
        self._client = client
        self._recorder = records.recorder
        self._group = client.consumer(GROUP)
        self._loose = client.consumer(
            options=ConsumerOptions(isolation_level=IsolationLevel.READ_UNCOMMITTED)
        )

    async def wait_taken(self, bound_s: float) -> None:
        """Wait until every partition has a committed record that was not there at the beginning.

        The rule that nothing stands still is the history's: clients work for as long as it allows.
        """
        ends: dict[TopicPartition, int] = {}

        async def idle() -> object:
            if not ends:
                ends.update(await self._ends())
            return [place for place, end in ends.items() if not await self._has_records(place, end)]

        await _until_none_left("took nothing", idle, bound_s)

    async def wait_consumed(self) -> list[str]:
        """Wait until the group has gone past all input that there was at the beginning."""
        goals: dict[TopicPartition, int] = {}

        async def behind() -> object:
            if not goals:
                goals.update(await self._group.end_offsets(INPUTS))
            return await self._behind(goals)

        return await _until_none_left("not consumed", behind)

    async def wait_settled(self) -> list[str]:
        """Wait until no transaction is open, anywhere."""

        async def held() -> object:
            stable, ends = await self._group.end_offsets(PLACES), await self._ends()
            return {
                place: (stable[place], end) for place, end in ends.items() if stable[place] < end
            }

        return await _until_none_left("held by open transactions", held)

    async def read_all(self) -> None:
        """Read every partition at both levels of isolation, and the group's offsets."""
        ends = await self._ends()
        stable = await self._group.end_offsets(PLACES)
        committed = await read_all(self._client, IsolationLevel.READ_COMMITTED, stable)
        everything = await read_all(self._client, IsolationLevel.READ_UNCOMMITTED, ends)
        for place in PLACES:
            final = FinalPartition(
                partition=Partition(*place),
                log_start_offset=0,
                last_stable_offset=stable[place],
                high_watermark=ends[place],
                committed=committed[place],
                uncommitted=tuple(StoredRecord(*each) for each in everything[place]),
            )
            self._recorder.observed("chaos", final)
        found = await self._group.committed(INPUTS)
        offsets = ((place, found.get(place)) for place in INPUTS)
        self._recorder.observed(
            "chaos",
            FinalGroup(
                group=GROUP,
                offsets=tuple(
                    GroupOffset(Partition(*place), None if at is None else at.offset)
                    for place, at in offsets
                ),
            ),
        )

    async def _ends(self) -> dict[TopicPartition, int]:
        return await self._loose.end_offsets(PLACES)

    async def _behind(self, goals: dict[TopicPartition, int]) -> object:
        committed = await self._group.committed(INPUTS)
        left = {}
        for place, goal in goals.items():
            found = committed.get(place)
            at = 0 if found is None else found.offset
            if at < goal and await self._has_records(place, at):
                left[place] = (at, goal)
        return left

    async def _has_records(self, place: TopicPartition, at: int) -> bool:
        """Whether anything but markers is left there."""
        consumer = self._client.consumer(options=ConsumerOptions(fetch_max_wait_ms=20))
        consumer.assign([place])
        consumer.seek(place, at)
        found = await consumer.poll(1, 50)
        await consumer.close()
        return bool(found)


async def _until_none_left(
    what: str, look: Callable[[], Awaitable[object]], bound_s: float = BOUND_S
) -> list[str]:
    left: object = "nobody answered"
    try:
        async with asyncio.timeout(bound_s):
            while True:
                try:
                    left = await look()
                except RetriableError as error:
                    left = error
                if not left:
                    return []
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return [f"{what} after {bound_s:g} s: {left}"]
