"""The opening of a service: its journal, its connections, its ports, and the app itself."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from semel_common.telemetry.span_export import Telemetry
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.traced_connector import TracedConnector
from semel_runtime.app import App, Environment
from semel_runtime.authentication.service_security import ServiceSecurity, own_security
from semel_runtime.clock import SystemClock
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.config import ServiceSettings, parse_listeners
from semel_runtime.journal import Journal
from semel_runtime.journal.engine_choice import is_folder, open_journal
from semel_runtime.journal_refusal import check_journal_not_refused, check_not_refused
from semel_runtime.process.disk_watch import DiskWatch
from semel_runtime.process.file_limit import fit_file_limit
from semel_runtime.process.worker_threads import in_thread
from semel_runtime.server.grpc_server import GrpcServer

if TYPE_CHECKING:
    from semel_runtime.metrics import Metrics

S = TypeVar("S", bound=ServiceSettings)


class OpenedService(NamedTuple):
    """A loaded service, which serves nothing yet."""

    app: App
    server: GrpcServer
    journal: Journal


async def open_service(
    name: str,
    settings: S,
    build: Callable[[S, Environment], App],
    telemetry: Telemetry | None,
    stack: AsyncExitStack,
) -> OpenedService:
    """Open a service's connections and ports, and load its journal; the stack closes them.

    Raises JournalError, SemelError or OSError.
    """
    tracer = None
    if telemetry is not None:
        stack.push_async_callback(telemetry.aclose)
        tracer = telemetry.tracer(name)
    metrics = await _metrics(settings, stack)
    journal = await _open_journal(name, settings, stack)
    security = ServiceSecurity(settings)
    connector = GrpcConnector(
        ChannelOptions(),
        own_security(settings),
    )
    stack.push_async_callback(connector.close)
    listeners = len(parse_listeners(settings.listeners)) + bool(settings.health_listener)
    server = GrpcServer(fit_file_limit(settings.server_limits(), listeners), tracer)
    stack.push_async_callback(server.close)
    bound = _bind(server, settings, security)
    if settings.health_listener:
        server.bind_health(settings.health_listener)
    environment = Environment(
        journal=journal,
        connector=connector if tracer is None else TracedConnector(connector, tracer),
        clock=SystemClock(),
        random=Random(),
        listeners=settings.advertised(bound),
        runner=settings.runner_options(),
        offload=in_thread,
        metrics=metrics,
        tracer=tracer,
    )
    if metrics is not None:
        metrics.of_server(server)
    app = await stack.enter_async_context(build(settings, environment))
    keys = asyncio.create_task(security.run(), name="keys of tokens")
    stack.callback(keys.cancel)
    if is_folder(settings.journal_location):
        watch = DiskWatch(journal, clock_s=asyncio.get_running_loop().time)
        watching = asyncio.create_task(watch.run(), name="disk watch")
        stack.callback(watching.cancel)
    return OpenedService(app, server, journal)


async def _open_journal(name: str, settings: ServiceSettings, stack: AsyncExitStack) -> Journal:
    """Open the journal, wherever it is, unless its cluster has refused it."""
    location = settings.journal_location
    if is_folder(location):
        check_not_refused(Path(location))
    journal = await open_journal(
        location,
        service=f"{name} {settings.instance_id}",
        options=settings.sqlite_options(),
        postgres_options=settings.postgres_options(),
    )
    await stack.enter_async_context(journal)
    check_journal_not_refused(journal)
    return journal


async def _metrics(settings: ServiceSettings, stack: AsyncExitStack) -> "Metrics | None":
    """Serve metrics from now on, if the settings have a listener for them."""
    listener = settings.metrics_place()
    if listener is None:
        return None
    from semel_runtime.metrics.endpoint import metrics_endpoint  # noqa: PLC0415 - 50 ms, if wanted
    from semel_runtime.metrics.registry import Metrics  # noqa: PLC0415 - as above

    metrics = Metrics()
    await stack.enter_async_context(metrics_endpoint(listener, metrics))
    return metrics


def _bind(
    server: GrpcServer, settings: ServiceSettings, security: ServiceSecurity
) -> tuple[Listener, ...]:
    """Bind all listeners of a service; returns them with their real ports. Raises OSError."""
    bound = tuple(
        server.bind(each, security.of(each.name)) for each in parse_listeners(settings.listeners)
    )
    for listener, advertised in settings.frame_places():
        server.bind_frames(listener, advertised)
    return bound
