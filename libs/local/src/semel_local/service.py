"""One service within this process: the same app, server and journal as in a process of its own."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import assert_never

import structlog
from opentelemetry.trace import Tracer

from semel_broker.app import BrokerApp
from semel_broker.config import BrokerSettings
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.traced_connector import TracedConnector
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_group.app import GroupApp
from semel_group.config import GroupSettings
from semel_local.errors import ServiceFailedError
from semel_local.layout import HOST, Role, ServiceName
from semel_runtime.app import App, Environment
from semel_runtime.clock import SystemClock
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.journal import Journal
from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.process.worker_threads import in_thread
from semel_runtime.server.grpc_server import GrpcServer
from semel_runtime.server.limits.server_limits import ServerLimits
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

READY_TIMEOUT_S = 30.0
STOP_GRACE_MS = 100

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a service keeps its data, for all its lives."""

    folder: Path | None = None
    """None: in memory, on the volume."""
    volume: MemoryVolume = field(default_factory=MemoryVolume)

    async def open_journal(self, service: str) -> Journal:
        """Open the journal; raises JournalError."""
        if self.folder is None:
            return MemoryJournal(self.volume, service=service)
        return await open_journal(self.folder, service=service)


class LocalService:
    """One life of one service: run in a task, ready, told to stop."""

    def __init__(
        self,
        name: ServiceName,
        place: Place,
        settings: Mapping[str, str | int],
        port: int,
        tracer: Tracer | None = None,
    ) -> None:
        """Do no I/O yet. Port 0 is any that is free."""
        self.name = name
        self.listener = Listener(name="default", host=HOST, port=port)
        """Where it listens; with its real port once it is ready."""
        self._place = place
        self._settings = dict(settings)
        self._tracer = tracer
        self._listening = asyncio.Event()
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._stopped = asyncio.Event()
        self._failure: Exception | None = None

    async def wait_listening(self) -> None:
        """Wait until it answers other services; raises ServiceFailedError if it never will."""
        await self._wait_for(self._listening)

    async def wait_ready(self) -> None:
        """Wait until it serves clients; raises ServiceFailedError if it never will."""
        await self._wait_for(self._ready)

    async def _wait_for(self, event: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                await event.wait()
        except TimeoutError:
            raise ServiceFailedError(
                f"{self.name} was not ready after {READY_TIMEOUT_S:g} s"
            ) from None
        if self._failure is not None:
            raise ServiceFailedError(f"{self.name} failed: {self._failure}") from self._failure

    async def stop(self) -> None:
        """Stop it in order; returns when its port and its data are free."""
        self._stop.set()
        await self._stopped.wait()

    async def run(self) -> None:
        """Live until told to stop, or until a failure: that is logged, as at a process's end."""
        structlog.contextvars.bind_contextvars(service=str(self.name))
        try:
            async with AsyncExitStack() as stack:
                await self._serve(stack)
        except Exception as error:
            self._failure = error
            log.exception("service failed")
        finally:
            self._listening.set()
            self._ready.set()
            self._stopped.set()

    async def _serve(self, stack: AsyncExitStack) -> None:
        journal = await stack.enter_async_context(
            await self._place.open_journal(f"semel-{self.name}")
        )
        connector = GrpcConnector()
        stack.push_async_callback(connector.close)
        tracer = self._tracer
        server = GrpcServer(ServerLimits(), tracer)
        stack.push_async_callback(server.abort)
        self.listener = server.bind(self.listener)
        server.bind_frames(Listener(name=self.listener.name, host=self.listener.host, port=0))
        environment = Environment(
            journal=journal,
            connector=connector if tracer is None else TracedConnector(connector, tracer),
            clock=SystemClock(),
            random=Random(),
            listeners=(self.listener,),
            offload=in_thread,
            tracer=tracer,
        )
        app = await stack.enter_async_context(self._build(environment))
        await server.start(app.handlers)
        self._listening.set()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(app.run(), name=f"{self.name}"),
                group.create_task(self._announce(app, server), name=f"announce {self.name}"),
                group.create_task(_fail_with(app), name=f"failure of {self.name}"),
            ]
            await self._stop.wait()
            await server.stop(drain_ms=0, grace_ms=STOP_GRACE_MS, answer_parked=app.drain)
            for task in tasks:
                task.cancel()

    async def _announce(self, app: App, server: GrpcServer) -> None:
        await app.ready.wait()
        await server.set_serving()
        self._ready.set()

    def _build(self, environment: Environment) -> App:
        match self.name.role:
            case Role.COORDINATOR:
                coordinator = CoordinatorSettings.model_validate(self._settings)
                return CoordinatorApp(coordinator, environment)
            case Role.BROKER:
                return BrokerApp(BrokerSettings.model_validate(self._settings), environment)
            case Role.GROUP_COORDINATOR:
                return GroupApp(GroupSettings.model_validate(self._settings), environment)
            case _:
                assert_never(self.name.role)


async def _fail_with(app: App) -> None:
    await app.failed.wait()
    raise ServiceFailedError("its journal failed")
