"""A group moves between two whole group coordinators, whatever messages are lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from google.protobuf.message import Message
from group_harness import GROUP, PRODUCER_ID, image
from group_service import (
    COMMIT,
    COMMITTED,
    Coordinators,
    GroupService,
    commit_topic,
    running,
)
from groups_on_the_move import MOVED, MOVING, PARTITION
from msgspec.structs import replace

from semel.coordinator.v1 import moves_pb2 as moves
from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel.group.v1 import group_pb2 as wire
from semel.group.v1 import moves_pb2 as group_moves
from semel_common.errors import (
    FencedLeaderEpochError,
    InvalidProducerEpochError,
    NotCoordinatorError,
    UnknownMemberIdError,
)
from semel_common.ids import InternalTopic
from semel_common.wire import methods
from semel_common.wire.methods import COMPLETE_PARTITION_REASSIGNMENT, HAND_OVER_GROUPS
from semel_runtime.cluster.metadata_image import Instance, Listener, PartitionLeader, ServiceRole
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.testing.network import AnyMethod, Fault, MemoryNetwork, faulty
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume

STEPS = (HAND_OVER_GROUPS, COMPLETE_PARTITION_REASSIGNMENT)


@dataclass(slots=True)
class Cluster:
    """Two group coordinators, and a controller that knows which one leads the group."""

    network: MemoryNetwork = field(default_factory=MemoryNetwork)
    leader: PartitionLeader = field(default_factory=lambda: PartitionLeader(0, 0))
    volumes: dict[int, MemoryVolume] = field(
        default_factory=lambda: {0: MemoryVolume(), 1: MemoryVolume()}
    )
    coordinators: Coordinators = field(init=False)
    completions: int = 0

    def __post_init__(self) -> None:
        self.coordinators = Coordinators(self.network)
        self.coordinators.controller.handlers.add(COMPLETE_PARTITION_REASSIGNMENT, self._complete)
        self.coordinators.serve()
        self.announce(self.leader)

    def announce(self, leader: PartitionLeader) -> None:
        """Let everybody know who leads the group."""
        self.leader = leader
        controller = self.coordinators.controller
        bare = image({"orders": 4}, version=controller.image.version + 1, leader=leader)
        added = tuple(
            Instance(
                role=ServiceRole.GROUP_COORDINATOR,
                instance_id=each,
                listeners=(Listener(name="default", host=f"group-coordinator-{each}", port=1),),
            )
            for each in (0, 1)
        )
        controller.publish(replace(bare, instances=bare.instances + added))

    async def _complete(
        self, request: moves.CompletePartitionReassignmentRequest, _: Call
    ) -> moves.CompletePartitionReassignmentResponse:
        assert (request.topic_id, request.partition) == (InternalTopic.CONSUMER_OFFSETS, PARTITION)
        done = PartitionLeader(request.broker_id, request.leader_epoch + 1)
        known = self.leader
        if (known.leader_epoch, known.moving_to) == (request.leader_epoch, request.broker_id):
            self.completions += 1
            self.announce(done)
        elif self.leader != done:
            raise FencedLeaderEpochError("the move was given up")
        return moves.CompletePartitionReassignmentResponse()

    def member(self, instance_id: int) -> AbstractAsyncContextManager[GroupService]:
        """Run a group coordinator."""
        volume = self.volumes[instance_id]
        return running(self.coordinators, volume, instance_id=instance_id)

    @asynccontextmanager
    async def both(self) -> AsyncIterator[tuple[GroupService, GroupService]]:
        """Run both."""
        async with self.member(0) as old, self.member(1) as new:
            yield old, new


async def _is_served(service: GroupService) -> bool:
    try:
        await service.fetch(0)
    except NotCoordinatorError:
        return False
    return True


async def _until_served(service: GroupService) -> None:
    async with asyncio.timeout(60):
        while not await _is_served(service):
            await after(50)


async def _until_handed_over(service: GroupService) -> None:
    async with asyncio.timeout(60):
        while await _is_served(service):
            await after(10)


async def _write(service: GroupService) -> None:
    """Let there be a member, a position, a transaction that has ended, and an open one."""
    await service.txn_commit({0: 3, 1: 3}, epoch=0)
    await service.marker(COMMIT, epoch=0)
    await service.txn_commit({0: 5}, epoch=1)
    await service.heartbeat("a", 0)


async def _check(service: GroupService) -> None:
    """The offsets are there, and the member and the open transaction go on."""
    assert await service.fetch(0, 1) == [3, 3]
    (unstable,) = await service.fetch(0, require_stable=True)
    assert "open transactions may move partition 0" in str(unstable)
    assert (await service.heartbeat("a", 1, 0, 1, 2, 3)).member_epoch == 1
    late = wire.TxnOffsetCommitRequest(
        transactional_id="t",
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=1,
        group_id=GROUP,
        member_id="a",
        member_epoch=1,
        topics=[commit_topic({0: 1})],
    )
    with pytest.raises(InvalidProducerEpochError, match="below the fence 1"):
        await service.call(methods.TXN_OFFSET_COMMIT, late)
    await service.marker(COMMIT, epoch=1)
    assert await service.fetch(0, 1, require_stable=True) == [5, 3]


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.REPEAT])
@pytest.mark.parametrize("method", STEPS, ids=lambda each: each.name)
@in_virtual_time
async def test_a_group_moves_whatever_message_is_lost(method: AnyMethod, fault: Fault) -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(method, fault, 2)
    async with cluster.both() as (old, new):
        await _write(old)
        cluster.announce(MOVING)
        await _until_served(new)
        await _check(new)
        with pytest.raises(NotCoordinatorError):
            await old.heartbeat("a", 1)
    assert cluster.leader == MOVED


@in_virtual_time
async def test_a_group_is_served_soon_after_its_move_although_the_news_of_it_is_lost() -> None:
    cluster = Cluster()
    async with cluster.both() as (old, new):
        await _write(old)
        moving = cluster.coordinators.controller.image.version + 1

        def decide(_: str, __: AnyMethod, request: Message) -> Fault:
            asked = isinstance(request, MetadataRequest) and request.known_version == moving
            return Fault.DROP_REPLY if asked else Fault.NONE

        cluster.network.decide = decide
        cluster.announce(MOVING)
        await after(6_000)
        assert cluster.leader == MOVED
        await _check(new)


@in_virtual_time
async def test_both_start_again_after_the_hand_over() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 3)
    async with cluster.both() as (old, _):
        await _write(old)
        cluster.announce(MOVING)
        await _until_handed_over(old)
    async with cluster.both() as (old, new):
        assert not await _is_served(old)
        await _until_served(new)
        await _check(new)
    async with cluster.both() as (_, new):
        assert await new.fetch(0, 1) == [5, 3]


@in_virtual_time
async def test_what_is_whole_needs_the_old_leader_no_more() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 1)
    async with cluster.member(1) as new:
        async with cluster.member(0) as old:
            await _write(old)
            cluster.announce(MOVING)
            while not any(arrival.whole for arrival in new.app._machine.moves.arrivals().response):
                await after(1)
            assert cluster.completions == 0
        await _until_served(new)
        await _check(new)


@in_virtual_time
async def test_the_old_leader_serves_again_when_the_move_is_given_up() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 100)
    async with cluster.both() as (old, new):
        await _write(old)
        cluster.announce(MOVING)
        await _until_handed_over(old)
        cluster.announce(PartitionLeader(0, 1))
        await _until_served(old)
        assert not await _is_served(new)
        cluster.network.decide = lambda *_: Fault.NONE
        cluster.announce(PartitionLeader(0, 1, moving_to=1))
        await _until_served(new)
        await _check(new)


@in_virtual_time
async def test_a_state_of_many_pieces_moves() -> None:
    cluster = Cluster()
    async with cluster.both() as (old, new):
        for number in range(2_500):
            await old.txn_commit({0: number}, producer_id=PRODUCER_ID + number)
        cluster.announce(MOVING)
        await _until_served(new)
        (described,) = (
            await new.call(methods.DESCRIBE_GROUPS, wire.DescribeGroupsRequest(group_ids=[GROUP]))
        ).groups
        assert len(described.pending) == 2_500


@in_virtual_time
async def test_pieces_of_two_starts_do_not_go_together() -> None:
    cluster = Cluster()
    async with cluster.both() as (old, new):
        for number in range(2_500):
            await old.txn_commit({0: number}, producer_id=PRODUCER_ID + number)
        asked: list[int] = []
        endpoint = old.app.handlers.find(HAND_OVER_GROUPS.path)
        assert endpoint is not None
        hand_over = endpoint.handler

        async def as_of_another_start(
            request: group_moves.HandOverGroupsRequest, call: Call
        ) -> group_moves.HandOverGroupsResponse:
            piece = await hand_over(request, call)
            assert isinstance(piece, group_moves.HandOverGroupsResponse)
            asked.append(request.first_record)
            piece.claim_epoch += len(asked) == 2
            return piece

        between = Handlers()
        between.add(HAND_OVER_GROUPS, as_of_another_start)
        cluster.network.serve(old.address, between)
        cluster.announce(MOVING)
        await _until_served(new)
        assert asked[:3] == [0, 2_000, 0]


@in_virtual_time
async def test_members_have_fresh_sessions_where_the_group_moves_to() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 10_000)
    async with cluster.both() as (old, new):
        await old.heartbeat("a", 0)
        await old.heartbeat("b", 0)
        cluster.announce(MOVING)
        await _until_handed_over(old)
        await after(100_000)
        cluster.network.decide = lambda *_: Fault.NONE
        await _until_served(new)
        await _check_sessions(new)


@in_virtual_time
async def test_members_have_fresh_sessions_where_the_group_is_served_again() -> None:
    cluster = Cluster()
    cluster.network.decide = faulty(COMPLETE_PARTITION_REASSIGNMENT, Fault.LOSE_REQUEST, 10_000)
    async with cluster.both() as (old, _):
        await old.heartbeat("a", 0)
        await old.heartbeat("b", 0)
        cluster.announce(MOVING)
        await _until_handed_over(old)
        await after(100_000)
        cluster.announce(PartitionLeader(0, 1))
        await _until_served(old)
        await _check_sessions(old)


async def _check_sessions(service: GroupService) -> None:
    """Of two members, the one that speaks stays; the other one is removed in its time."""
    await after(40_000)
    assert (await service.heartbeat("a", 1, 0, 1, 2, 3)).member_epoch == 2
    await after(10_000)
    with pytest.raises(UnknownMemberIdError):
        await service.heartbeat("b", 2)
    assert (await service.heartbeat("a", 2)).member_epoch > 2


@in_virtual_time
async def test_the_new_leader_inquires_about_what_stayed_open() -> None:
    cluster = Cluster()
    async with cluster.both() as (old, new):
        await old.txn_commit({0: 5}, epoch=1)
        cluster.announce(MOVING)
        await _until_served(new)
        cluster.coordinators.answer = lambda _: COMMITTED
        await after(15_000)
        assert await new.fetch(0, require_stable=True) == [5]
