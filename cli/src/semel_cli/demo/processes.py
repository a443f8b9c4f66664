"""The processes of a job: those of the cluster, and the instances of the application."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from semel_cli.demo.progress import JobError
from semel_cli.demo.topics import INSTANCES, Job
from semel_local import ProcessCluster
from semel_local.process import ManagedProcess

SETTLE_S = 1.0
"""How long an instance lives at least: enough to start and to take its partitions."""
_ENDS_MAX = 10


class JobProcesses:
    """Where a job's processes live and die. Implements ``Stage``; ``async with`` ends instances."""

    def __init__(
        self, cluster: ProcessCluster, job: Job, folder: Path, on_kill: Callable[[str], None]
    ) -> None:
        """Do not start the instances yet; ``on_kill`` is told of each kill."""
        self._cluster = cluster
        self._on_kill = on_kill
        self._instances = {
            name: ManagedProcess(
                name,
                (sys.executable, "-m", job.module, cluster.bootstrap, name),
                folder / f"{name}.log",
            )
            for name in (f"{job.name}-{number}" for number in range(INSTANCES))
        }
        self._started: dict[str, float] = {}
        self._group = asyncio.TaskGroup()
        self._stack = AsyncExitStack()
        self.kills: Counter[str] = Counter()
        self.ends = 0
        """How often an instance has ended by itself, and was started again."""

    @property
    def victims(self) -> tuple[str, ...]:
        """Every process that can be killed."""
        return (*self._cluster.names, *self._instances)

    @property
    def running(self) -> dict[str, bool]:
        """Whether each process is there."""
        instances = {name: process.running for name, process in self._instances.items()}
        return {name: name in self._cluster.pids() for name in self._cluster.names} | instances

    async def start_instances(self) -> None:
        """Start all instances of the application."""
        for name in self._instances:
            await self.start(name)

    async def kill(self, name: str) -> None:
        """Kill a process as ``kill -9`` does."""
        self.kills[name] += 1
        self._on_kill(name)
        if name in self._instances:
            await self._instances[name].kill()
        else:
            await self._cluster.kill(name)

    async def start(self, name: str) -> None:
        """Start a process; returns before it is ready."""
        if name not in self._instances:
            await self._cluster.start(name, wait=False)
            return
        self._started[name] = asyncio.get_running_loop().time()
        await self._instances[name].spawn()
        self._group.create_task(self._watch(self._instances[name]), name=f"watch {name}")

    async def wait_ready(self, name: str) -> None:
        """Wait until a process does its work."""
        if name not in self._instances:
            await self._cluster.wait_ready(name)
            return
        age_s = asyncio.get_running_loop().time() - self._started[name]
        await asyncio.sleep(max(0.0, SETTLE_S - age_s))

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._group)
        self._stack.push_async_callback(self._end_instances)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(exc_type, exc, traceback)

    async def _end_instances(self) -> None:
        async with asyncio.TaskGroup() as group:
            for process in self._instances.values():
                group.create_task(process.kill(), name=f"kill {process.name}")

    async def _watch(self, process: ManagedProcess) -> None:
        """Start an instance again that has ended by itself, as any supervisor would."""
        ended = await process.wait_unexpected()
        if ended is None:
            return
        self.ends += 1
        if self.ends > _ENDS_MAX:
            raise JobError(str(ended))
        await self.start(process.name)
