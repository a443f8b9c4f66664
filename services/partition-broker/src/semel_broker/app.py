"""A partition broker instance: its journal, its machine, its handlers and its background work."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Self

import structlog

from semel_broker.compaction.compactor import Compactor
from semel_broker.config import BrokerSettings
from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.loops.inquiry import BrokerInquirer
from semel_broker.loops.purge import Purger
from semel_broker.loops.retention_sweep import RetentionSweep
from semel_broker.loops.scrub import Scrubber
from semel_broker.loops.take_over import LogTaker
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.rpc.broker_service import AUDITED, AUDITED_OF_PEOPLE, BrokerService
from semel_broker.rpc.copy_log import LogCopier
from semel_broker.rpc.count_records import RecordCounter
from semel_broker.rpc.delete_records import RecordDeleter
from semel_broker.rpc.describe_producers import ProducerDescriber
from semel_broker.rpc.describe_writes import WriteDescriber
from semel_broker.rpc.fetch import Fetcher
from semel_broker.rpc.fetch_waiters import Waiters
from semel_broker.rpc.hand_over_log import LogGiver
from semel_broker.rpc.list_offsets import OffsetLister
from semel_broker.rpc.outcome_writer import OutcomeWriter
from semel_broker.rpc.produce import BatchAppender
from semel_broker.rpc.write_txn_markers import MarkerWriter
from semel_broker.storage.damage import DamageReports
from semel_broker.storage.log_reader import LogReader
from semel_broker.storage.log_tail import TailStore
from semel_broker.storage.opened_payloads import PayloadOpener
from semel_broker.storage.verified_store import VerifiedStore
from semel_common.ids import TopicPartition
from semel_runtime.access.guard_setup import guard_of
from semel_runtime.app import Environment, link_to_controller, open_runner
from semel_runtime.audit.controller_trail import ControllerTrail
from semel_runtime.audit.request_audit import RequestAudit
from semel_runtime.cluster.controller_link import ClusterLink, Identity
from semel_runtime.cluster.metadata_image import ClusterImage, ServiceRole
from semel_runtime.cluster.volume_admission import Admission, check_registered
from semel_runtime.moving.take_over_loop import TakeOvers
from semel_runtime.participant.inquiry_loop import InquiryLoop
from semel_runtime.participant.open_transactions import OpenTransactionLister
from semel_runtime.participant.producer_expiry_loop import ProducerExpiry
from semel_runtime.runner import Runner

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Background:
    """What goes on beside the answering of requests."""

    link: ClusterLink
    inquiries: InquiryLoop[TopicPartition, Record]
    purger: Purger
    retention: RetentionSweep
    compactor: Compactor
    expiry: ProducerExpiry[TopicPartition, Record]
    taker: LogTaker
    scrubber: Scrubber


class BrokerApp:
    """One partition broker. Implements ``App``: `async with`, then ``run``."""

    def __init__(self, settings: BrokerSettings, environment: Environment) -> None:
        """Read the secrets of producer tokens, if there are any; do no other I/O yet."""
        self._settings = settings
        self._machine = BrokerMachine(settings.instance_id, settings.log_limits())
        self._waiters = Waiters(self._machine.reads.readable_beyond)
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
            ServiceRole.BROKER,
            self._machine,
            BrokerSerde(),
            settings=self._settings,
            environment=self._environment,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(runner)
            self._background = self._put_together(runner, identity)
            self._stack = stack.pop_all()
        self.failed = runner.failed
        self.ready = self._background.link.ready
        return self

    async def __aexit__(self, *_: object) -> None:
        """Complete the decided outcomes."""
        self.drain()
        await self._stack.aclose()

    async def run(self) -> None:
        """Do all background work until cancelled.

        Raises what the controller refuses this instance for: see ``ClusterLink.run``.
        """
        assert self._background is not None, "the app is opened first"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._background.link.run(), name="cluster link")
            await self.ready.wait()  # Until then, the volume may be an older copy.
            group.create_task(self._background.inquiries.run(), name="inquiries")
            group.create_task(self._background.purger.run(), name="purger")
            group.create_task(self._background.retention.run(), name="retention")
            group.create_task(self._background.compactor.run(), name="compactor")
            group.create_task(self._background.expiry.run(), name="producer expiry")
            group.create_task(self._background.taker.run(), name="log taker")
            group.create_task(self._background.scrubber.run(), name="scrubber")

    def drain(self) -> None:
        """Let waiting fetches answer now: the process is about to stop."""
        self._waiters.close()

    def _put_together(self, runner: Runner[Record], identity: Identity) -> _Background:
        settings, environment, machine = self._settings, self._environment, self._machine
        medium = VerifiedStore(environment.journal.batches)
        store = TailStore(medium, max_bytes=settings.log_tail_cache_bytes)
        reports = DamageReports(store.location)
        logs = LogReader(store, reports)
        runner.on_batches(store.appended)
        writer = OutcomeWriter(runner, machine, self._waiters, environment.clock)
        opener = PayloadOpener(environment.offload)
        fetcher = Fetcher(runner, machine, logs, self._waiters, settings.fetch_limits(), opener)
        self._measure(fetcher, reports)
        BrokerService(
            appender=BatchAppender(runner, machine, environment.clock, settings.produce_limits()),
            fetcher=fetcher,
            lister=OffsetLister(runner, machine, logs, opener),
            counter=RecordCounter(runner, machine, logs, opener),
            deleter=RecordDeleter(runner, machine),
            describer=ProducerDescriber(runner, machine, environment.clock),
            write_describer=WriteDescriber(runner, machine, logs),
            copier=LogCopier(runner, machine, logs),
            giver=LogGiver(runner, machine),
            marker_writer=MarkerWriter(machine, writer),
        ).register(self.handlers)
        OpenTransactionLister(runner, machine.transactions, environment.clock).register(
            self.handlers
        )
        trail = ControllerTrail(
            machine.cluster, environment.connector, settings.inter_broker_listener_name
        )
        self.handlers.wrap(RequestAudit(trail, AUDITED, AUDITED_OF_PEOPLE).audited)
        inquiries = InquiryLoop(
            BrokerInquirer(runner, machine, writer, environment.clock),
            machine.cluster,
            connector=environment.connector,
            random=environment.random,
            options=settings.inquiry_options(),
        )
        purger = Purger(runner, machine, store)
        retention = RetentionSweep(
            runner,
            machine,
            environment.clock,
            interval_ms=settings.log_retention_check_interval_ms,
        )
        link = self._link(runner, identity)
        taker = self._taker(runner, link)
        for part in (self._waiters, inquiries, purger, retention, taker):
            runner.on_durable(part.on_durable)
        return _Background(
            link=link,
            inquiries=inquiries,
            purger=purger,
            retention=retention,
            compactor=self._compactor(runner, store, logs),
            expiry=self._expiry(runner),
            taker=taker,
            scrubber=Scrubber(
                runner, machine, LogReader(medium, reports), settings.scrub_options()
            ),
        )

    def _compactor(self, runner: Runner[Record], store: TailStore, logs: LogReader) -> Compactor:
        return Compactor(
            runner,
            self._machine,
            store,
            logs,
            self._environment.clock,
            self._environment.offload,
            self._settings.compactor_options(),
        )

    def _expiry(self, runner: Runner[Record]) -> ProducerExpiry[TopicPartition, Record]:
        return ProducerExpiry(
            runner,
            self._machine.producers,
            self._machine.cluster,
            connector=self._environment.connector,
            clock=self._environment.clock,
            options=self._settings.expiry_options(),
        )

    def _measure(self, fetcher: Fetcher, reports: DamageReports) -> None:
        environment = self._environment
        if environment.metrics is None:
            return
        from semel_broker.metrics import BrokerMetrics  # noqa: PLC0415 - only if wanted

        BrokerMetrics(
            environment.metrics,
            self._machine,
            fetcher,
            self._waiters,
            reports,
            environment.clock,
        )

    def _taker(self, runner: Runner[Record], link: ClusterLink) -> LogTaker:
        take_overs = TakeOvers(
            self._machine.cluster,
            self._environment.connector,
            self._environment.random,
            self._environment.clock,
            self._settings.take_over_options(),
            expect_newer=link.expect_newer,
        )
        return LogTaker(runner, self._machine, take_overs)

    def _link(self, runner: Runner[Record], identity: Identity) -> ClusterLink:
        return link_to_controller(
            identity,
            self._machine.cluster,
            partial(self._take_image, runner),
            settings=self._settings,
            environment=self._environment,
        )

    async def _take_image(self, runner: Runner[Record], image: ClusterImage) -> None:
        apply = partial(self._machine.apply_metadata, image)
        newer = await runner.run(apply, privileged=True)
        await self._environment.journal.set_cluster_id(image.cluster_id)
        if newer:
            log.info("metadata applied", version=image.version, topics=len(image.topics))
