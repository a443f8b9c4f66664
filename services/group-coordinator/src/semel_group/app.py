"""A group coordinator instance: its journal, its machine, its handlers and its background work."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Self

from semel_common.ids import GroupId
from semel_group.config import GroupSettings
from semel_group.journal import GroupSerde
from semel_group.loops.consumer_lag import LagWatch
from semel_group.loops.free_partitions import FreePartitions
from semel_group.loops.inquiry import GroupInquirer
from semel_group.loops.metadata_updates import MetadataTaker
from semel_group.loops.offset_retention import OffsetRetention
from semel_group.loops.session_timeouts import MemberExpiry, MemberSessions
from semel_group.loops.take_over_groups import GroupsTaker
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.rpc.commit_offsets import OffsetCommitter
from semel_group.rpc.consumer_group_heartbeat import HeartbeatReceiver
from semel_group.rpc.delete_groups import GroupDeleter
from semel_group.rpc.delete_offsets import OffsetDeleter
from semel_group.rpc.describe_groups import GroupDescriber
from semel_group.rpc.fetch_offsets import OffsetFetcher
from semel_group.rpc.group_service import AUDITED, GroupService
from semel_group.rpc.hand_over_groups import GroupsGiver
from semel_group.rpc.list_groups import GroupLister
from semel_group.rpc.txn_offset_commit import TxnOffsetCommitter
from semel_group.rpc.write_txn_markers import MarkerWriter
from semel_runtime.access.guard_setup import guard_of
from semel_runtime.app import Environment, link_to_controller, open_runner
from semel_runtime.audit.controller_trail import ControllerTrail
from semel_runtime.audit.request_audit import RequestAudit
from semel_runtime.cluster.controller_link import ClusterLink, Identity
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.cluster.volume_admission import Admission, check_registered
from semel_runtime.moving.take_over_loop import TakeOvers
from semel_runtime.participant.inquiry_loop import InquiryLoop
from semel_runtime.participant.open_transactions import OpenTransactionLister
from semel_runtime.participant.producer_expiry_loop import ProducerExpiry
from semel_runtime.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class _Background:
    """What goes on beside the answering of requests."""

    link: ClusterLink
    expiry: MemberExpiry
    inquiries: InquiryLoop[GroupId, Record]
    retention: OffsetRetention
    producers: ProducerExpiry[GroupId, Record]
    taker: GroupsTaker
    lag: LagWatch | None
    """None: there are no metrics."""


class GroupApp:
    """One group coordinator. Implements ``App``: `async with`, then ``run``."""

    def __init__(self, settings: GroupSettings, environment: Environment) -> None:
        """Read the secrets of producer tokens, if there are any; do no other I/O yet."""
        self._settings = settings
        self._machine = GroupMachine(settings.instance_id, settings.group_limits())
        self._stack = AsyncExitStack()
        self._background: _Background | None = None
        self._environment = environment.within(self._machine.cluster)
        guard = Admission(
            guard_of(settings, self._machine.cluster), lambda _: check_registered(self.ready)
        )
        self.handlers = self._environment.new_handlers(guard)
        self.ready = asyncio.Event()
        self.failed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Claim and load the journal. Raises what ``Runner.open`` raises."""
        runner, identity = await open_runner(
            ServiceRole.GROUP_COORDINATOR,
            self._machine,
            GroupSerde(),
            settings=self._settings,
            environment=self._environment,
        )
        await self._stack.enter_async_context(runner)
        self.failed = runner.failed
        self._background = self._put_together(runner, identity)
        self.ready = self._background.link.ready
        return self

    async def __aexit__(self, *_: object) -> None:
        """Complete the decided outcomes."""
        await self._stack.aclose()

    async def run(self) -> None:
        """Do all background work until cancelled.

        Raises what the controller refuses this instance for: see ``ClusterLink.run``.
        """
        assert self._background is not None, "the app is opened first"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._background.link.run(), name="cluster link")
            await self.ready.wait()  # Until then, the volume may be an older copy.
            group.create_task(self._background.expiry.run(), name="member expiry")
            group.create_task(self._background.inquiries.run(), name="inquiries")
            group.create_task(self._background.retention.run(), name="offset retention")
            group.create_task(self._background.producers.run(), name="producer expiry")
            group.create_task(self._background.taker.run(), name="groups taker")
            if self._background.lag is not None:
                group.create_task(self._background.lag.run(), name="lag watch")

    def drain(self) -> None:
        """Let parked calls answer now: there are none here."""

    def _put_together(self, runner: Runner[Record], identity: Identity) -> _Background:
        settings, machine, clock = self._settings, self._machine, self._environment.clock
        session_timeout_ms = settings.group_consumer_session_timeout_ms
        sessions = MemberSessions(session_timeout_ms)
        free = FreePartitions(
            machine,
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_reconciling_heartbeat_interval_ms,
        )
        expiry = MemberExpiry(
            runner, machine, sessions, clock, session_timeout_ms=session_timeout_ms
        )
        link = self._link(runner, identity)
        inquiries, taker = self._inquiries(runner), self._groups_taker(runner, link)
        for part in (inquiries, sessions, expiry, taker, free):
            runner.on_durable(part.on_durable)
        GroupService(
            receiver=self._receiver(runner, sessions, free),
            committer=OffsetCommitter(runner, machine, clock),
            txn_committer=TxnOffsetCommitter(runner, machine, clock),
            fetcher=OffsetFetcher(runner, machine, inquiries),
            marker_writer=MarkerWriter(runner, machine, clock),
            lister=GroupLister(runner, machine),
            describer=GroupDescriber(runner, machine, sessions),
            offset_deleter=OffsetDeleter(runner, machine),
            group_deleter=GroupDeleter(runner, machine),
            giver=GroupsGiver(runner, machine, claim_epoch=identity.claim_epoch),
        ).register(self.handlers)
        OpenTransactionLister(runner, machine.transactions, clock).register(self.handlers)
        trail = ControllerTrail(
            machine.cluster, self._environment.connector, settings.inter_broker_listener_name
        )
        self.handlers.wrap(RequestAudit(trail, AUDITED).audited)
        return _Background(
            link=link,
            expiry=expiry,
            inquiries=inquiries,
            retention=OffsetRetention(
                runner,
                machine,
                clock,
                check_interval_ms=settings.offsets_retention_check_interval_ms,
            ),
            producers=self._producer_expiry(runner),
            taker=taker,
            lag=self._lag_watch(),
        )

    def _receiver(
        self, runner: Runner[Record], sessions: MemberSessions, free: FreePartitions
    ) -> HeartbeatReceiver:
        settings = self._settings
        return HeartbeatReceiver(
            runner,
            self._machine,
            sessions,
            free,
            self._environment.clock,
            session_timeout_ms=settings.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
            reconciling_heartbeat_interval_ms=(
                settings.group_consumer_reconciling_heartbeat_interval_ms
            ),
        )

    def _inquiries(self, runner: Runner[Record]) -> InquiryLoop[GroupId, Record]:
        environment = self._environment
        return InquiryLoop(
            GroupInquirer(runner, self._machine, environment.clock),
            self._machine.cluster,
            connector=environment.connector,
            random=environment.random,
            options=self._settings.inquiry_options(),
        )

    def _producer_expiry(self, runner: Runner[Record]) -> ProducerExpiry[GroupId, Record]:
        environment = self._environment
        return ProducerExpiry(
            runner,
            self._machine.producers,
            self._machine.cluster,
            connector=environment.connector,
            clock=environment.clock,
            options=self._settings.expiry_options(),
        )

    def _groups_taker(self, runner: Runner[Record], link: ClusterLink) -> GroupsTaker:
        environment = self._environment
        take_overs = TakeOvers(
            self._machine.cluster,
            environment.connector,
            environment.random,
            environment.clock,
            self._settings.take_over_options(),
            expect_newer=link.expect_newer,
        )
        return GroupsTaker(runner, self._machine, take_overs)

    def _lag_watch(self) -> LagWatch | None:
        environment = self._environment
        if environment.metrics is None:
            return None
        from semel_group.metrics import GroupMetrics  # noqa: PLC0415 - only if wanted

        lag = LagWatch(self._machine, environment.connector, self._settings.lag_options())
        GroupMetrics(environment.metrics, self._machine, lag, environment.clock)
        return lag

    def _link(self, runner: Runner[Record], identity: Identity) -> ClusterLink:
        taker = MetadataTaker(runner, self._machine, self._environment.journal)
        return link_to_controller(
            identity,
            self._machine.cluster,
            taker.take,
            settings=self._settings,
            environment=self._environment,
        )
