"""Members of a group: rebalances, fencing, and the order of their callbacks."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
from cluster_calls import now
from consumer_harness import Member, client_of, heartbeats, pass_time, settle
from fake_cluster import FakeCluster

from aiosemel import Consumer, ConsumerRecord, TopicPartition
from aiosemel.errors import (
    ClosedError,
    GroupMaxSizeReachedError,
    IllegalStateError,
    InvalidTopicError,
)

P0, P1, P2, P3 = (TopicPartition("orders", number) for number in range(4))
Partitions = frozenset[TopicPartition]


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders", 4)
    return fake


# -- joining and leaving -------------------------------------------------------------------------


async def test_a_single_member_gets_all_partitions(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        assert member.consumer.group_metadata().member_epoch == 0
        await settle(member)
        assert member.told == [("assigned", frozenset({P0, P1, P2, P3}))]
        assert member.consumer.assignment() == {P0, P1, P2, P3}
        assert member.consumer.group_metadata().member_epoch == 1
        join, acknowledge, *_ = heartbeats(fake)
        assert (join.member_epoch, join.rebalance_timeout_ms) == (0, 300_000)
        assert list(join.subscription.topics) == ["orders"]
        assert join.HasField("owned")
        assert not join.owned.topics
        assert len(acknowledge.owned.topics) == 1
        assert list(acknowledge.owned.topics[0].partitions) == [0, 1, 2, 3]
        assert not acknowledge.HasField("subscription")


async def test_heartbeats_go_on_without_polls(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        before = len(heartbeats(fake))
        await pass_time(60)
        assert 55 <= len(heartbeats(fake)) - before <= 65


async def test_two_members_share_the_partitions_and_none_is_held_by_both(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        first = Member.of(client)
        await settle(first)
        second = Member.of(client)
        for _ in range(10):
            await first.poll()
            await second.poll()
            assert not first.consumer.assignment() & second.consumer.assignment()
        assert first.consumer.assignment() | second.consumer.assignment() == {P0, P1, P2, P3}
        assert len(second.consumer.assignment()) == 2
        assert [what for what, _ in first.told] == ["assigned", "revoked"]
        assert [what for what, _ in second.told] == ["assigned"]


async def test_who_closes_gives_its_partitions_to_the_others_at_once(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        first, second = Member.of(client), Member.of(client)
        await settle(first, second)
        held = first.consumer.assignment()
        await first.consumer.close()
        assert first.told[-1] == ("revoked", held)
        assert heartbeats(fake)[-1].member_epoch == -1
        before = now()
        while len(second.consumer.assignment()) < 4:
            await second.poll()
        assert now() - before < 1.5


async def test_closing_does_not_wait_long_for_a_coordinator_that_hangs(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        fake.down.add("group:1")
        before = now()
        await member.consumer.close(timeout_ms=2_000)
        assert now() - before <= 2.1


async def test_a_cancelled_close_still_leaves_the_group(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        member.during_revoke = asyncio.Event().wait  # type: ignore[assignment]  # answers a bool
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await member.consumer.close()
        assert heartbeats(fake)[-1].member_epoch == -1
        assert member.consumer.assignment() == frozenset()
        with pytest.raises(ClosedError):
            await member.poll()


async def test_who_closes_a_consumer_that_is_being_closed_waits_for_that(fake: FakeCluster) -> None:
    """And its callback is told once, though it closes the consumer too."""
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        member.during_revoke = member.consumer.close
        fake.held["ConsumerGroupHeartbeat"] = answered = asyncio.Event()
        first = asyncio.create_task(member.consumer.close())
        await pass_time(0.1)
        asyncio.get_running_loop().call_later(1, answered.set)
        await member.consumer.close()
        assert [event for event, _ in member.told] == ["assigned", "revoked"]
        assert heartbeats(fake)[-1].member_epoch == -1
        assert fake.members == {}
        await first


async def test_closing_tells_nothing_again_of_partitions_that_a_poll_gives_up(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        first, second = Member.of(client), Member.of(client)
        await settle(first)
        ended = asyncio.Event()
        first.during_revoke = ended.wait  # type: ignore[assignment]  # answers a bool
        polling = asyncio.create_task(first.poll(10_000))
        await settle(second)
        assert [event for event, _ in first.told] == ["assigned", "revoked"]
        closing = asyncio.create_task(first.consumer.close())
        await pass_time(0.1)
        ended.set()
        await closing
        with pytest.raises(ClosedError):
            await polling
        (_, all_of_them), (_, moved), (_, kept) = first.told
        assert moved
        assert not moved & kept
        assert moved | kept == all_of_them


async def test_a_group_is_left_however_long_the_last_callback_takes(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        member.during_revoke = partial(pass_time, 10)
        await member.consumer.close(timeout_ms=1_000)
        assert heartbeats(fake)[-1].member_epoch == -1


async def test_a_consumer_that_never_polled_leaves_nothing(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        await Member.of(client).consumer.close()
        assert fake.calls == []


async def test_an_error_of_the_last_callback_is_raised_when_all_is_closed(
    fake: FakeCluster,
) -> None:
    async def fail() -> None:
        raise ValueError("nothing works")

    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        member.during_revoke = fail
        with pytest.raises(ValueError, match="nothing works"):
            await member.consumer.close()
        assert member.consumer.assignment() == frozenset()
        assert fake.members == {}


async def test_subscribing_and_assigning_do_not_mix(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        with pytest.raises(InvalidTopicError):
            consumer.subscribe("orders")
        with pytest.raises(InvalidTopicError):
            consumer.subscribe([])
        consumer.subscribe(["orders"])
        with pytest.raises(IllegalStateError):
            consumer.assign([P0])
        other = client.consumer("g")
        other.assign([P0])
        with pytest.raises(IllegalStateError):
            other.subscribe(["orders"])


async def test_a_group_that_is_full_ends_the_membership(fake: FakeCluster) -> None:
    fake.faults["ConsumerGroupHeartbeat"].append(GroupMaxSizeReachedError("full"))
    async with client_of(fake) as client:
        member = Member.of(client)
        for _ in range(2):
            with pytest.raises(GroupMaxSizeReachedError):
                await member.poll(10_000)
        assert len(heartbeats(fake)) == 1


# -- revoking ------------------------------------------------------------------------------------


async def test_partitions_are_acknowledged_only_after_the_user_was_told(fake: FakeCluster) -> None:
    """A member ends its transaction before it acknowledges that partitions are taken from it."""
    ended = asyncio.Event()

    async def end_transaction() -> None:
        await ended.wait()

    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        first = Member.of(client)
        await settle(first)
        first.during_revoke = end_transaction
        second = Member.of(client)
        await second.poll()
        polling = group.create_task(first.poll(60_000))
        await pass_time(20)
        assert first.told[-1][0] == "revoked"
        assert fake.members[first.id].owned == {fake.key("orders", n) for n in range(4)}
        await second.poll()
        assert second.consumer.assignment() == frozenset()
        ended.set()
        await pass_time(3)
        assert len(fake.members[first.id].owned) == 2
        await second.poll()
        assert len(second.consumer.assignment()) == 2
        polling.cancel()


async def test_no_record_of_a_revoked_partition_comes_after_the_callback(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        first = Member.of(client)
        await settle(first)
        second = Member.of(client)
        await second.poll()
        await pass_time(2)
        for number in range(4):
            fake.append("orders", number, [b"%d" % number])
        await first.poll()
        held = first.consumer.assignment()
        await settle(second, first)
        assert sorted(v for v in first.values if v) == sorted(b"%d" % p.partition for p in held)
        assert len(first.values) + len(second.values) == 4


async def test_partitions_go_also_when_the_callback_raises(fake: FakeCluster) -> None:
    async def fail() -> None:
        raise ValueError("nothing works")

    async with client_of(fake) as client:
        first = Member.of(client)
        await settle(first)
        first.during_revoke = fail
        second = Member.of(client)
        await second.poll()
        with pytest.raises(ValueError, match="nothing works"):
            await first.poll(10_000)
        first.during_revoke = None
        await settle(first, second)
        assert len(second.consumer.assignment()) == 2


async def test_partitions_stay_when_the_callback_is_cancelled(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        first = Member.of(client)
        await settle(first)
        first.during_revoke = asyncio.Event().wait  # type: ignore[assignment]  # answers a bool
        second = Member.of(client)
        await second.poll()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await first.poll(10_000)
        assert len(first.consumer.assignment()) == 4
        first.during_revoke = None
        await settle(first, second)
        assert [what for what, _ in first.told] == ["assigned", "revoked", "revoked"]
        assert len(second.consumer.assignment()) == 2


async def test_a_callback_may_seek_in_its_partitions(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"a", b"b"])
    async with client_of(fake) as client:
        consumer = client.consumer("g")

        async def on_assigned(partitions: Partitions) -> None:
            for partition in partitions:
                consumer.seek(partition, 1 if partition == P0 else 0)

        consumer.subscribe(["orders"], on_assigned=on_assigned)
        while not (polled := await consumer.poll()):
            pass
        assert [record.value for record in polled[P0]] == [b"b"]


async def test_partitions_are_told_again_when_the_callback_was_cancelled(
    fake: FakeCluster,
) -> None:
    """Else nothing would be read from where it wanted to seek to."""
    fake.append("orders", 0, [b"a", b"b"])
    told: list[Partitions] = []
    hangs = True
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest")

        async def on_assigned(partitions: Partitions) -> None:
            told.append(partitions)
            if hangs:
                await asyncio.Event().wait()
            consumer.seek(P0, 1)

        consumer.subscribe(["orders"], on_assigned=on_assigned)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await consumer.poll(10_000)
        hangs = False
        assert [record.value async for record in _first(consumer)] == [b"b"]
        await pass_time(1)
        await consumer.poll()
    assert told == [frozenset({P0, P1, P2, P3})] * 2


async def test_a_callback_that_was_cancelled_is_not_told_of_what_went_meanwhile(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        told: list[Partitions] = []

        async def on_assigned(partitions: Partitions) -> None:
            told.append(partitions)
            if len(told) == 1:
                await asyncio.Event().wait()

        consumer.subscribe(["orders"], on_assigned=on_assigned)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await consumer.poll(10_000)
        other = Member.of(client)
        await other.poll()
        await pass_time(2)
        await consumer.poll()
        assert told[1] == consumer.assignment()
        assert len(told[1]) == 2


async def _first(consumer: Consumer) -> AsyncIterator[ConsumerRecord]:
    async for record in consumer:
        yield record
        return
