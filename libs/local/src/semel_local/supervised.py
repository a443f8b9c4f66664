"""A cluster whose services are started again when they end by themselves."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from semel_local.process import Ended
from semel_local.processes import ProcessCluster, StartOptions


class Supervised:
    """A cluster, and the services that have ended in it. Made by ``supervised``."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str]) -> None:
        """Do no I/O yet. ``environment`` is added to the variables that the services inherit."""
        self._queue: asyncio.Queue[Ended] = asyncio.Queue()
        self._unseen: asyncio.Queue[Ended] = asyncio.Queue()
        options = StartOptions(environment=environment)
        self.ends: list[Ended] = []
        """The unexpected ends of services so far; each service was started again."""
        self.cluster = ProcessCluster(
            folder, on_ended=self._queue.put_nowait, start_options=lambda _: options
        )

    async def run(self) -> None:
        """Start what ends again, until cancelled."""
        while True:
            ended = await self._queue.get()
            await self.cluster.start(ended.name, wait=False)
            self.ends.append(ended)
            self._unseen.put_nowait(ended)

    async def next_end(self) -> Ended:
        """Wait for the next end that was not returned here yet; the service is started again."""
        return await self._unseen.get()


@asynccontextmanager
async def supervised(folder: Path, *, environment: Mapping[str, str]) -> AsyncIterator[Supervised]:
    """Run a cluster of one service of each role in ``folder``, each with this ``environment``.

    Raises what ``ProcessCluster.open`` raises.
    """
    made = Supervised(folder, environment=environment)
    async with made.cluster, asyncio.TaskGroup() as group:
        supervisor = group.create_task(made.run(), name="supervisor")
        try:
            yield made
        finally:
            supervisor.cancel()
