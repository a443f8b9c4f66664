"""A partition moves between two whole brokers, whatever messages are lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from broker_harness import BROKER_ID, OTHER_BROKER_ID, image, topic
from broker_service import (
    ABORT,
    COMMIT,
    READ_UNCOMMITTED,
    Broker,
    Coordinators,
    batch,
    code,
    plain,
    serving,
)
from google.protobuf.message import Message
from msgspec.structs import replace

from semel.broker.v1 import moves_pb2 as wire
from semel.coordinator.v1 import moves_pb2 as moves
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.error_codes import ErrorCode
from semel_common.errors import FencedLeaderEpochError, InvalidRequestError
from semel_common.ids import producer_id_of
from semel_common.record_batches.batches import decode_records
from semel_common.wire.methods import (
    COMPLETE_PARTITION_REASSIGNMENT,
    COPY_LOG,
    HAND_OVER_LOG,
)
from semel_runtime.cluster.metadata_image import Instance, Listener, PartitionLeader, ServiceRole
from semel_runtime.server.calls import Call
from semel_runtime.testing.network import AnyMethod, Fault, MemoryNetwork, faulty
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume

MORE_THAN_A_PIECE = [plain(b"x" * (200 << 10))] * 10
STEPS = (COPY_LOG, HAND_OVER_LOG, COMPLETE_PARTITION_REASSIGNMENT)


@dataclass(slots=True)
class Cluster:
    """Two brokers and a controller that knows where partition 0 of `orders` is."""

    network: MemoryNetwork = field(default_factory=MemoryNetwork)
    leader: PartitionLeader = field(default_factory=lambda: PartitionLeader(BROKER_ID, 0))
    version: int = 1
    volumes: dict[int, MemoryVolume] = field(
        default_factory=lambda: {BROKER_ID: MemoryVolume(), OTHER_BROKER_ID: MemoryVolume()}
    )
    coordinators: Coordinators = field(init=False)

    def __post_init__(self) -> None:
        self.coordinators = Coordinators(self.network)
        self.coordinators.controller.handlers.add(COMPLETE_PARTITION_REASSIGNMENT, self._complete)
        self.announce(self.leader)

    def announce(self, leader: PartitionLeader) -> None:
        """Let everybody know who leads the partition."""
        self.leader = leader
        self.version += 1
        orders = replace(topic("orders"), partitions=(leader,))
        bare = image(self.version, orders)
        brokers = tuple(
            Instance(
                role=ServiceRole.BROKER,
                instance_id=each,
                listeners=(Listener(name="default", host="broker", port=each),),
            )
            for each in (BROKER_ID, OTHER_BROKER_ID)
        )
        self.coordinators.controller.publish(replace(bare, instances=bare.instances + brokers))

    def move(self, to: int = OTHER_BROKER_ID) -> None:
        """Let the partition move."""
        self.announce(replace(self.leader, moving_to=to))

    async def _complete(
        self, request: moves.CompletePartitionReassignmentRequest, _: Call
    ) -> moves.CompletePartitionReassignmentResponse:
        done = PartitionLeader(request.broker_id, request.leader_epoch + 1)
        known = self.leader
        if (known.leader_epoch, known.moving_to) == (request.leader_epoch, request.broker_id):
            self.announce(done)
        elif self.leader != done:
            raise FencedLeaderEpochError("the move was given up")
        return moves.CompletePartitionReassignmentResponse()

    @asynccontextmanager
    async def broker(self, broker_id: int) -> AsyncIterator[Broker]:
        """Run a broker."""
        async with serving(
            self.volumes[broker_id], coordinators=self.coordinators, instance_id=broker_id
        ) as broker:
            self.network.serve(f"broker:{broker_id}", broker.app.handlers)
            yield broker
            self.network.cut(f"broker:{broker_id}")


async def _until_served(broker: Broker) -> None:
    async with asyncio.timeout(60):
        while code(await broker.fetch()) is not None:
            await after(50)


async def _write(broker: Broker) -> None:
    await broker.produce(batch(b"kept", epoch=0))
    await broker.end(COMMIT, epoch=0)
    await broker.produce(batch(b"dropped", epoch=1))
    await broker.end(ABORT, epoch=1)
    await broker.produce(plain(b"plain"))
    await broker.produce(batch(b"open", epoch=2))


async def _check(broker: Broker) -> None:
    """The records are there, and the open transaction goes on."""
    repeat = await broker.produce(batch(b"open", epoch=2))
    assert repeat.base_offset == 5
    more = await broker.produce(batch(b"more", epoch=2, sequence=1))
    assert more.base_offset == 6
    assert (await broker.fetch()).last_stable_offset == 5
    await broker.end(COMMIT, epoch=2)
    committed = [decode_records(each).values for each in (await broker.fetch()).batches]
    assert committed == [[b"kept"], [b"plain"], [b"open"], [b"more"]]


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.REPEAT])
@pytest.mark.parametrize("method", STEPS, ids=lambda each: each.name)
@in_virtual_time
async def test_a_partition_moves_whatever_message_is_lost(method: AnyMethod, fault: Fault) -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(method, fault, 2)
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        await _write(old)
        cluster.move()
        await _until_served(new)
        await _check(new)
        assert code(await old.produce(plain(b"late"))) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_virtual_time
async def test_both_brokers_start_again_after_the_hand_over() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 3)
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID):
        await _write(old)
        cluster.move()
        while code(await old.fetch()) is None:
            await after(10)
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        assert code(await old.fetch()) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await _until_served(new)
        await _check(new)


@in_virtual_time
async def test_the_old_leader_serves_again_when_the_move_is_given_up() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 100)
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        await _write(old)
        cluster.move()
        while code(await old.fetch()) is None:
            await after(10)
        cluster.announce(PartitionLeader(BROKER_ID, 1))
        await _until_served(old)
        await _check(old)
        assert code(await new.fetch()) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.network.decide = lambda *_: Fault.NONE
        cluster.move()
        await _until_served(new)
        assert (await new.fetch(isolation=READ_UNCOMMITTED)).high_watermark == 8


@in_virtual_time
async def test_a_log_of_many_pieces_and_producers_moves_while_it_is_written() -> None:
    cluster = Cluster()
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        for number in range(2_500):
            first = batch(b"x" * 1_000, producer_id=producer_id_of(3, number + 1))
            assert code(await old.produce(first)) is None
        cluster.move()
        written = 2_500
        while code(await old.produce(plain(b"meanwhile"))) is None:
            written += 1
        await _until_served(new)
        found = await new.fetch(isolation=READ_UNCOMMITTED)
        assert (found.high_watermark, found.last_stable_offset) == (written, 0)
        for number in (0, 1_999, 2_000, 2_499):
            producer_id = producer_id_of(3, number + 1)
            repeat = await new.produce(batch(b"x" * 1_000, producer_id=producer_id))
            assert repeat.base_offset == number
            following = await new.produce(batch(b"y", producer_id=producer_id, sequence=1))
            assert code(following) is None


async def _hand_over_while_writing(cluster: Cluster, old: Broker) -> int:
    """Let the partition be handed over with some of it not copied; returns where the log ends."""
    written = 0
    cluster.move()
    while code(await old.produce(*MORE_THAN_A_PIECE)) is None:
        written += len(MORE_THAN_A_PIECE)
    return written


@dataclass(slots=True)
class Steps:
    """What is asked for moves, in order."""

    asked: list[wire.CopyLogRequest | wire.HandOverLogRequest] = field(default_factory=list)

    def note(self, _address: str, _method: AnyMethod, request: Message) -> Fault:
        if isinstance(request, wire.CopyLogRequest | wire.HandOverLogRequest):
            self.asked.append(request)
        return Fault.NONE

    def copied_after_the_hand_over(self) -> int:
        """Return from which offset on the old leader was asked for the rest."""
        names = [type(question) for question in self.asked]
        rest = self.asked[names.index(wire.HandOverLogRequest) + 1]
        assert isinstance(rest, wire.CopyLogRequest)
        return rest.from_offset


@pytest.mark.parametrize("size", [1, 1_000])
@in_virtual_time
async def test_a_log_is_copied_before_it_is_handed_over_however_small_its_batches_are(
    size: int,
) -> None:
    cluster, steps = Cluster(), Steps()
    cluster.network.decide = steps.note
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        for _ in range(20):
            await old.produce(*[plain(b"x" * size)] * 100)
        cluster.move()
        await _until_served(new)
    assert steps.copied_after_the_hand_over() == 2_000


@in_virtual_time
async def test_a_log_that_is_written_faster_than_it_is_copied_still_moves() -> None:
    cluster, steps = Cluster(), Steps()
    cluster.network.decide = steps.note
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        await old.produce(*MORE_THAN_A_PIECE)
        written = len(MORE_THAN_A_PIECE) + await _hand_over_while_writing(cluster, old)
        await _until_served(new)
        assert (await new.fetch(isolation=READ_UNCOMMITTED)).high_watermark == written
    assert len(MORE_THAN_A_PIECE) <= steps.copied_after_the_hand_over() < written


@in_virtual_time
async def test_a_full_disk_does_not_keep_a_log_from_being_served_that_was_handed_over() -> None:
    cluster = Cluster()

    def decide(_address: str, method: AnyMethod, _request: Message) -> Fault:
        if method.path == HAND_OVER_LOG.path:
            cluster.volumes[OTHER_BROKER_ID].free_bytes = 0
        return Fault.NONE

    cluster.network.decide = decide
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        written = await _hand_over_while_writing(cluster, old)
        await _until_served(new)
        assert (await new.fetch(isolation=READ_UNCOMMITTED)).high_watermark == written


@in_virtual_time
async def test_a_new_leader_that_starts_again_on_a_full_disk_takes_over_what_was_handed_over() -> (
    None
):
    cluster = Cluster()
    cluster.network.decide = faulty(HAND_OVER_LOG, Fault.LOSE_REPLY, 1)
    async with cluster.broker(BROKER_ID) as old:
        async with cluster.broker(OTHER_BROKER_ID):
            written = await _hand_over_while_writing(cluster, old)
        cluster.volumes[OTHER_BROKER_ID].free_bytes = 0
        async with cluster.broker(OTHER_BROKER_ID) as new:
            await _until_served(new)
            assert (await new.fetch(isolation=READ_UNCOMMITTED)).high_watermark == written


@in_virtual_time
async def test_a_log_that_is_still_served_is_not_copied_to_a_full_disk() -> None:
    cluster = Cluster()
    cluster.volumes[OTHER_BROKER_ID].free_bytes = 0
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID):
        await _write(old)
        cluster.move()
        await after(5_000)
        await _check(old)


@in_virtual_time
async def test_a_reader_waiting_at_the_old_leader_is_told() -> None:
    cluster = Cluster()
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID):
        await _write(old)
        waiting = asyncio.create_task(old.fetch(6, min_bytes=1, max_wait_ms=60_000))
        while not old.waiting:
            await after(10)
        cluster.move()
        assert code(await waiting) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_virtual_time
async def test_the_new_leader_asks_about_transactions_without_an_end() -> None:
    cluster = Cluster()
    cluster.coordinators.answer = lambda _: transactions.InquiryAnswer(
        outcome=transactions.INQUIRY_OUTCOME_ABORTED
    )
    async with cluster.broker(BROKER_ID) as old, cluster.broker(OTHER_BROKER_ID) as new:
        await old.produce(batch(b"open"))
        cluster.move()
        await _until_served(new)
        assert (await new.fetch()).last_stable_offset == 0
        new.clock.advance(60_000)
        await after(1_000)
        assert (await new.fetch()).last_stable_offset == 2


@pytest.mark.parametrize("field_name", ["partition", "broker_id", "first_record"])
async def test_a_number_that_the_wire_has_no_room_for_is_not_offered(
    broker: Broker, field_name: str
) -> None:
    request = wire.HandOverLogRequest(topic_id="orders-id", **{field_name: -1})
    with pytest.raises(InvalidRequestError, match=rf"{field_name} is -1: must be 0 to 2147483647$"):
        await broker.call(HAND_OVER_LOG, request)
