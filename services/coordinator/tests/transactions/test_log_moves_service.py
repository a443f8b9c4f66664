"""Transactions move between two whole coordinators, whatever messages are lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from coordinator_harness import Coordinators, address_of
from transactions_service_harness import FakeParticipant

from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2
from semel.coordinator.v1 import moves_pb2 as moves
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import NotCoordinatorError, SemelError
from semel_common.ids import InternalTopic, partition_for_id
from semel_common.wire import methods
from semel_common.wire.methods import (
    COMPLETE_PARTITION_REASSIGNMENT,
    HAND_OVER_TRANSACTIONS,
)
from semel_coordinator.app import CoordinatorApp
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.network import AnyMethod, Fault, faulty
from semel_runtime.testing.virtual_time import after, in_virtual_time

STEPS = (HAND_OVER_TRANSACTIONS, COMPLETE_PARTITION_REASSIGNMENT)
SETTINGS = {"transaction_state_log_num_partitions": 3, "registration_interval_ms": 500}
COMMIT = participants.TRANSACTION_RESULT_COMMIT


def name_in(partition: int) -> str:
    """Return a transactional id of a partition."""
    return next(f"app-{n}" for n in range(99) if partition_for_id(f"app-{n}", 3) == partition)


class Cluster:
    """Two coordinators, of which the first is the controller, and a broker that takes markers."""

    def __init__(self, source: int = 1) -> None:
        self.coordinators = Coordinators()
        self.network = self.coordinators.network
        self.broker = FakeParticipant()
        self.source, self.target = source, 1 - source
        self.partition = 1 if source == 1 else 2
        self.name = name_in(self.partition)
        self.topic_id = ""
        self.network.serve("broker-0:1", self.broker.handlers)

    @asynccontextmanager
    async def both(self) -> AsyncIterator[tuple[CoordinatorApp, CoordinatorApp]]:
        """Run both."""
        run = self.coordinators.running
        async with run(0, **SETTINGS) as controller, run(1, **SETTINGS) as other:
            await controller.ready.wait()
            await other.ready.wait()
            await self._make_topic()
            yield controller, other

    async def _make_topic(self) -> None:
        await self.coordinators.register_broker(0)  # The controller waits for it at each start.
        if self.topic_id:
            return
        new = cluster_pb2.NewTopic(name="orders", partitions=4)
        request = cluster_pb2.CreateTopicsRequest(topics=[new])
        made = await self.coordinators.ask(methods.CREATE_TOPICS, request)
        self.topic_id = made.topics[0].topic_id
        while not (await self.coordinators.metadata(instance_id=1)).topics:
            await after(10)

    # -- requests ------------------------------------------------------------------------------

    async def move(self, to: int | None) -> None:
        """Ask for a move, or for it to be given up."""
        one = moves.PartitionReassignment(
            topic=InternalTopic.TRANSACTION_STATE.value, partition=self.partition, broker_id=to
        )
        request = moves.AlterPartitionReassignmentsRequest(partitions=[one])
        answer = await self.coordinators.ask(methods.ALTER_PARTITION_REASSIGNMENTS, request)
        assert not answer.partitions[0].HasField("error"), answer

    async def init(self, at: int, name: str = "", *, instance: str = "i") -> tuple[int, int]:
        """InitProducerId."""
        request = wire.InitProducerIdRequest(
            transactional_id=name or self.name,
            instance_id=instance,
            init_number=1,
            transaction_timeout_ms=60_000,
            wait=wire.WAIT_FOR_DECIDED,
        )
        answer = await self.coordinators.ask(methods.INIT_PRODUCER_ID, request, instance_id=at)
        return answer.producer_id, answer.producer_epoch

    async def add(self, at: int, key: tuple[int, int], partition: int) -> None:
        """AddPartitionsToTxn."""
        topic = participants.TopicPartitions(topic_id=self.topic_id, partitions=[partition])
        request = wire.AddPartitionsToTxnRequest(
            transactional_id=self.name, producer_id=key[0], producer_epoch=key[1], topics=[topic]
        )
        await self.coordinators.ask(methods.ADD_PARTITIONS_TO_TXN, request, instance_id=at)

    async def end(
        self, at: int, key: tuple[int, int], partition: int, *, wait: bool = False
    ) -> None:
        """EndTxn(commit) for a partition."""
        request = wire.EndTxnRequest(
            transactional_id=self.name,
            producer_id=key[0],
            producer_epoch=key[1],
            result=COMMIT,
            participants=self._participants(partition),
            wait=wire.WAIT_FOR_COMPLETE if wait else wire.WAIT_FOR_DECIDED,
        )
        await self.coordinators.ask(methods.END_TXN, request, instance_id=at)

    async def prepare(self, at: int, key: tuple[int, int], partition: int) -> None:
        """PrepareTxn for a partition."""
        request = wire.PrepareTxnRequest(
            transactional_id=self.name,
            producer_id=key[0],
            producer_epoch=key[1],
            participants=self._participants(partition),
        )
        await self.coordinators.ask(methods.PREPARE_TXN, request, instance_id=at)

    async def complete_prepared(self, at: int, key: tuple[int, int]) -> None:
        """CompletePreparedTxn(commit)."""
        request = wire.CompletePreparedTxnRequest(
            transactional_id=self.name,
            producer_id=key[0],
            prepared_epoch=key[1],
            result=COMMIT,
            wait=wire.WAIT_FOR_DECIDED,
        )
        await self.coordinators.ask(methods.COMPLETE_PREPARED_TXN, request, instance_id=at)

    async def inquire(self, at: int, key: tuple[int, int], partition: int) -> int:
        """Return what a participant is told of a transaction."""
        metadata = await self.coordinators.metadata()
        place = participants.TopicPartition(topic_id=self.topic_id, partition=partition)
        inquiry = wire.Inquiry(
            producer_id=key[0],
            producer_epoch=key[1],
            participant=participants.Participant(topic_partition=place),
        )
        request = wire.InquireTransactionsRequest(
            cluster_id=metadata.cluster_id, inquiries=[inquiry]
        )
        answer = await self.coordinators.ask(methods.INQUIRE_TRANSACTIONS, request, instance_id=at)
        return answer.answers[0].outcome

    def _participants(self, partition: int) -> participants.Participants:
        topic = participants.TopicPartitions(topic_id=self.topic_id, partitions=[partition])
        return participants.Participants(topics=[topic])

    # -- what is seen --------------------------------------------------------------------------

    async def is_served(self, at: int) -> bool:
        """Whether a coordinator serves the transactional id."""
        request = wire.DescribeTransactionsRequest(transactional_ids=[self.name])
        try:
            answer = await self.coordinators.ask(
                methods.DESCRIBE_TRANSACTIONS, request, instance_id=at
            )
        except SemelError:
            return False
        return not answer.descriptions[0].HasField("error")

    async def until_served(self, at: int) -> None:
        """Wait for it."""
        async with asyncio.timeout(60):
            while not await self.is_served(at):
                await after(50)

    async def until_handed_over(self) -> None:
        """Wait until the source serves it no more."""
        async with asyncio.timeout(60):
            while await self.is_served(self.source):
                await after(10)

    async def until_told(self, *expected: str) -> None:
        """Wait until these markers have arrived, whatever else has."""
        async with asyncio.timeout(60):
            while not set(expected) <= self.told:
                await after(10)

    @property
    def told(self) -> set[str]:
        """The markers that have arrived: epoch, result and partitions."""
        return {
            f"{marker.producer_epoch} {'commit' if marker.result == COMMIT else 'abort'}"
            f" {list(topic.partitions)}"
            for request in self.broker.requests
            for marker in request.markers
            for topic in marker.participants.topics
        }

    async def begin(self) -> tuple[int, int]:
        """Let there be a decided transaction, a prepared one, and the ongoing one returned."""
        self.broker.refuse = lambda *_: NotCoordinatorError("not now")
        key = await self.init(self.source)
        await self.end(self.source, key, 0)
        await self.prepare(self.source, (key[0], key[1] + 1), 1)
        ongoing = (key[0], key[1] + 2)
        await self.add(self.source, ongoing, 2)
        await self.until_told("0 commit [0]")
        return ongoing

    async def finish(self, at: int, ongoing: tuple[int, int]) -> None:
        """Finish all of them at a coordinator."""
        producer_id = ongoing[0]
        self.broker.requests.clear()
        self.broker.refuse = lambda *_: None
        assert await self.inquire(at, (producer_id, 0), 0) == wire.INQUIRY_OUTCOME_COMMITTED
        assert await self.inquire(at, (producer_id, 1), 1) == wire.INQUIRY_OUTCOME_ONGOING
        await self.complete_prepared(at, (producer_id, 1))
        await self.end(at, ongoing, 2, wait=True)
        await self.until_told("0 commit [0]", "1 commit [1]", "2 commit [2]")
        assert not any("abort" in each for each in self.told)
        assert (await self.init(at, instance="j")) == (producer_id, 4)


@pytest.mark.parametrize("source", [0, 1])
@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.REPEAT])
@pytest.mark.parametrize("method", STEPS, ids=lambda each: each.name)
@in_virtual_time
async def test_transactions_move_whatever_message_is_lost(
    method: AnyMethod, fault: Fault, source: int
) -> None:
    cluster = Cluster(source)
    cluster.network.decide = faulty(method, fault, 2)
    async with cluster.both() as apps:
        ongoing = await cluster.begin()
        epoch = apps[source]._machine.transactions.markers.serving()[cluster.partition]
        await cluster.move(cluster.target)
        await cluster.until_served(cluster.target)
        with pytest.raises(NotCoordinatorError):
            await cluster.add(cluster.source, ongoing, 3)
        await cluster.finish(cluster.target, ongoing)
        sent = {marker.coordinator_epoch for it in cluster.broker.requests for marker in it.markers}
        assert sent == {epoch + 1}


@pytest.mark.parametrize("source", [0, 1])
@in_virtual_time
async def test_both_start_again_after_the_hand_over(source: int) -> None:
    cluster = Cluster(source)
    async with cluster.both():
        ongoing = await cluster.begin()
        cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 10_000)
        await cluster.move(cluster.target)
        await cluster.until_handed_over()
    async with cluster.both():
        assert not await cluster.is_served(cluster.source)
        cluster.network.decide = lambda *_: Fault.NONE
        await cluster.until_served(cluster.target)
        await cluster.finish(cluster.target, ongoing)
    async with cluster.both():
        await cluster.until_served(cluster.target)
        assert not await cluster.is_served(cluster.source)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("source", [0, 1])
@in_virtual_time
async def test_the_old_leader_serves_again_when_the_move_is_given_up(
    source: int, restart: bool
) -> None:
    cluster = Cluster(source)
    async with cluster.both() as apps:
        ongoing = await cluster.begin()
        epoch = apps[source]._machine.transactions.markers.serving()[cluster.partition]
        cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 10_000)
        await cluster.move(cluster.target)
        await cluster.until_handed_over()
        if not restart:
            await cluster.move(None)
            await cluster.until_served(cluster.source)
            await cluster.finish(cluster.source, ongoing)
            return
    async with cluster.both() as apps:
        await cluster.move(None)
        await cluster.until_served(cluster.source)
        assert apps[source]._machine.transactions.markers.serving()[cluster.partition] == epoch + 1
        assert not await cluster.is_served(cluster.target)
        await cluster.finish(cluster.source, ongoing)


@in_virtual_time
async def test_a_partition_given_up_still_moves_when_it_is_asked_for_again() -> None:
    cluster = Cluster()
    async with cluster.both():
        ongoing = await cluster.begin()
        cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 10_000)
        await cluster.move(cluster.target)
        await cluster.until_handed_over()
        await cluster.move(None)
        await cluster.until_served(cluster.source)
        cluster.network.decide = lambda *_: Fault.NONE
        await cluster.move(cluster.target)
        await cluster.until_served(cluster.target)
        await cluster.move(cluster.source)
        await cluster.until_served(cluster.source)
        await cluster.finish(cluster.source, ongoing)


@in_virtual_time
async def test_what_is_whole_needs_the_old_leader_no_more() -> None:
    cluster = Cluster(source=1)
    async with cluster.coordinators.running(0, **SETTINGS) as controller:
        async with cluster.coordinators.running(1, **SETTINGS) as other:
            await other.ready.wait()
            await cluster._make_topic()
            ongoing = await cluster.begin()
            cluster.network.decide = faulty(
                COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 10_000
            )
            await cluster.move(0)
            moves_here = controller._machine.transactions.moves
            while not any(each.whole for each in moves_here.arrivals().response):
                await after(1)
        cluster.network.decide = lambda *_: Fault.NONE
        await cluster.until_served(0)
        await cluster.finish(0, ongoing)


@in_virtual_time
async def test_a_caller_waiting_for_markers_is_sent_to_the_new_leader() -> None:
    cluster = Cluster()
    async with cluster.both():
        cluster.broker.refuse = lambda *_: NotCoordinatorError("not now")
        key = await cluster.init(cluster.source)
        waiting = asyncio.create_task(cluster.end(cluster.source, key, 0, wait=True))
        await cluster.until_told("0 commit [0]")
        await cluster.move(cluster.target)
        with pytest.raises(NotCoordinatorError):
            await waiting
        await cluster.until_served(cluster.target)
        cluster.broker.refuse = lambda *_: None
        await cluster.end(cluster.target, key, 0, wait=True)


@in_virtual_time
async def test_a_marker_in_flight_at_the_hand_over_ends_nothing_there() -> None:
    cluster = Cluster()
    async with cluster.both() as apps:
        key = await cluster.init(cluster.source)
        cluster.broker.open.clear()
        await cluster.end(cluster.source, key, 0)
        await cluster.until_told("0 commit [0]")
        await cluster.move(cluster.target)
        await cluster.until_served(cluster.target)
        assert apps[cluster.target]._machine.transactions.markers.pending()
        cluster.broker.open.set()
        await cluster.end(cluster.target, key, 0, wait=True)
        assert apps[cluster.target]._machine.transactions.markers.pending() == []
        assert apps[cluster.source]._machine.transactions.markers.pending() == []


@in_virtual_time
async def test_the_new_leader_aborts_a_transaction_that_is_open_too_long() -> None:
    cluster = Cluster()
    async with cluster.both():
        key = await cluster.init(cluster.source)
        await cluster.add(cluster.source, key, 3)
        await cluster.move(cluster.target)
        await cluster.until_served(cluster.target)
        cluster.coordinators.clock.advance(61_000)
        await cluster.until_told("0 abort [3]")


@in_virtual_time
async def test_a_state_of_many_pieces_moves() -> None:
    cluster = Cluster()
    names = [f"app-{n}" for n in range(9_000) if partition_for_id(f"app-{n}", 3) == 1]
    async with cluster.both() as apps:
        for name in names:
            await cluster.init(cluster.source, name)
        asked: list[int] = []
        endpoint = apps[1].handlers.find(HAND_OVER_TRANSACTIONS.path)
        assert endpoint is not None
        hand_over = endpoint.handler

        async def as_of_another_start(
            request: moves.HandOverTransactionsRequest, call: Call
        ) -> moves.HandOverTransactionsResponse:
            piece = await hand_over(request, call)
            assert isinstance(piece, moves.HandOverTransactionsResponse)
            asked.append(request.first_record)
            piece.claim_epoch += len(asked) == 2
            return piece

        between = Handlers()
        between.add(HAND_OVER_TRANSACTIONS, as_of_another_start)
        cluster.network.serve(address_of(1), between)
        await cluster.move(cluster.target)
        await cluster.until_served(cluster.target)
        assert asked[:3] == [0, 2_000, 0]
        standing = apps[0]._machine.transactions.queries.standing(now_ms=0)
        assert standing.transactional_ids == len(names)
