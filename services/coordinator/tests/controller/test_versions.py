"""Waiting for the next version of the metadata."""

import asyncio

from semel_coordinator.controller.rpc.metadata_versions import VersionGate


class Metadata:
    """A version that a test raises, and its gate."""

    def __init__(self) -> None:
        self.version = 1
        self.gate = VersionGate(lambda: self.version)

    def announce(self, version: int) -> None:
        self.version = version
        self.gate.announce()


async def parked(group: asyncio.TaskGroup, gate: VersionGate, known: int) -> "asyncio.Task[None]":
    task = group.create_task(gate.wait(known_version=known, max_wait_ms=60_000))
    await asyncio.sleep(0)
    return task


async def test_all_who_wait_are_woken_by_one_change() -> None:
    metadata = Metadata()
    async with asyncio.TaskGroup() as group:
        waiting = [await parked(group, metadata.gate, 1) for _ in range(3)]
        assert not any(each.done() for each in waiting)
        metadata.announce(2)


async def test_a_caller_that_knows_the_next_version_waits_on() -> None:
    metadata = Metadata()
    async with asyncio.TaskGroup() as group:
        waiting = await parked(group, metadata.gate, 2)
        metadata.announce(2)
        await asyncio.sleep(0)
        assert not waiting.done()
        metadata.announce(3)


async def test_no_call_waits_for_a_known_version() -> None:
    metadata = Metadata()
    await metadata.gate.wait(known_version=0, max_wait_ms=0)


async def test_no_caller_waits_longer_than_asked() -> None:
    metadata = Metadata()
    await metadata.gate.wait(known_version=1, max_wait_ms=0)
    await metadata.gate.wait(known_version=1, max_wait_ms=1)


async def test_no_caller_waits_once_the_gate_is_open() -> None:
    metadata = Metadata()
    async with asyncio.TaskGroup() as group:
        waiting = await parked(group, metadata.gate, 1)
        metadata.gate.open()
    assert waiting.done()
    await metadata.gate.wait(known_version=1, max_wait_ms=60_000)
