"""The transactions' service with its shell: memory journal, memory network, a clock that stands."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from google.protobuf.message import Message
from transactions_harness import TIMEOUT_MS, TransactionsSerde, cluster_copy, image

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import cluster_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import SemelError, TopicNotFoundError, UnknownTopicIdError
from semel_common.ids import GroupId, Participant, TopicPartition
from semel_common.wire.methods import BROKER_WRITE_TXN_MARKERS, METADATA
from semel_common.wire.status import to_value
from semel_coordinator.controller.rpc.current_topics import PassedOnTopics
from semel_coordinator.transactions.machine import (
    TransactionKey,
    TransactionLimits,
    TransactionsMachine,
    TransactionsRecord,
)
from semel_coordinator.transactions.markers import MarkerOptions, MarkerSender
from semel_coordinator.transactions.rpc.claim import Claim
from semel_coordinator.transactions.rpc.end_txn import TransactionEnder
from semel_coordinator.transactions.rpc.hand_over_transactions import TransactionsGiver
from semel_coordinator.transactions.rpc.init_producer_id import ProducerIdGiver
from semel_coordinator.transactions.rpc.participant_messages import write_participants
from semel_coordinator.transactions.rpc.participant_names import TopicNames
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.transaction_service import TransactionService
from semel_runtime.authentication.principal import Origin
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.clock import ManualClock
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.volume import MemoryVolume

BROKER_0, BROKER_1 = "broker-0:1", "broker-1:1"
GROUPS = "group_coordinator-0:1"
CONTROLLER = "coordinator-0:1"
TRACEPARENT = f"00-{7:032x}-{1:016x}-01"
CALL = Call(origin=Origin(listener="default"), traceparent=TRACEPARENT)

Refuse = Callable[[participants_pb2.TxnMarker, Participant], SemelError | None]


class FakeParticipant:
    """An instance that takes markers, notes them, and refuses as a test says."""

    def __init__(self) -> None:
        self.requests: list[participants_pb2.WriteTxnMarkersRequest] = []
        self.refuse: Refuse = lambda _marker, _participant: None
        self.name_instead: Callable[[Participant], Participant] = lambda participant: participant
        """Whom a refusal names."""
        self.forget_results = False
        self.open = asyncio.Event()
        """Answers wait for it."""
        self.open.set()
        self.handlers = Handlers()
        self.handlers.add(BROKER_WRITE_TXN_MARKERS, self.write_txn_markers)

    async def write_txn_markers(
        self, request: participants_pb2.WriteTxnMarkersRequest, _call: Call
    ) -> participants_pb2.WriteTxnMarkersResponse:
        """Answer as a broker or group coordinator does."""
        self.requests.append(request)
        await self.open.wait()
        response = participants_pb2.WriteTxnMarkersResponse()
        for marker in () if self.forget_results else request.markers:
            result = response.results.add()
            for participant in participants_of(marker):
                error = self.refuse(marker, participant)
                if error is not None:
                    out = result.errors.add(error=to_value(error))
                    write_participant(self.name_instead(participant), out.participant)
        return response

    @property
    def told(self) -> list[str]:
        """All markers that arrived, as ``epoch result participants``."""
        return [
            f"{marker.producer_epoch} {'commit' if marker.result == 1 else 'abort'} "
            + "+".join(map(str_of, participants_of(marker)))
            for request in self.requests
            for marker in request.markers
        ]


def write_participant(participant: Participant, out: participants_pb2.Participant) -> None:
    """Put a participant into a message."""
    if isinstance(participant, GroupId):
        out.group_id = participant.group_id
    else:
        out.topic_partition.topic_id = participant.topic_id
        out.topic_partition.partition = participant.partition


class FakeController:
    """Knows topics with two partitions each."""

    def __init__(self, *topic_ids: str) -> None:
        self.topic_ids = set(topic_ids)
        self.asked: list[list[str]] = []
        self.silent_about: set[str] = set()
        self.names: dict[str, str] = {}
        """The ids of topics by name."""
        self.handlers = Handlers()
        self.handlers.add(METADATA, self.metadata)

    async def metadata(
        self, request: cluster_pb2.MetadataRequest, _call: Call
    ) -> cluster_pb2.MetadataResponse:
        """Answer as the controller does."""
        self.asked.append(list(request.topic_ids))
        response = cluster_pb2.MetadataResponse()
        for name in request.topics:
            topic = response.topics.add(name=name, topic_id=self.names.get(name, ""))
            if name not in self.names:
                topic.error.CopyFrom(to_value(TopicNotFoundError(f"no topic is named {name!r}")))
        for topic_id in request.topic_ids:
            if topic_id in self.silent_about:
                continue
            topic = response.topics.add(topic_id=topic_id)
            if topic_id not in self.topic_ids:
                error = UnknownTopicIdError(f"no topic has the id {topic_id!r}")
                topic.error.CopyFrom(to_value(error))
                continue
            topic.partitions.add(index=0)
            topic.partitions.add(index=1)
        return response


def participants_of(marker: participants_pb2.TxnMarker) -> list[Participant]:
    """The participants of a marker."""
    found: list[Participant] = [
        TopicPartition(topic.topic_id, partition)
        for topic in marker.participants.topics
        for partition in topic.partitions
    ]
    found += [GroupId(group_id) for group_id in marker.participants.group_ids]
    return found


def str_of(participant: Participant) -> str:
    """A participant in short: ``topic-a/0`` or ``group-g``."""
    return "/".join(map(str, participant))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """One coordinator instance, and its requests in short."""

    runner: Runner[TransactionsRecord]
    machine: TransactionsMachine
    cluster: ClusterCopy
    markers: MarkerSender
    parts: ServiceParts
    sending: asyncio.Task[None]

    def handlers(self) -> Handlers:
        """Return the handlers of all RPCs."""
        handlers = Handlers()
        giver = TransactionsGiver(self.runner, self.machine, claim_epoch=1)
        TransactionService(self.parts, giver).register(handlers)
        return handlers

    async def ask(self, request: Message, call: Call = CALL) -> Message:
        """Give a request to the handler that is registered for it."""
        (endpoint,) = (
            endpoint for endpoint in self.handlers() if endpoint.method.request is type(request)
        )
        return await endpoint.handler(request, call)

    async def init(
        self,
        *,
        name: str = "app",
        instance: str = "one",
        wait: wire.WaitFor.ValueType = wire.WAIT_FOR_DECIDED,
        call: Call = CALL,
    ) -> TransactionKey:
        """InitProducerId."""
        request = wire.InitProducerIdRequest(
            transactional_id=name,
            instance_id=instance,
            init_number=1,
            transaction_timeout_ms=TIMEOUT_MS,
            wait=wait,
        )
        response = await ProducerIdGiver(self.parts).init_producer_id(request, call)
        return TransactionKey(response.producer_id, response.producer_epoch)

    async def end(
        self,
        key: TransactionKey,
        *participants: Participant,
        commit: bool = True,
        wait: wire.WaitFor.ValueType = wire.WAIT_FOR_UNSPECIFIED,
        call: Call = CALL,
    ) -> TransactionKey:
        """EndTxn of the transactional id ``app``, with these participants."""
        request = wire.EndTxnRequest(
            transactional_id="app",
            producer_id=key.producer_id,
            producer_epoch=key.producer_epoch,
            result=(
                participants_pb2.TRANSACTION_RESULT_COMMIT
                if commit
                else participants_pb2.TRANSACTION_RESULT_ABORT
            ),
            participants=participants_pb2.Participants(),
            wait=wait,
        )
        write_participants(participants, request.participants)
        response = await TransactionEnder(self.parts).end_txn(request, call)
        return TransactionKey(response.producer_id, response.producer_epoch)


class Cluster:
    """Two brokers, a group coordinator and a controller, all fakes, around one coordinator."""

    def __init__(self) -> None:
        self.volume = MemoryVolume()
        self.network = MemoryNetwork()
        self.clock = ManualClock()
        self.image = image()
        self.broker_0, self.broker_1 = FakeParticipant(), FakeParticipant()
        self.groups = FakeParticipant()
        self.controller = FakeController("topic-a", "topic-b")
        for address, fake in (
            (BROKER_0, self.broker_0),
            (BROKER_1, self.broker_1),
            (GROUPS, self.groups),
            (CONTROLLER, self.controller),
        ):
            self.network.serve(address, fake.handlers)

    @asynccontextmanager
    async def coordinator(
        self,
        *,
        limits: TransactionLimits | None = None,
        send: bool = True,
        claim: bool = True,
        backoff_ms: int = 0,
    ) -> AsyncIterator["Coordinator"]:
        """Start the coordinator on the volume; without `send`, no marker leaves."""
        limits = limits or TransactionLimits()
        cluster = cluster_copy(self.image)
        machine = TransactionsMachine(instance_id=0, cluster=cluster, limits=limits)
        runner = await Runner.open(MemoryJournal(self.volume), machine, TransactionsSerde())
        markers = MarkerSender(
            runner=runner,
            machine=machine,
            cluster=cluster,
            connector=self.network,
            random=Random(1),
            options=MarkerOptions(backoff_ms=backoff_ms, topics_per_question_max=2),
            clock=self.clock,
        )
        topics = PassedOnTopics(cluster, self.network, listener="default", timeout_ms=TIMEOUT_MS)
        parts = ServiceParts(
            runner=runner,
            machine=machine,
            claim=Claim(runner, machine),
            cluster=cluster,
            names=TopicNames(topics),
            markers=markers,
            clock=self.clock,
            limits=limits,
        )
        async with runner:
            if claim:
                await parts.claim.take()
            sending = asyncio.create_task(markers.run() if send else asyncio.sleep(0))
            yield Coordinator(
                runner=runner,
                machine=machine,
                cluster=cluster,
                markers=markers,
                parts=parts,
                sending=sending,
            )
            sending.cancel()
            (ended,) = await asyncio.gather(sending, return_exceptions=True)
            in_order = ended is None or isinstance(ended, asyncio.CancelledError)
            assert in_order or runner.failed.is_set(), ended
            await self.network.close()


async def until(condition: Callable[[], object]) -> None:
    """Let the others work until something holds; what rides along with others takes real time."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a condition of any kind has no event
            await asyncio.sleep(0)
