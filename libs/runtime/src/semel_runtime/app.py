"""A service as a class: what it gets from outside, what it offers, how it opens its journal.

A service is a class that is built from settings and an Environment, opened as an async context
manager (that loads its journal), asked for its handlers, and run. Everything from outside reaches
it through the Environment, so a test can put a whole cluster into one process.
`semel_runtime.process.main` runs one service as a process.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import structlog
from opentelemetry.trace import Tracer

from semel_common.wire.cluster_header import ClusterConnector
from semel_common.wire.connection import Connector
from semel_runtime.clock import Clock
from semel_runtime.cluster.controller_link import ClusterLink, Identity
from semel_runtime.cluster.controller_note import ControllerMemory
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ClusterImage, Listener, ServiceRole, role_text
from semel_runtime.config import ServiceSettings
from semel_runtime.journal import Journal
from semel_runtime.machine import Machine, Serde
from semel_runtime.process.worker_threads import Offload, inline
from semel_runtime.recovery import RECOVERED
from semel_runtime.runner import Runner, RunnerOptions
from semel_runtime.server.calls import Guards, Handlers

if TYPE_CHECKING:
    from semel_runtime.metrics import Metrics

log = structlog.get_logger(__name__)


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
