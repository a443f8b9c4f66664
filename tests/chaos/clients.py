"""The clients of a run: processes that do their work until they are told to finish, or killed.

Each life of a client records into a file of its own, which stays when the client is killed.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from random import Random
from signal import Signals
from typing import Self

from simulation import workloads as simulated

from chaos.recording import events_path
from semel_local.layout import write_atomically
from semel_local.process import Ended, ManagedProcess

OPS_PER_LIFE = 1_000_000
"""Operations, values and names of one life are numbered from a multiple of this on."""
EXIT_GAVE_UP = 3
"""The status of a client that ended with an error after which an application has to restart."""
NAMES = (
    "writers-0",
    "writers-1",
    "duellist-0",
    "duellist-1",
    "transformer-0",
    "transformer-1",
    "joint-owner",
    "joint-both",
    "joint-workers",
    "readers",
)
TOPICS = {topic: simulated.TOPICS[topic] for topic in ("a", "b", "in", "out")}
"""The clients' topics, with the number of partitions: fewer than the simulation has."""
START_S = 60.0
_POLL_S = 0.05
_TESTS = Path(__file__).parent.parent


class Phase(StrEnum):
    """Where a run is; each client looks into a file for it."""

    FAULTS = "faults"
    CALM = "calm"
    """No client dawdles."""
    FINISH = "finish"
    """No client begins a new transaction."""


@dataclass(slots=True)
class _Client:
    name: str
    process: ManagedProcess
    lives: int = 0


class Clients:
    """All client processes. ``async with`` ends the processes that still run."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        *,
        bootstrap: str,
        began_ns: int,
        random: Random,
    ) -> None:
        """Do no I/O yet. ``began_ns`` is 0 on the clock of the history."""
        self.names = names
        self.problems: list[str] = []
        """Clients that broke down."""
        self.ends = 0
        """How often a client ended by itself, with an error of the protocol."""
        self._folder = folder
        self._events = events_path(folder, "").parent
        self._bootstrap = bootstrap
        self._began_ns = began_ns
        self._random = random
        self._lives = count(1)
        self._clients: dict[str, _Client] = {}
        self._phase = folder / "phase"
        self._finishing = False
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        write_atomically(self._phase, Phase.FAULTS)
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._finishing = True
        await asyncio.gather(*(client.process.kill() for client in self._clients.values()))
        await self._tasks.__aexit__(None, None, None)

    async def start_all(self) -> None:
        """Start each, and wait until all have begun their work."""
        for name in self.names:
            await self._start(name)
        async with asyncio.timeout(START_S):
            while not all(map(self._has_recorded, self.names)):  # noqa: ASYNC110 - they are processes
                await asyncio.sleep(_POLL_S)

    def _has_recorded(self, name: str) -> bool:
        return any(file.stat().st_size for file in self._events.glob(f"{name}.*"))

    async def kill(self, name: str, *, pause_s: float) -> None:
        """Kill a client, and start it again later."""
        client = self._clients[name]
        if client.process.running:
            await client.process.kill()
            await self._restart(name, client.lives, pause_s)

    def signal(self, name: str, number: Signals) -> None:
        """Send a client a signal."""
        self._clients[name].process.signal(number)

    def calm(self) -> None:
        """Tell the clients to stop dawdling."""
        write_atomically(self._phase, Phase.CALM)

    def recorded_bytes(self) -> int:
        """Return how much all clients have recorded by now: a measure of work."""
        with os.scandir(self._events) as files:
            return sum(file.stat().st_size for file in files)

    async def finish(self, timeout_s: float) -> list[str]:
        """Let each client end in order; returns the names of the clients that did not."""
        self._finishing = True
        write_atomically(self._phase, Phase.FINISH)
        ends = {
            asyncio.create_task(client.process.wait(), name=name)
            for name, client in self._clients.items()
        }
        _, late = await asyncio.wait(ends, timeout=timeout_s)
        for task in late:
            task.cancel()
        return sorted(task.get_name() for task in late)

    def log_paths(self) -> dict[str, Path]:
        """Return the output of each client."""
        return {name: client.process.log_path for name, client in self._clients.items()}

    async def _restart(self, name: str, life: int, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        client = self._clients[name]
        if not self._finishing and client.lives == life and not client.process.running:
            await self._start(name)

    async def _start(self, name: str) -> None:
        life = next(self._lives)
        before = self._clients.get(name)
        client = _Client(name, self._process(name, life), before.lives + 1 if before else 1)
        self._clients[name] = client
        await client.process.spawn()
        self._tasks.create_task(self._watch(client), name=f"watch {name}")

    async def _watch(self, client: _Client) -> None:
        ended = await client.process.wait_unexpected()
        if ended is None:
            return
        if not (self._finishing and ended.exit_status == 0):
            self._judge(ended)
            await self._restart(client.name, client.lives, 0.2)

    def _judge(self, ended: Ended) -> None:
        if ended.exit_status == EXIT_GAVE_UP:
            self.ends += 1
        else:
            self.problems.append(str(ended))

    def _process(self, name: str, life: int) -> ManagedProcess:
        options: Mapping[str, object] = {
            "name": name,
            "life": life,
            "first": life * OPS_PER_LIFE,
            "bootstrap": self._bootstrap,
            "began-ns": self._began_ns,
            "seed": self._random.getrandbits(63),
            "events": events_path(self._folder, f"{name}.{life}"),
            "phase": self._phase,
        }
        arguments = [f"--{option}={value}" for option, value in options.items()]
        path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = (sys.executable, "-m", "chaos.client", *arguments)
        log_path = self._folder / "clients" / f"{name}.log"
        return ManagedProcess(name, command, log_path, environment={"PYTHONPATH": path})
