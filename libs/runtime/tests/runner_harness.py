"""A machine of named counters, and what runner tests need around it."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from semel_common.errors import InvalidRequestError
from semel_runtime.journal import Journal, StoredBatch
from semel_runtime.journal.contract import Reserve
from semel_runtime.machine import Result
from semel_runtime.runner import Runner, RunnerOptions
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counted:
    """Fact: a counter has a new value."""

    name: str
    value: int


class CounterSerde:
    """JSON does for a test."""

    def encode(self, record: Counted) -> bytes:
        return json.dumps([record.name, record.value]).encode()

    def decode(self, data: bytes) -> Counted:
        return Counted(*json.loads(data))


class Counters:
    """The machine."""

    def __init__(self) -> None:
        self.counters: dict[str, tuple[int, Counted]] = {}
        self.replayed: list[int] = []

    def replay(self, offset: int, record: Counted) -> None:
        assert record.value >= 0, "a counter is never negative"
        self.counters.pop(record.name, None)
        self.counters[record.name] = (offset, record)
        self.replayed.append(offset)

    def snapshot(self) -> Iterable[tuple[int, Counted]]:
        return tuple(self.counters.values())

    def value(self, name: str) -> int:
        return self.counters[name][1].value if name in self.counters else 0

    # -- handlers --

    def add(self, name: str, amount: int = 1) -> Result[int, Counted]:
        value = self.value(name) + amount
        return Result(value, [Counted(name, value)])

    def add_batch(self, batch: StoredBatch) -> Result[None, Counted]:
        return Result(None, [Counted("batches", 1)], [batch])

    def read(self, name: str) -> Result[int, Counted]:
        return Result(self.value(name))

    def refuse(self) -> Result[None, Counted]:
        raise InvalidRequestError(f"there are {len(self.counters)} counters")


@dataclass(slots=True)
class Service:
    """A runner on a volume in memory; `restart` opens another one on the same volume."""

    volume: MemoryVolume
    machine: Counters
    journal: Journal
    runner: Runner[Counted]
    durable: list[Counted] = field(default_factory=list)

    async def add(self, name: str, amount: int = 1) -> int:
        return await self.runner.run(lambda: self.machine.add(name, amount))

    async def read(self, name: str) -> int:
        return await self.runner.run(lambda: self.machine.read(name))

    async def refuse(self) -> None:
        return await self.runner.run(self.machine.refuse)

    async def run(
        self, handler: Callable[[], Result[int, Counted]], *, privileged: bool = False
    ) -> int:
        return await self.runner.run(handler, privileged=privileged)

    async def add_data(self, name: str, may_use: Reserve = Reserve.NONE) -> int:
        """Add to a counter what a full disk refuses."""
        return await self.runner.run(lambda: self.machine.add(name), may_use=may_use)

    async def restart(self, options: RunnerOptions | None = None) -> "Service":
        await self.runner.close()
        return await start(self.volume, options)


async def settle() -> None:
    """Let all tasks go on until they wait for the disk."""
    for _ in range(30):
        await asyncio.sleep(0)


async def begin(call: Coroutine[None, None, T]) -> asyncio.Task[T]:
    """Start a call and let everything run that can run without a sync."""
    task = asyncio.ensure_future(call)
    await settle()
    return task


async def start(
    volume: MemoryVolume | None = None,
    options: RunnerOptions | None = None,
    *,
    disk_reserve_bytes: int = 0,
) -> Service:
    """Open a journal and a runner on it."""
    volume = volume or MemoryVolume()
    journal = MemoryJournal(volume, disk_reserve_bytes=disk_reserve_bytes)
    machine = Counters()
    runner = await Runner.open(journal, machine, CounterSerde(), options=options)
    service = Service(volume, machine, journal, runner)
    runner.on_durable(service.durable.extend)
    return service
