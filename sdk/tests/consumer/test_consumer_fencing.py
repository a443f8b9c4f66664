"""Members that are fenced, late, or without a coordinator."""

import pytest
from consumer_harness import Member, client_of, heartbeats, pass_time, settle
from fake_cluster import FakeCluster

from aiosemel import TopicPartition
from aiosemel.errors import (
    FencedMemberEpochError,
    NetworkExceptionError,
    NotCoordinatorError,
    UnknownMemberIdError,
)

P0, P1, P2, P3 = (TopicPartition("orders", number) for number in range(4))
Partitions = frozenset[TopicPartition]


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.create_topic("orders", 4)
    return fake


# -- fencing -------------------------------------------------------------------------------------


async def test_a_member_that_was_timed_out_loses_everything_and_joins_again(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"a", b"b"])
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        assert member.values == [b"a", b"b"]
        fake.expel(member.id)
        member.values.clear()
        fake.committed[fake.key("orders", 0)] = (1, "")
        await settle(member)
        everything = frozenset({P0, P1, P2, P3})
        assert member.told == [
            ("assigned", everything),
            ("lost", everything),
            ("assigned", everything),
        ]
        assert member.values == [b"b"], "it goes on at the committed offset"


async def test_without_a_callback_for_losses_the_one_for_revocations_is_told(
    fake: FakeCluster,
) -> None:
    told: list[Partitions] = []

    async def on_revoked(partitions: Partitions) -> None:
        told.append(partitions)

    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"], on_revoked=on_revoked)
        while not consumer.assignment():
            await consumer.poll()
        fake.expel(consumer.group_metadata().member_id)
        while not told:
            await consumer.poll()
        assert told == [frozenset({P0, P1, P2, P3})]


async def test_a_fenced_member_keeps_its_old_epoch_until_it_has_let_go(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        epoch = member.consumer.group_metadata().member_epoch
        fake.faults["ConsumerGroupHeartbeat"].append(FencedMemberEpochError("fenced"))
        await pass_time(5)
        assert member.consumer.group_metadata().member_epoch == epoch
        assert member.consumer.assignment() == {P0, P1, P2, P3}
        await settle(member)
        assert member.told[-2][0] == "lost"
        assert member.consumer.assignment() == {P0, P1, P2, P3}


async def test_a_callback_for_losses_that_raises_does_not_stop_the_next_poll(
    fake: FakeCluster,
) -> None:
    async def on_lost(partitions: Partitions) -> None:
        raise ValueError(f"{len(partitions)} are gone")

    async with client_of(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"], on_lost=on_lost)
        while not consumer.assignment():
            await consumer.poll()
        fake.expel(consumer.group_metadata().member_id)
        with pytest.raises(ValueError, match="4 are gone"):
            await consumer.poll(timeout_ms=10_000)
        while not consumer.assignment():
            await consumer.poll()


async def test_a_consumer_that_does_not_poll_for_too_long_leaves_until_it_does(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        first = Member.of(client, max_poll_interval_ms=30_000)
        await settle(first)
        await pass_time(29)
        assert fake.members
        await pass_time(2)
        assert fake.members == {}
        second = Member.of(client)
        await settle(second)
        assert len(second.consumer.assignment()) == 4
        await settle(first, second)
        assert first.told[1][0] == "lost"
        assert len(first.consumer.assignment()) == 2


async def test_a_poll_that_takes_long_is_not_overdue(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client, max_poll_interval_ms=30_000)
        await settle(member)
        await member.poll(120_000)
        assert [what for what, _ in member.told] == ["assigned"]


# -- a coordinator in trouble --------------------------------------------------------------------


@pytest.mark.parametrize("error", [NetworkExceptionError("lost"), NotCoordinatorError("moved")])
async def test_a_member_survives_heartbeats_that_fail(
    fake: FakeCluster, error: NetworkExceptionError
) -> None:
    fake.faults["ConsumerGroupHeartbeat"].extend([error] * 3)
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        fake.faults["ConsumerGroupHeartbeat"].extend([error] * 3)
        await settle(member)
        assert [what for what, _ in member.told] == ["assigned"]
        full = [heartbeat for heartbeat in heartbeats(fake) if heartbeat.HasField("subscription")]
        assert len(full) == 7, "whatever follows a failure says everything"


async def test_a_member_survives_a_cluster_that_is_away(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        addresses = {"group:1", "coordinator:1", "broker0:1", "broker1:1"}
        fake.down |= addresses
        await member.poll(200_000)
        fake.down -= addresses
        fake.append("orders", 0, [b"a"])
        await member.poll(100_000)
        assert member.values == [b"a"]


async def test_positions_are_asked_for_again_when_the_epoch_moved_meanwhile(
    fake: FakeCluster,
) -> None:
    fake.append("orders", 0, [b"a"])
    fake.faults["FetchOffsets"].extend([FencedMemberEpochError("late"), UnknownMemberIdError("?")])
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        assert member.values == [b"a"]


async def test_a_topic_that_is_made_again_is_read_from_its_start(fake: FakeCluster) -> None:
    fake.append("orders", 0, [b"old"])
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        await member.consumer.commit()
        fake.create_topic("orders", 1)
        fake.group_epoch += 1
        fake.append("orders", 0, [b"new"])
        await settle(member)
        assert member.values == [b"old", b"new"]
        assert member.consumer.assignment() == {P0}
