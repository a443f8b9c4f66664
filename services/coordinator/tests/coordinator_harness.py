"""Whole coordinators in one process: memory journals, a network in memory, a clock that stands."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.wire.methods import METADATA, REGISTER_INSTANCE, Method, Req, Res
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_runtime.app import Environment
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.journal.journal_errors import JournalError
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import ended
from semel_runtime.testing.volume import MemoryVolume

TIMEOUT_MS = 10_000


def address_of(instance_id: int) -> str:
    return f"coordinator-{instance_id}:1"


class Coordinators:
    """Coordinator instances that come and go; their volumes stay."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.clock = ManualClock()
        self.volumes: dict[int, MemoryVolume] = {}
        self._starts = 0

    def build(self, instance_id: int = 0, **settings: int | str) -> CoordinatorApp:
        """Make an app on the instance's own volume."""
        host, _, port = address_of(instance_id).partition(":")
        self._starts += 1
        given = {"coordinators": 2, "controller": address_of(0)} | settings
        return CoordinatorApp(
            CoordinatorSettings.model_validate(
                {"data_dir": Path("unused"), "instance_id": instance_id} | given
            ),
            Environment(
                journal=MemoryJournal(self.volumes.setdefault(instance_id, MemoryVolume())),
                connector=self.network,
                clock=self.clock,
                random=Random(self._starts),
                listeners=(Listener(name="default", host=host, port=int(port)),),
            ),
        )

    @asynccontextmanager
    async def running(
        self, instance_id: int = 0, **settings: int | str
    ) -> AsyncIterator[CoordinatorApp]:
        """Run an instance; at the end it is stopped in order."""
        async with self.build(instance_id, **settings) as app:
            self.network.serve(address_of(instance_id), app.handlers)
            background = asyncio.create_task(app.run())
            try:
                yield app
            finally:
                self.network.cut(address_of(instance_id))
                await ended(background, expected=(JournalError,))

    async def ask(self, method: Method[Req, Res], request: Req, *, instance_id: int = 0) -> Res:
        """Call an instance."""
        connection = self.network.connect(address_of(instance_id))
        return await connection.call(method, request, timeout_ms=TIMEOUT_MS)

    async def metadata(self, *, instance_id: int = 0) -> wire.MetadataResponse:
        """Ask for everything."""
        request = wire.MetadataRequest(all_topics=True)
        return await self.ask(METADATA, request, instance_id=instance_id)

    async def register_broker(
        self, broker_id: int, *, claim_epoch: int = 1, port: int = 1, asked: int = 0
    ) -> wire.RegisterInstanceResponse:
        """Register a broker at ``broker-N`` with a coordinator."""
        request = registration(broker_id, claim_epoch=claim_epoch, port=port)
        return await self.ask(REGISTER_INSTANCE, request, instance_id=asked)


def registration(
    broker_id: int, *, claim_epoch: int = 1, port: int = 1
) -> wire.RegisterInstanceRequest:
    """Return a broker's registration, correct in every field."""
    listener = wire.AdvertisedListener(name="default", host=f"broker-{broker_id}", port=port)
    return wire.RegisterInstanceRequest(
        role=wire.SERVICE_ROLE_BROKER,
        instance_id=broker_id,
        claim_epoch=claim_epoch,
        claim_token="a process",
        listeners=[listener],
    )
