"""A cluster in one process and in virtual time, which trusts the name that a caller gives.

Two coordinators, two brokers and a group coordinator, with access rules: a rule that the controller
has stored must reach all others. Principals are set by the network, as if they had been proven.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

from google.protobuf.message import Message

from access.frames import ask_framed
from aiosemel import SemelClient
from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_common.wire.methods import Method, Req, Res
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_group.app import GroupApp
from semel_group.config import GroupSettings
from semel_runtime.app import App, Environment
from semel_runtime.authentication.principal import Principal
from semel_runtime.cluster.metadata_image import ClusterImage, Listener
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import LoopClock, after, ended
from semel_runtime.testing.volume import MemoryVolume

START_MS = 1_700_000_000_000
COORDINATOR, OTHER_COORDINATOR = "coordinator-0:1", "coordinator-1:1"
BROKER, OTHER_BROKER = "broker-0:1", "broker-1:1"
GROUP_COORDINATOR = "group-coordinator-0:1"
ADMIN = Principal(name="admin")
"""The super user."""
SERVICE = Principal(name="semel", is_cluster=True)
TIMEOUT_MS = 5_000
RESERVE_BYTES = 1_000
"""Of each volume, of which more is free unless a test fills it."""

Settings = Mapping[str, str | int | bool | Path]


class Cluster:
    """All services of a cluster, and the calls that tests send to them."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = {
            "authorizer": "acls",
            "super_users": f"{ADMIN}",
            **(settings or {}),
        }
        self._random = Random(0)
        self.network = MemoryNetwork()
        self.apps: dict[str, App] = {}
        """By address."""
        self.volumes: dict[str, MemoryVolume] = {}
        """By address."""

    def client(self, principal: Principal) -> SemelClient:
        """Make a client of a principal; to be opened with ``async with``."""
        return SemelClient(
            f"{COORDINATOR},{OTHER_COORDINATOR}",
            connector=self.network.of(principal),
            clock=LoopClock(START_MS),
            random=Random(self._random.getrandbits(64)),
        )

    async def ask(
        self, principal: Principal, address: str, method: Method[Req, Res], request: Req
    ) -> Res:
        """Make one unary call."""
        connection = self.network.of(principal).connect(address)
        return await connection.call(method, request, timeout_ms=TIMEOUT_MS)

    async def ask_framed(
        self,
        principal: Principal,
        address: str,
        method: Method[Message, Message],
        request: Message,
    ) -> Message:
        """Make the same call in a frame."""
        return await ask_framed(self.apps[address].handlers, principal, method, request)

    @property
    def image(self) -> ClusterImage:
        """The metadata, as the controller has it."""
        image = self.apps[COORDINATOR]._machine.cluster.image  # type: ignore[attr-defined]
        assert isinstance(image, ClusterImage)
        return image

    def time(self) -> float:
        """Return the time of the loop, in seconds."""
        return asyncio.get_running_loop().time()

    async def settled(self) -> None:
        """Wait until every instance has the rules that the controller has."""
        for _ in range(1_000):
            images = [app._machine.cluster.image for app in self.apps.values()]  # type: ignore[attr-defined]
            if len({(image.acls, image.client_quotas) for image in images}) == 1:
                return
            await after(1)
        raise AssertionError("the rules do not reach everybody")

    @asynccontextmanager
    async def started(self, *, nearly_full: bool = False) -> AsyncIterator["Cluster"]:
        """Run all services, ready to serve; if ``nearly_full``, on disks below their reserve."""
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            for address, app in self._apps():
                if nearly_full:
                    self.volumes[address].free_bytes = 1
                await stack.enter_async_context(app)
                self.network.serve(address, app.handlers)
                self.apps[address] = app
                stack.push_async_callback(ended, group.create_task(app.run()))
                await app.ready.wait()
            yield self
            await self.network.close()

    def _apps(self) -> tuple[tuple[str, App], ...]:
        controller, settings = COORDINATOR, self._settings
        return (
            (COORDINATOR, self._coordinator(COORDINATOR, instance_id=0)),
            (
                OTHER_COORDINATOR,
                self._coordinator(OTHER_COORDINATOR, instance_id=1, controller=controller),
            ),
            *(
                (
                    address,
                    BrokerApp(
                        BrokerSettings.model_validate(
                            {
                                "data_dir": address,
                                "controller": controller,
                                "instance_id": instance_id,
                                **settings,
                            }
                        ),
                        self._environment(address),
                    ),
                )
                for instance_id, address in enumerate((BROKER, OTHER_BROKER))
            ),
            (
                GROUP_COORDINATOR,
                GroupApp(
                    GroupSettings.model_validate(
                        {"data_dir": "group", "controller": controller, **settings}
                    ),
                    self._environment(GROUP_COORDINATOR),
                ),
            ),
        )

    def _coordinator(self, address: str, **more: str | int) -> CoordinatorApp:
        settings = {"data_dir": address, "coordinators": 2, **more, **self._settings}
        return CoordinatorApp(
            CoordinatorSettings.model_validate(settings), self._environment(address)
        )

    def _environment(self, address: str) -> Environment:
        host, _, port = address.partition(":")
        volume = self.volumes[address] = MemoryVolume()
        return Environment(
            journal=MemoryJournal(
                volume, service=f"semel-{host}", disk_reserve_bytes=RESERVE_BYTES
            ),
            connector=self.network.of(SERVICE),
            clock=LoopClock(START_MS),
            random=Random(self._random.getrandbits(64)),
            listeners=(Listener(name="default", host=host, port=int(port)),),
        )
