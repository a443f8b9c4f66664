"""How a coordinator takes part in its cluster: as the controller, or linked to the controller."""

import asyncio
from typing import Protocol

import structlog

from semel_common.errors import InvalidConfigError, RetriableError
from semel_coordinator.config import CoordinatorSettings
from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.loops.own_volume import OwnVolume
from semel_coordinator.controller.machine import Registration
from semel_coordinator.controller.rpc.change_parts import ChangeParts
from semel_coordinator.controller.rpc.cluster_service import ClusterChanges
from semel_coordinator.controller.rpc.current_topics import OwnTopics, PassedOnTopics, TopicsNow
from semel_coordinator.controller.rpc.forward_to_controller import PassedOnChanges
from semel_coordinator.controller.rpc.instances.register_instance import InstanceRegistrar
from semel_coordinator.controller.rpc.new_ids import new_id
from semel_coordinator.coordinator_machine import CoordinatorMachine, CoordinatorRecord
from semel_runtime.app import Environment, link_to_controller
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.controller_link import Identity
from semel_runtime.cluster.metadata_image import ClusterImage, Instance
from semel_runtime.cluster.registration_timing import RegistrationTimer
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Handlers

log = structlog.get_logger(__name__)


class Changes(Protocol):
    """Answers the calls that change the metadata."""

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        ...


class Presence(Protocol):
    """One instance's part in the cluster."""

    changes: Changes
    """Where changes of the metadata are made."""
    topics: TopicsNow
    """The topics as the controller knows them now."""
    ready: asyncio.Event
    """Set once the instance is registered and knows the metadata."""
    confirmed: asyncio.Event
    """Set once it is known that the volume is not an older copy; `ready` comes first."""

    def controller_mark(self) -> JournalMark | None:
        """Return the last mark of the controller's journal."""
        ...

    def check_may_change(self) -> None:
        """Raise CoordinatorLoadInProgressError while this instance may not change metadata."""
        ...

    def expect_newer(self) -> None:
        """Note that the controller has newer metadata."""
        ...

    async def start(self) -> None:
        """Do what comes before the first request."""
        ...

    async def run(self) -> None:
        """Stay in the cluster until cancelled."""
        ...


class ControllerPresence:
    """Coordinator 0's part: it makes the cluster. Implements ``Presence``."""

    def __init__(
        self,
        runner: Runner[CoordinatorRecord],
        machine: CoordinatorMachine,
        *,
        identity: Identity,
        liveness: Liveness,
        settings: CoordinatorSettings,
        environment: Environment,
    ) -> None:
        """Do nothing yet."""
        self._runner = runner
        self._machine = machine
        self._identity = identity
        self._settings = settings
        self._timer = RegistrationTimer(identity.shortage, settings.registration_interval_ms)
        self._journal = environment.journal
        self._random = environment.random
        self._own_volume = OwnVolume(
            identity,
            known=machine.controller.marks(),
            awaited=machine.controller.other_instances(),
            others_wait_ms=settings.controller_others_wait_ms,
        )
        parts = ChangeParts(runner, machine.controller, environment.random)
        self._registrar = InstanceRegistrar(
            parts,
            liveness=liveness,
            own_volume=self._own_volume,
            clock=environment.clock,
        )
        self.changes: Changes = ClusterChanges(parts, self._registrar)
        self.topics: TopicsNow = OwnTopics(runner, machine.cluster, self.check_may_change)
        self.ready = asyncio.Event()
        self.confirmed = self._own_volume.confirmed

    def controller_mark(self) -> JournalMark:
        """Return how far the own journal goes."""
        return self._own_volume.mark()

    def check_may_change(self) -> None:
        """Raise CoordinatorLoadInProgressError before the other instances have registered."""
        self._own_volume.check_confirmed()

    def expect_newer(self) -> None:
        """Do nothing: the metadata are made here."""

    async def start(self) -> None:
        """Make the cluster if there is none, and register with oneself.

        Raises InvalidConfigError if the settings or the data folder do not fit.
        """
        if not self._machine.controller.has_cluster and self._machine.cluster.image is not None:
            raise InvalidConfigError(
                f"this data folder is not that of coordinator {CONTROLLER_ID}: set instance_id to"
                " the number of the coordinator that it belongs to, or take an empty folder"
            )
        cluster_id, layout = new_id(self._random), self._settings.layout()
        cluster = await self._runner.run(
            lambda: self._machine.controller.create_cluster(cluster_id, layout)
        )
        await self._journal.set_cluster_id(cluster.cluster_id)
        await self._register()
        self.ready.set()

    async def run(self) -> None:
        """Register again from time to time, as every instance does.

        Raises StaleClaimEpochError when another instance knows more than this volume has.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own_volume.run(), name="own volume")
            group.create_task(self._stay_registered(), name="registration")

    async def _stay_registered(self) -> None:
        while True:
            await self._timer.wait()
            try:
                await self._register()
            except RetriableError as error:
                log.warning("registration failed", error=error.message)

    async def _register(self) -> None:
        identity = self._identity
        instance = Instance(
            role=identity.role, instance_id=identity.instance_id, listeners=identity.listeners
        )
        await self._registrar.register(
            Registration(
                instance=instance,
                cluster_id=self._machine.controller.image().cluster_id,
                claim_epoch=identity.claim_epoch,
                claim_token=identity.claim_token,
            ),
            self._timer.shortage(),
        )


class LinkedPresence:
    """Every other coordinator's part: it copies the metadata. Implements ``Presence``."""

    def __init__(
        self,
        runner: Runner[CoordinatorRecord],
        machine: CoordinatorMachine,
        *,
        identity: Identity,
        settings: CoordinatorSettings,
        environment: Environment,
    ) -> None:
        """Do no I/O yet."""
        self._runner = runner
        self._machine = machine
        self._identity = identity
        self._journal = environment.journal
        self._link = link_to_controller(
            identity, machine.cluster, self._take, settings=settings, environment=environment
        )
        listener, timeout_ms = settings.inter_broker_listener_name, settings.request_timeout_ms
        self.changes: Changes = PassedOnChanges(
            machine.cluster, environment.connector, listener=listener, timeout_ms=timeout_ms
        )
        self.topics: TopicsNow = PassedOnTopics(
            machine.cluster, environment.connector, listener=listener, timeout_ms=timeout_ms
        )
        self.ready = self._link.ready
        self.confirmed = self._link.ready

    def controller_mark(self) -> JournalMark | None:
        """Return the mark from the last registration."""
        return self._link.controller

    def check_may_change(self) -> None:
        """Do nothing: changes are passed on to the controller."""

    def expect_newer(self) -> None:
        """Note that the controller has newer metadata."""
        self._link.expect_newer()

    async def start(self) -> None:
        """Raise InvalidConfigError if this is the controller's data folder."""
        if self._machine.controller.has_cluster:
            raise InvalidConfigError(
                f"this data folder is that of coordinator {CONTROLLER_ID}, not of coordinator"
                f" {self._identity.instance_id}: set instance_id to {CONTROLLER_ID}, or take an"
                " empty folder"
            )

    async def run(self) -> None:
        """Register with the controller and follow its metadata."""
        await self._link.run()

    async def _take(self, image: ClusterImage) -> None:
        await self._runner.run(lambda: self._machine.cluster.update(image))
        await self._journal.set_cluster_id(image.cluster_id)
