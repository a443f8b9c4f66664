"""What goes through all groups in the background lets others have their turn, whatever it finds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial

from group_harness import image, new_offsets

from semel_group.journal import GroupSerde
from semel_group.loops.metadata_updates import MetadataTaker
from semel_group.loops.offset_retention import OffsetRetention
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.values import Committer
from semel_runtime.journal import Journal
from semel_runtime.runner import Runner
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

GROUPS = [f"group-{number:03}" for number in range(1_000)]
RETENTION_MS = 10_000


@asynccontextmanager
async def running(machine: GroupMachine) -> AsyncIterator[tuple[Runner[Record], Journal]]:
    """A runner of a machine in which every group has positions in four partitions."""
    async with (
        MemoryJournal(MemoryVolume()) as journal,
        await Runner.open(journal, machine, GroupSerde()) as runner,
    ):
        await runner.run(partial(machine.update_cluster, image({"orders": 4})))
        for each in GROUPS:
            offsets = new_offsets(dict.fromkeys(range(4), 7))
            commit = partial(
                machine.committed_offsets.commit_offsets,
                Committer(group_id=each),
                offsets,
                now_ms=0,
            )
            await runner.run(commit)
        yield runner, journal


async def turns_during(work: Awaitable[None]) -> int:
    """Do some work, and count how often others have their turn meanwhile."""
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    await task
    return turns


async def test_others_go_on_while_metadata_are_taken() -> None:
    machine = GroupMachine(0, GroupLimits())
    async with running(machine) as (runner, journal):
        taker = MetadataTaker(runner, machine, journal)
        await taker.take(image({"orders": 4, "more": 1}, version=2))
        assert await turns_during(taker.take(image({"orders": 4, "more": 1}, version=2))) > 10
        assert machine.groups.group_ids() == GROUPS
        await taker.take(image({"more": 1}, version=3))
        assert machine.groups.group_ids() == []


async def test_others_go_on_while_old_offsets_are_looked_for() -> None:
    machine = GroupMachine(0, GroupLimits(offsets_retention_ms=RETENTION_MS))
    clock = ManualClock(RETENTION_MS - 1)
    async with running(machine) as (runner, _):
        retention = OffsetRetention(runner, machine, clock, check_interval_ms=1)
        assert await turns_during(retention.expire()) > 10
        assert machine.groups.group_ids() == GROUPS
        clock.advance(1)
        await retention.expire()
        assert machine.groups.group_ids() == []
