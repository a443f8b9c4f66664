"""The life of a service process: settings, journal, server, signals, and the end.

A service is a class that is built from settings and an Environment, opened as an async context
manager (that loads its journal), asked for its handlers, and run. Everything from outside reaches
it through the Environment, so a test can put a whole cluster into one process.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar

import structlog
import uvloop
from opentelemetry.trace import Tracer
from pydantic import ValidationError

from semel_common.allocator import keep_freed_memory
from semel_common.errors import (
    SemelError,
)
from semel_common.stop_signals import heeded_signals
from semel_common.telemetry.span_export import Telemetry, open_telemetry
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.cluster_header import ClusterConnector
from semel_common.wire.connection import Connector
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.traced_connector import TracedConnector
from semel_runtime.authentication.service_security import ServiceSecurity, own_security
from semel_runtime.clock import Clock, SystemClock
from semel_runtime.cluster.controller_link import ClusterLink, Identity
from semel_runtime.cluster.controller_note import ControllerMemory
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, Listener, ServiceRole, role_text
from semel_runtime.config import ServiceSettings, parse_listeners, telemetry_environment
from semel_runtime.journal import Journal, JournalError
from semel_runtime.journal.engine_choice import is_folder, open_journal
from semel_runtime.journal_refusal import (
    check_journal_not_refused,
    check_not_refused,
)
from semel_runtime.logs.log_setup import configure_logging, log_of_telemetry, take_standard_error
from semel_runtime.machine import Machine, Serde
from semel_runtime.process.disk_watch import DiskWatch
from semel_runtime.process.file_limit import fit_file_limit
from semel_runtime.process.garbage_collection import collect_garbage_seldom
from semel_runtime.process.process_end import EXIT_FAILURE, end_by_force, refuse_if_told, report
from semel_runtime.process.worker_threads import Offload, in_thread, inline
from semel_runtime.recovery import RECOVERED
from semel_runtime.runner import Runner, RunnerOptions
from semel_runtime.server.calls import Guards, Handlers
from semel_runtime.server.grpc_server import GrpcServer
from semel_runtime.setting_meanings import describe_fields

if TYPE_CHECKING:
    from semel_runtime.metrics import Metrics

log = structlog.get_logger(__name__)

EXIT_USAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Everything that a service gets from outside."""

    journal: Journal
    connector: Connector
    clock: Clock
    random: Random
    listeners: tuple[Listener, ...]
    """As they are advertised, with their real ports."""
    runner: RunnerOptions = RunnerOptions()  # noqa: RUF009 - immutable
    """When to take snapshots, and the other limits of the runner."""
    offload: Offload = inline
    """Where long computations run."""
    tracer: Tracer | None = None
    """Records spans; None: tracing is off."""
    metrics: "Metrics | None" = None
    """None: the service has no metrics listener."""
    cluster_id: Callable[[], str] | None = None
    """Returns the cluster id of the service, empty until it is known; None: there is no cluster."""

    def within(self, cluster: ClusterCopy) -> Self:
        """Return the environment of a service that belongs to this cluster.

        Its calls name the cluster, and it refuses calls for other clusters.
        """

        def cluster_id() -> str:
            return cluster.cluster_id

        connector = ClusterConnector(self.connector, cluster_id)
        return replace(self, connector=connector, cluster_id=cluster_id)

    def new_handlers(self, guard: Guards | None) -> Handlers:
        """Return handlers whose requests are counted, if anybody asks, and guarded, if need be."""
        requests = None if self.metrics is None else self.metrics.requests
        return Handlers(requests, guard, self.cluster_id)


class App(Protocol):
    """One service."""

    handlers: Handlers
    """What it answers."""
    ready: asyncio.Event
    """Set once it can do its work: its journal is loaded and it is part of its cluster."""
    failed: asyncio.Event
    """Set when its journal has failed; the process must end."""

    async def run(self) -> None:
        """Do all background work until cancelled."""
        ...

    def drain(self) -> None:
        """Answer what is parked, such as long polls, and park nothing any more."""
        ...

    async def __aenter__(self) -> Self:
        """Load the journal."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Finish the decided commits."""
        ...


