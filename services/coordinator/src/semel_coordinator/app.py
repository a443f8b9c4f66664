"""A coordinator instance: its journal, its machines, its handlers and its background work."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Self

import structlog
from google.protobuf.message import Message

from semel_common.wire import methods
from semel_coordinator.config import CoordinatorSettings
from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.controller.loops.instance_liveness import Liveness
from semel_coordinator.controller.loops.presence import ControllerPresence, LinkedPresence, Presence
from semel_coordinator.controller.rpc.cluster_service import ClusterQuestions
from semel_coordinator.controller.rpc.forward_to_controller import CHANGING_PATHS
from semel_coordinator.controller.rpc.metadata_reader import MetadataReader
from semel_coordinator.controller.rpc.metadata_versions import VersionGate
from semel_coordinator.coordinator_machine import CoordinatorMachine, CoordinatorRecord
from semel_coordinator.record_serde import CoordinatorSerde
from semel_coordinator.transactions.loops.id_expiry import expire
from semel_coordinator.transactions.loops.take_over_transactions import TransactionsTaker
from semel_coordinator.transactions.loops.timeout_sweep import sweep
from semel_coordinator.transactions.markers import MarkerSender
from semel_coordinator.transactions.rpc.claim import Claim
from semel_coordinator.transactions.rpc.hand_over_transactions import TransactionsGiver
from semel_coordinator.transactions.rpc.operators.auditor import Auditor
from semel_coordinator.transactions.rpc.participant_names import TopicNames
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.transaction_service import TransactionService
from semel_runtime.access.guard_setup import guard_of
from semel_runtime.app import Environment, open_runner
from semel_runtime.cluster.controller_link import Identity
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.cluster.volume_admission import Admission
from semel_runtime.moving.take_over_loop import TakeOvers
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Endpoint

log = structlog.get_logger(__name__)


class CoordinatorApp:
    """One coordinator. Implements ``App``: `async with`, then ``run``."""

    def __init__(self, settings: CoordinatorSettings, environment: Environment) -> None:
        """Read the secrets of producer tokens, if there are any; do no other I/O yet."""
        self._settings = settings
        self._machine = CoordinatorMachine(
            instance_id=settings.instance_id,
            controller_limits=settings.controller_limits(),
            transaction_limits=settings.transaction_limits(),
        )
        self._versions = VersionGate(self._machine.show_changes)
        self._stack = AsyncExitStack()
        self._parts: _Parts | None = None
        self._environment = environment.within(self._machine.cluster)
        guard = Admission(guard_of(settings, self._machine.cluster), self._check_admitted)
        self.handlers = self._environment.new_handlers(guard)
        self.ready = asyncio.Event()
        self.failed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Claim and load the journal; on coordinator 0, make the cluster if there is none.

        Raises what ``Runner.open`` raises, and InvalidConfigError.
        """
        runner, identity = await open_runner(
            ServiceRole.COORDINATOR,
            self._machine,
            CoordinatorSerde(),
            settings=self._settings,
            environment=self._environment,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(runner)
            await self._start(runner, identity)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Complete the decided transactions."""
        self.drain()
        await self._stack.aclose()

    async def run(self) -> None:
        """Do all background work until cancelled.

        Raises what the controller refuses this instance for: see ``ClusterLink.run``.
        """
        assert self._parts is not None, "the app is opened first"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._parts.presence.run(), name="presence")
            group.create_task(self._take_charge(self._parts), name="transactions")

    def drain(self) -> None:
        """Let parked calls answer now: the process is about to stop."""
        self._versions.open()

    async def _start(self, runner: Runner[CoordinatorRecord], identity: Identity) -> None:
        self.failed = runner.failed
        runner.on_durable(self._announce)
        liveness = Liveness(live_for_ms=self._settings.instance_live_ms)
        presence = self._take_part(runner, identity, liveness)
        await presence.start()
        self._machine.show_changes()
        self._parts = self._transactions(runner, presence)
        giver = TransactionsGiver(
            runner, self._machine.transactions, claim_epoch=identity.claim_epoch
        )
        TransactionService(self._parts.service, giver).register(self.handlers)
        runner.on_durable(self._parts.taker.on_durable)
        ClusterQuestions(
            reader=MetadataReader(runner, self._machine.cluster),
            controller=self._machine.controller,
            versions=self._versions,
            liveness=liveness,
            controller_mark=presence.controller_mark,
            topics_now=presence.topics,
        ).register(self.handlers)
        presence.changes.register(self.handlers)
        auditor = Auditor(runner, self._machine.transactions, self._environment.clock)
        self.handlers.add(methods.NOTE_AUDIT, auditor.note_audit)
        self.handlers.wrap(auditor.audited)
        log.info(
            "journal loaded",
            claim_epoch=runner.claim_epoch,
            cluster_id=self._machine.cluster.cluster_id,
        )

    def _check_admitted(self, endpoint: Endpoint[Message, Message]) -> None:
        if self._parts is not None and endpoint.method.path in CHANGING_PATHS:
            self._parts.presence.check_may_change()

    def _take_part(
        self, runner: Runner[CoordinatorRecord], identity: Identity, liveness: Liveness
    ) -> Presence:
        if self._settings.instance_id == CONTROLLER_ID:
            return ControllerPresence(
                runner,
                self._machine,
                identity=identity,
                liveness=liveness,
                settings=self._settings,
                environment=self._environment,
            )
        return LinkedPresence(
            runner,
            self._machine,
            identity=identity,
            settings=self._settings,
            environment=self._environment,
        )

    def _announce(self, _records: Sequence[CoordinatorRecord]) -> None:
        """Show the durable metadata, and wake the calls that wait for them."""
        self._versions.announce()

    def _transactions(self, runner: Runner[CoordinatorRecord], presence: Presence) -> "_Parts":
        settings, environment = self._settings, self._environment
        markers = MarkerSender(
            runner=runner,
            machine=self._machine.transactions,
            cluster=self._machine.cluster,
            connector=environment.connector,
            random=environment.random,
            options=settings.marker_options(),
            clock=environment.clock,
            tracer=environment.tracer,
        )
        service = ServiceParts(
            runner=runner,
            machine=self._machine.transactions,
            claim=Claim(runner, self._machine.transactions),
            cluster=self._machine.cluster,
            names=TopicNames(presence.topics),
            markers=markers,
            clock=environment.clock,
            limits=settings.transaction_limits(),
        )
        if environment.metrics is not None:
            from semel_coordinator.metrics import CoordinatorMetrics  # noqa: PLC0415 - only if wanted

            CoordinatorMetrics(
                environment.metrics, runner, self._machine, markers, environment.clock
            )
        take_overs = TakeOvers(
            self._machine.cluster,
            environment.connector,
            environment.random,
            environment.clock,
            settings.take_over_options(),
            expect_newer=presence.expect_newer,
        )
        return _Parts(
            presence=presence,
            runner=runner,
            service=service,
            taker=TransactionsTaker(runner, self._machine.transactions, take_overs),
        )

    async def _take_charge(self, parts: "_Parts") -> None:
        """Serve transactions once the cluster has taken this instance in, and not before.

        Until then, it might work on an older copy of its volume.
        """
        await parts.presence.ready.wait()
        await self._confirmed(parts.presence.confirmed)
        await parts.service.claim.take()
        self.ready.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(parts.service.markers.run(), name="markers")
            group.create_task(parts.taker.run(), name="transactions taker")
            group.create_task(self._sweep(parts.runner), name="sweep")
            group.create_task(self._expire(parts.runner), name="expiry of transactional ids")

    async def _confirmed(self, confirmed: asyncio.Event) -> None:
        """Wait for the other instances; say after a while that the controller is ready for them.

        An operator may start them only then.
        """
        try:
            async with asyncio.timeout(self._settings.controller_others_wait_ms / 1000):
                await confirmed.wait()
        except TimeoutError:
            self.ready.set()
            await confirmed.wait()

    async def _sweep(self, runner: Runner[CoordinatorRecord]) -> None:
        settings = self._settings
        await sweep(
            runner,
            self._machine.transactions,
            self._environment.clock,
            interval_ms=settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        )

    async def _expire(self, runner: Runner[CoordinatorRecord]) -> None:
        await expire(
            runner,
            self._machine.transactions,
            self._environment.clock,
            interval_ms=self._settings.transaction_remove_expired_transaction_cleanup_interval_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What an opened coordinator is made of."""

    presence: Presence
    runner: Runner[CoordinatorRecord]
    service: ServiceParts
    taker: TransactionsTaker
