"""A whole cluster in this process, for users' tests: real services, gRPC over loopback.

Data is in memory unless a folder is given. A service can be stopped and started again, with its
data, at its address: what a client sees then is what it sees when a process is killed.
"""

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import structlog
from opentelemetry.trace import TracerProvider

from aiosemel import ClientOptions, SemelClient
from semel_local.errors import LocalClusterError, first_of
from semel_local.layout import CONTROLLER, Role, ServiceName, Settings, service_settings
from semel_local.service import LocalService, Place


class LocalCluster:
    """All services of a cluster in this process.

    ::

        async with LocalCluster(brokers=2) as cluster, cluster.client() as client:
            await client.admin().create_topic("orders", partitions=4)

    Services are called ``coordinator-0``, ``broker-0``, ``group-coordinator-0`` and so on. Use it
    in one event loop. Logs of the services go to the logging of the standard library.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        coordinators: int = 1,
        group_coordinators: int = 1,
        folder: Path | None = None,
        settings: Settings | None = None,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        """Do no I/O yet. Without a folder, all data is in memory, and gone with the cluster.

        ``tracer_provider`` gets the spans of all services, and of the clients made here.
        """
        self._counts = {
            Role.COORDINATOR: coordinators,
            Role.BROKER: brokers,
            Role.GROUP_COORDINATOR: group_coordinators,
        }
        self._folder = folder
        self._settings = settings or {}
        self._tracer_provider = tracer_provider
        self._stack = AsyncExitStack()
        self._group = asyncio.TaskGroup()
        self._places: dict[ServiceName, Place] = {}
        self._services: dict[str, LocalService] = {}

    @property
    def bootstrap(self) -> str:
        """The address that clients need, ``host:port``."""
        return self.address(str(CONTROLLER))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all services."""
        return tuple(self._services)

    def address(self, name: str) -> str:
        """Return where a service listens, as ``host:port``."""
        if name not in self._services:
            raise LocalClusterError(f"the cluster has no {name}, or is not started")
        return self._services[name].listener.address

    def client(self, options: ClientOptions | None = None) -> SemelClient:
        """Make a client of this cluster; to be opened with ``async with``."""
        return SemelClient(self.bootstrap, options=options, tracer_provider=self._tracer_provider)

    async def stop_service(self, name: str) -> None:
        """Stop a service; its address answers no more, its data stay."""
        await self._services[name].stop()

    async def start_service(self, name: str) -> None:
        """Start a service that was stopped, with its data, at its address.

        Raises ServiceFailedError.
        """
        before = self._services[name]
        self._start(before.name, before.listener.port)
        await self._services[name].wait_ready()

    async def __aenter__(self) -> Self:
        """Start all services; returns when they are ready. Raises ServiceFailedError."""
        log_to_standard_library()
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._group)
                stack.push_async_callback(self._stop)
                await self._start_all()
                self._stack = stack.pop_all()
        except BaseExceptionGroup as failures:
            raise first_of(failures) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all services."""
        await self._stack.aclose()

    async def _start_all(self) -> None:
        """Start the controller, then all others, who have to know where it is.

        A controller that has data is ready only when the others have registered.
        """
        has_data = self._folder is not None and (self._folder / str(CONTROLLER)).exists()
        self._start(CONTROLLER)
        controller = self._services[str(CONTROLLER)]
        await (controller.wait_listening() if has_data else controller.wait_ready())
        for role, count in self._counts.items():
            for name in (ServiceName(role, number) for number in range(count)):
                if name != CONTROLLER:
                    self._start(name)
        for service in self._services.values():
            await service.wait_ready()

    def _start(self, name: ServiceName, port: int = 0) -> None:
        folder = None if self._folder is None else self._folder / str(name)
        place = self._places.setdefault(name, Place(folder=folder))
        settings: dict[str, str | int] = {
            "data_dir": str(folder or name),
            **service_settings(name, self._counts),
            "controller": "" if name == CONTROLLER else self.bootstrap,
            **self._settings.get(name.role, {}),
        }
        provider = self._tracer_provider
        tracer = None if provider is None else provider.get_tracer(f"semel-{name}")
        service = self._services[str(name)] = LocalService(name, place, settings, port, tracer)
        self._group.create_task(service.run(), name=str(name))

    async def _stop(self) -> None:
        """Stop the controller last: the others would complain that it is away."""
        controller = self._services.get(str(CONTROLLER))
        async with asyncio.TaskGroup() as group:
            for service in self._services.values():
                if service is not controller:
                    group.create_task(service.stop(), name=f"stop {service.name}")
        if controller is not None:
            await controller.stop()


def log_to_standard_library() -> None:
    """Hand the logs of services to the standard library; warnings show without a configuration."""
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.render_to_log_kwargs,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