R = TypeVar("R")
S = TypeVar("S", bound=ServiceSettings)


async def open_runner(
    role: ServiceRole,
    machine: Machine[R],
    serde: Serde[R],
    *,
    settings: ServiceSettings,
    environment: Environment,
) -> tuple[Runner[R], Identity]:
    """Claim and load a service's journal; return who the instance is by that.

    Raises what ``Runner.open`` raises.
    """
    recovered = environment.journal.note(RECOVERED)
    if recovered:
        log.info("volume was recovered once", recovery=recovered)
    claim_token = f"{environment.random.getrandbits(128):032x}"
    runner = await Runner.open(
        environment.journal,
        machine,
        serde,
        options=replace(
            environment.runner,
            owner=_described(role, settings.instance_id, environment.listeners),
        ),
        token=claim_token,
        tracer=environment.tracer,
    )
    if environment.metrics is not None:
        environment.metrics.of_journal(runner, environment.journal)
    identity = Identity(
        role=role,
        instance_id=settings.instance_id,
        claim_epoch=runner.claim_epoch,
        claim_token=claim_token,
        history=runner.history,
        mark=runner.mark,
        listeners=environment.listeners,
        shortage=environment.journal.shortage,
    )
    return runner, identity


def _described(role: ServiceRole, instance_id: int, listeners: tuple[Listener, ...]) -> str:
    """Return how errors name an instance: ``broker 0 at broker-0.example.com:9092``."""
    return f"{role_text(role)} {instance_id}" + "".join(
        f" at {listener.address}" for listener in listeners[:1]
    )


def link_to_controller(
    identity: Identity,
    cluster: ClusterCopy,
    on_image: Callable[[ClusterImage], Awaitable[None]],
    *,
    settings: ServiceSettings,
    environment: Environment,
) -> ClusterLink:
    """Return what keeps an instance registered, and its copy of the metadata fresh."""
    return ClusterLink(
        identity,
        memory=ControllerMemory(environment.journal),
        controller=settings.controller,
        connector=environment.connector,
        random=environment.random,
        options=settings.link_options(),
        cluster_id=lambda: cluster.cluster_id,
        on_image=on_image,
    )


def main(name: str, settings_class: type[S], build: Callable[[S, Environment], App]) -> None:
    """Run a service until SIGTERM, SIGINT or SIGHUP, then exit with its status.

    0: stopped in order, or before its journal was loaded. 1: it could not start, or its journal
    failed. 2: wrong settings.
    """
    output = take_standard_error()
    settings = _read_settings(name, settings_class)
    configure_logging(settings, name, output)
    telemetry = _telemetry(name, settings)
    sys.exit(uvloop.run(_serve(name, settings, build, telemetry, on_failure=end_by_force)))


def _read_settings(name: str, settings_class: type[S]) -> S:
    if any(argument.startswith(("-h", "--h")) for argument in sys.argv[1:]):
        describe_fields(settings_class)
    try:
        return settings_class(_cli_parse_args=sys.argv[1:], _cli_prog_name=name)  # type: ignore[call-arg]  # pydantic-settings' own arguments
    except ValidationError as error:
        for problem in error.errors():
            option = ".".join(str(part) for part in problem["loc"]) or "settings"
            message = problem["msg"].removeprefix("Value error, ")  # Pydantic's word for ours.
            sys.stderr.write(f"{name}: {option}: {message}\n")
        sys.exit(EXIT_USAGE)


def _telemetry(name: str, settings: ServiceSettings) -> Telemetry | None:
    try:
        telemetry = open_telemetry(
            telemetry_environment(), name, service_instance_id=f"{name}-{settings.instance_id}"
        )
    except ValueError as problem:
        sys.stderr.write(f"{name}: {problem}\n")
        sys.exit(EXIT_USAGE)
    if telemetry is not None:
        log_of_telemetry()
    return telemetry


