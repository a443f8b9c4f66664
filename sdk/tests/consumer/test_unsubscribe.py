"""Consumers that give up their topics, and choose again."""

import asyncio

import pytest
from consumer_harness import Member, client_of, heartbeats, pass_time, settle
from fake_cluster import FakeCluster

from aiosemel import TopicPartition
from aiosemel._consumer.group.membership import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    HeartbeatAnswer,
    Membership,
    MemberState,
)
from aiosemel.errors import (
    ClosedError,
    GroupMaxSizeReachedError,
    IllegalStateError,
    InvalidTopicError,
)

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({P0, P1})


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    fake.create_topic("income")
    return fake


async def test_its_partitions_go_to_the_others_at_once(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        first, second = Member.of(client), Member.of(client)
        await settle(first, second)
        held = first.consumer.assignment()
        assert first.consumer.subscription() == {"orders"}
        await first.consumer.unsubscribe()
        assert first.told[-1] == ("revoked", held)
        assert not first.consumer.assignment() | first.consumer.subscription()
        await pass_time(0.1)
        assert heartbeats(fake)[-1].member_epoch == LEAVE_EPOCH
        await settle(second)
        assert second.consumer.assignment() == BOTH
        assert await first.consumer.poll(timeout_ms=100) == {}
        with pytest.raises(InvalidTopicError, match="call unsubscribe to read no topic"):
            first.consumer.subscribe([])


async def test_it_may_subscribe_again_before_it_has_left(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client, max_poll_interval_ms=10_000)
        await settle(member)
        await member.consumer.unsubscribe()
        await pass_time(20)
        await member.consumer.unsubscribe()
        member.consumer.subscribe(["income"])
        assert member.consumer.subscription() == {"income"}
        await settle(member)
        assert member.consumer.assignment() == {("income", 0)}


async def test_it_may_assign_then_and_the_other_way_round(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        await member.consumer.unsubscribe()
        member.consumer.assign([P1])
        assert member.consumer.assignment() == {P1}
        await member.consumer.unsubscribe()
        assert member.consumer.assignment() == frozenset()
        member.consumer.subscribe(["orders"])
        await settle(member)
        assert member.consumer.assignment() == BOTH


async def test_without_a_group_it_gives_up_what_was_assigned(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer()
        consumer.assign([P0])
        await consumer.unsubscribe()
        assert not consumer.assignment() | consumer.subscription()


async def test_a_callback_that_raises_keeps_nothing(fake: FakeCluster) -> None:
    async def refuse() -> None:
        raise LookupError

    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        member.during_revoke = refuse
        with pytest.raises(LookupError):
            await member.consumer.unsubscribe()
        assert member.consumer.assignment() == frozenset()
        await pass_time(0.1)
        assert fake.members == {}


async def test_a_membership_that_ended_for_good_can_be_begun_again(fake: FakeCluster) -> None:
    fake.faults["ConsumerGroupHeartbeat"].append(GroupMaxSizeReachedError("full"))
    async with client_of(fake) as client:
        member = Member.of(client)
        with pytest.raises(GroupMaxSizeReachedError):
            await member.poll()
        await member.consumer.unsubscribe()
        member.consumer.subscribe(["orders"])
        await settle(member)
        assert member.consumer.assignment() == BOTH


async def test_it_is_refused_while_another_task_polls_and_when_closed(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        member = Member.of(client)
        polling = group.create_task(member.poll())
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateError, match="another task"):
            await member.consumer.unsubscribe()
        await polling
        await member.consumer.close()
        with pytest.raises(ClosedError):
            await member.consumer.unsubscribe()


def test_a_member_that_subscribes_while_it_leaves_joins_when_it_has_left() -> None:
    member = Membership("m")
    member.subscribe(["orders"])
    member.leave()
    assert member.topics == frozenset()
    member.subscribe(["income"])
    heartbeat = member.next_heartbeat()
    assert heartbeat.member_epoch == LEAVE_EPOCH
    left = HeartbeatAnswer(member_epoch=LEAVE_EPOCH, heartbeat_interval_ms=5, assignment=None)
    member.answered(heartbeat, left)
    assert member.state is MemberState.JOINING
    joining = member.next_heartbeat()
    assert (joining.member_epoch, joining.topics) == (JOIN_EPOCH, ("income",))


async def test_a_consumer_without_assignments_may_subscribe_and_is_a_member_like_any_other(
    fake: FakeCluster,
) -> None:
    """It goes on with a topic that is made again: only who names partitions is told of that."""
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")
        consumer.assign([P0])
        await consumer.poll(timeout_ms=100)
        consumer.assign([])
        consumer.subscribe(["orders"])
        while consumer.assignment() != BOTH:
            await consumer.poll(timeout_ms=100)
        fake.delete_topic("orders")
        fake.create_topic("orders", 2)
        fake.group_epoch += 1
        fake.append("orders", 0, [b"anew"])
        async with asyncio.timeout(30):
            while not (records := await consumer.poll(timeout_ms=100)):
                pass
    assert [record.value for record in records[P0]] == [b"anew"]
