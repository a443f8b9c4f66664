"""Members of one group."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from aiosemel import Consumer, GroupState
from bench.growth.curve import Curve, Point
from bench.growth.stage import Stage, stage
from bench.topics import fresh_topic

PARTITIONS = 500
SETTLE_S = 120.0
LOOK_S = 0.2


async def groups(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Let so many members join at once, then one more; each reads a part of the partitions."""
    async with stage(folder) as here:
        topic = await fresh_topic(here.client, PARTITIONS)
        for size in sizes:
            async with _Members(here, topic, f"group-of-{size:g}") as members:
                join_all, join_one = partial(members.join, int(size)), partial(members.join, 1)
                readings = [
                    *await here.probe.once("join, each of all", join_all, parts=size),
                    *await here.probe.idle(),
                    *await here.probe.once("one more joins", join_one),
                    *await here.probe.once("one leaves", members.leave),
                    *here.probe.memory(),
                ]
            yield Point(size=size, readings=tuple(readings))


class _Members:
    """Of one group; all are in this process, and have its client's connections."""

    def __init__(self, here: Stage, topic: str, group_id: str) -> None:
        self._here = here
        self._topic = topic
        self._group_id = group_id
        self._members: list[tuple[Consumer, asyncio.Task[None]]] = []
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(self._end() for _ in range(len(self._members))))
        await self._tasks.__aexit__(None, None, None)

    async def join(self, count: int) -> None:
        """Let more join; returns when everybody holds what is theirs."""
        for _ in range(count):
            consumer = self._here.client.consumer(self._group_id)
            consumer.subscribe([self._topic])
            self._members.append((consumer, self._tasks.create_task(_poll(consumer))))
        await self._settled()

    async def leave(self) -> None:
        """Let one leave; returns when its partitions are others'."""
        await self._end()
        if self._members:
            await self._settled()

    async def _end(self) -> None:
        consumer, task = self._members.pop()
        task.cancel()
        await asyncio.wait([task])
        await consumer.close()

    async def _settled(self) -> None:
        async with asyncio.timeout(SETTLE_S):
            while True:
                if await self._is_settled():
                    return
                await asyncio.sleep(LOOK_S)

    async def _is_settled(self) -> bool:
        held = sum(len(consumer.assignment()) for consumer, _ in self._members)
        if held != PARTITIONS:
            return False
        group = await self._here.client.admin().describe_group(self._group_id)
        return len(group.members) == len(self._members) and group.state is GroupState.STABLE


async def _poll(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=60_000)


GROUPS = Curve(
    name="groups",
    axis="members of the group",
    sizes=(1, 10, 100, 500),
    measure=groups,
    why="A member that joins among others costs no more in a large group: members that join "
    "together share their epochs. One more member moves the group's epoch, and all members "
    "learn it in a heartbeat of their own, as KIP-848 requires: that is proportional, and takes "
    "a heartbeat interval or two. A second without work consists of their heartbeats and their "
    "fetches.",
)