async def _serve(
    name: str,
    settings: S,
    build: Callable[[S, Environment], App],
    telemetry: Telemetry | None,
    *,
    on_failure: Callable[[], None] = lambda: None,
) -> int:
    stop = _stop_on_signals()
    collect_garbage_seldom()
    keep_freed_memory()
    try:
        async with AsyncExitStack() as stack:
            try:
                async with _interrupted_by(stop):
                    opened = await _open(name, settings, build, telemetry, stack)
            except _InterruptedError:
                log.info("service stops before it was loaded")
                return 0
            return await _run(opened, settings, stop, on_failure)
    except (JournalError, SemelError, OSError) as error:
        log.error("service cannot run", error=str(error))  # noqa: TRY400 - the sentence says what to do
        return EXIT_FAILURE
    except Exception:
        log.exception("service failed")
        return EXIT_FAILURE


class _InterruptedError(Exception):
    """The process is to stop, and nothing has been begun that would have to end in order."""


@asynccontextmanager
async def _interrupted_by(stop: asyncio.Event) -> AsyncIterator[None]:
    """Cancel what is within when the event is set; raises _InterruptedError then."""
    limit = asyncio.timeout(None)
    try:
        async with limit:
            watch = asyncio.create_task(_set_off(limit, stop), name="wait for signal")
            try:
                yield
            finally:
                watch.cancel()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _InterruptedError from error


async def _set_off(limit: asyncio.Timeout, stop: asyncio.Event) -> None:
    await stop.wait()
    limit.reschedule(asyncio.get_running_loop().time())


class _Opened(NamedTuple):
    """A service that is loaded, and serves nothing yet."""

    app: App
    server: GrpcServer
    journal: Journal


async def _open(
    name: str,
    settings: S,
    build: Callable[[S, Environment], App],
    telemetry: Telemetry | None,
    stack: AsyncExitStack,
) -> _Opened:
    """Open and load all that a service has, and bind its ports. The stack closes it."""
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
    bound = bind(server, settings, security)
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
    return _Opened(app, server, journal)


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
    """Serve metrics from now on, if that is wanted."""
    listener = settings.metrics_place()
    if listener is None:
        return None
    from semel_runtime.metrics.endpoint import metrics_endpoint  # noqa: PLC0415 - 50 ms, if wanted
    from semel_runtime.metrics.registry import Metrics  # noqa: PLC0415 - as above

    metrics = Metrics()
    await stack.enter_async_context(metrics_endpoint(listener, metrics))
    return metrics


def bind(
    server: GrpcServer, settings: ServiceSettings, security: ServiceSecurity
) -> tuple[Listener, ...]:
    """Bind all listeners of a service; returns them with their real ports. Raises OSError."""
    bound = tuple(
        server.bind(each, security.of(each.name)) for each in parse_listeners(settings.listeners)
    )
    for listener, advertised in settings.frame_places():
        server.bind_frames(listener, advertised)
    return bound


async def _run(
    opened: _Opened,
    settings: ServiceSettings,
    stop: asyncio.Event,
    on_failure: Callable[[], None] = lambda: None,
) -> int:
    """Serve until told to stop, or until a failure. The end comes first, and then the log."""
    app, server, journal = opened
    await server.start(app.handlers)
    background = asyncio.create_task(app.run(), name="background")
    ready = asyncio.create_task(_announce(app, server), name="announce")
    ends = {
        background,
        asyncio.create_task(stop.wait(), name="wait for signal"),
        asyncio.create_task(app.failed.wait(), name="wait for failure"),
    }
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    failed = app.failed.is_set() or background.done()
    if failed:  # A service on an older copy of its volume answers nothing more, either.
        on_failure()
        await server.abort()
        log.info("service stops", failed=True)
    else:
        log.info("service stops", failed=False)
        await server.stop(
            drain_ms=settings.shutdown_drain_ms,
            grace_ms=settings.shutdown_grace_ms,
            answer_parked=app.drain,
        )
    for task in (*ends, ready):
        task.cancel()
    results = await asyncio.gather(*ends, ready, return_exceptions=True)
    try:
        await refuse_if_told(results, settings, journal)
    finally:
        report(results)
    return EXIT_FAILURE if failed else 0


async def _announce(app: App, server: GrpcServer) -> None:
    await app.ready.wait()
    await server.set_serving()
    log.info("service ready")


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in heeded_signals():
        loop.add_signal_handler(number, stop.set)
    return stop
