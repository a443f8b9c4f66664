"""The three services in one process and in virtual time, over a network that keeps requests."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from google.protobuf.message import Message

from aiosemel import SemelClient
from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_common.wire.methods import Method
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_group.app import GroupApp
from semel_group.config import GroupSettings
from semel_runtime.app import App, Environment
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.server.calls import Handlers
from semel_runtime.server.limits.long_polls import capped
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import Fault, MemoryNetwork
from semel_runtime.testing.virtual_time import LoopClock, ended
from semel_runtime.testing.volume import MemoryVolume

START_MS = 1_700_000_000_000
COORDINATOR, BROKER, GROUP_COORDINATOR = "coordinator:1", "broker:1", "group-coordinator:1"
SAMPLES_MAX = 40
"""So many requests of a method are kept, the newest."""


class Sample(NamedTuple):
    """A valid request, as it was sent."""

    address: str
    method: Method[Message, Message]
    data: bytes


Samples = Sequence[Sequence[Sample]]
"""Samples of several methods, each with one or more."""


class Cluster:
    """One instance of each service, and the requests that they got."""

    def __init__(self, random: Random) -> None:
        self._samples: defaultdict[str, list[Sample]] = defaultdict(list)
        self.handlers: dict[str, Handlers] = {}
        """By address."""
        self.keeping = True
        """Whether requests are kept."""
        self.network = MemoryNetwork()
        self.network.decide = self._keep
        self._random = random

    def client(self) -> SemelClient:
        """Make a client; to be opened with ``async with``."""
        return SemelClient(
            COORDINATOR,
            connector=self.network,
            clock=LoopClock(START_MS),
            random=Random(self._random.getrandbits(64)),
        )

    def samples_of(self, wanted: Callable[[Method[Message, Message]], bool]) -> Samples:
        """Return the kept requests of some methods."""
        return [tuple(sample) for sample in self._samples.values() if wanted(sample[0].method)]

    @asynccontextmanager
    async def started(self) -> AsyncIterator["Cluster"]:
        """Run all services, ready to serve."""
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            for address, app in self._apps():
                await stack.enter_async_context(app)
                app.handlers.wrap(capped(ServerLimits().long_poll_max_ms))  # As a server does.
                self.network.serve(address, app.handlers)
                self.handlers[address] = app.handlers
                stack.push_async_callback(ended, group.create_task(app.run()))
                await app.ready.wait()
            yield self
            await self.network.close()

    def _apps(self) -> tuple[tuple[str, App], ...]:
        coordinator = CoordinatorSettings(data_dir=Path("coordinator"))
        broker = BrokerSettings(data_dir=Path("broker"), controller=COORDINATOR)
        group = GroupSettings(data_dir=Path("group"), controller=COORDINATOR)
        return (
            (COORDINATOR, CoordinatorApp(coordinator, self._environment(COORDINATOR))),
            (BROKER, BrokerApp(broker, self._environment(BROKER))),
            (GROUP_COORDINATOR, GroupApp(group, self._environment(GROUP_COORDINATOR))),
        )

    def _environment(self, address: str) -> Environment:
        host, _, port = address.partition(":")
        return Environment(
            journal=MemoryJournal(MemoryVolume(), service=f"semel-{host}"),
            connector=self.network,
            clock=LoopClock(START_MS),
            random=Random(self._random.getrandbits(64)),
            listeners=(Listener(name="default", host=host, port=int(port)),),
        )

    def _keep(self, address: str, method: Method[Message, Message], request: Message) -> Fault:
        if not self.keeping:
            return Fault.NONE
        kept = self._samples[method.path]
        kept.append(Sample(address, method, request.SerializeToString()))
        del kept[:-SAMPLES_MAX]
        return Fault.NONE
