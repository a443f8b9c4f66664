"""Committed offsets: by call, and by themselves."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from cluster_calls import now
from consumer_harness import Client, Member, client_of, pass_time, settle
from fake_cluster import FakeCluster

from aiosemel import Consumer, ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from aiosemel.errors import (
    InvalidGroupIdError,
    KafkaStorageError,
    NetworkExceptionError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    for number in range(5):
        fake.append("orders", 0, [b"%d" % number])
    return fake


def committed(fake: FakeCluster) -> dict[int, int]:
    return {key.partition: offset for key, (offset, _) in fake.committed.items()}


async def member_of(client: Client, **options: object) -> Consumer:
    """Return a member that holds everything, and has read nothing."""
    consumer = client.consumer("g", auto_offset_reset="earliest", **options)
    consumer.subscribe(["orders"])
    while len(consumer.assignment()) < 2:
        await consumer.poll(timeout_ms=0)
    consumer.seek_to_beginning()
    for each in (P0, P1):
        await consumer.position(each)
    return consumer


async def read(consumer: Consumer, count: int) -> None:
    while count:
        for records in (await consumer.poll(count)).values():
            count -= len(records)


async def test_commit_commits_the_positions_as_a_member(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client)
        await read(consumer, 3)
        await consumer.commit()
        assert committed(fake) == {0: 3, 1: 0}
        assert await consumer.committed([P0, P1]) == {
            P0: OffsetAndMetadata(3),
            P1: OffsetAndMetadata(0),
        }


async def test_commit_commits_what_it_is_told_with_metadata(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        await consumer.commit({P0: 4, ("orders", 1): OffsetAndMetadata(2, "half way")})
        assert committed(fake) == {0: 4, 1: 2}
        found = await consumer.committed([P0, ("orders", 1)])
        assert found[P1] == OffsetAndMetadata(2, "half way")
        assert consumer.group_metadata() == ConsumerGroupMetadata(group_id="g")


async def test_committing_nothing_makes_no_call(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        await client.consumer("g").commit()
        assert fake.asked("CommitOffsets") == []


async def test_what_was_never_committed_is_none(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        assert await client.consumer("g").committed([P0]) == {P0: None}


async def test_a_commit_at_an_old_epoch_is_repeated_at_the_new_one(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client)
        await read(consumer, 1)
        fake.group_epoch += 1
        fake.faults["CommitOffsets"].append(StaleMemberEpochError("old"))
        before = now()
        await consumer.commit()
        assert now() - before < 0.5
        assert committed(fake)[0] == 1


async def test_a_commit_that_stays_stale_is_raised(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client)
        fake.faults["CommitOffsets"].append(StaleMemberEpochError("not yours"))
        with pytest.raises(StaleMemberEpochError):
            await consumer.commit()
        assert committed(fake) == {}


async def test_a_stale_commit_without_a_coordinator_is_raised_in_time(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client)
        fake.faults["CommitOffsets"].append(StaleMemberEpochError("not yours"))
        fake.faults["ConsumerGroupHeartbeat"].extend([KafkaStorageError("full")] * 1_000)
        before = now()
        with pytest.raises(StaleMemberEpochError):
            await consumer.commit(timeout_ms=3_000)
        assert now() - before <= 3.1


async def test_a_former_member_commits_nothing(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client)
        await read(consumer, 1)
        fake.expel(consumer.group_metadata().member_id)
        with pytest.raises(UnknownMemberIdError):
            await consumer.commit()
        assert committed(fake) == {}


async def test_a_partition_that_is_refused_is_raised(fake: FakeCluster) -> None:
    fake.refusals["CommitOffsets"].append(OffsetMetadataTooLargeError("4097 bytes"))
    async with client_of(fake) as client:
        with pytest.raises(OffsetMetadataTooLargeError):
            await client.consumer("g").commit({P0: OffsetAndMetadata(1, "x" * 4_097)})


async def test_committed_waits_for_transactions_that_may_change_an_offset(
    fake: FakeCluster,
) -> None:
    fake.unstable.add(fake.key("orders"))
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        with pytest.raises(UnstableOffsetCommitError):
            await consumer.committed([P0, P1], timeout_ms=200)
        asyncio.get_running_loop().call_later(0.3, fake.unstable.clear)
        assert await consumer.committed([P0, P1]) == {P0: None, P1: None}
        fake.unstable.add(fake.key("orders"))
        dirty = client.consumer("g", isolation_level="read_uncommitted")
        assert await dirty.committed([P0]) == {P0: None}


async def test_committed_of_a_topic_that_is_not_there_does_not_wait_for_it_for_long(
    fake: FakeCluster,
) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g")
        with pytest.raises(UnknownTopicOrPartitionError, match="no topic nope"):
            await consumer.committed([("nope", 0), P0])
        assert 4 < now() < 6


async def test_committed_of_a_topic_that_was_just_made_waits_for_it(fake: FakeCluster) -> None:
    async with client_of(fake) as client, asyncio.TaskGroup() as group:
        asking = group.create_task(client.consumer("g").committed([("new", 0)]))
        await pass_time(1)
        fake.create_topic("new")
        assert await asking == {("new", 0): None}


async def test_committed_raises_permanent_errors(fake: FakeCluster) -> None:
    fake.refusals["FetchOffsets"].append(InvalidGroupIdError("no"))
    async with client_of(fake) as client:
        with pytest.raises(InvalidGroupIdError):
            await client.consumer("g").committed([P0])


@pytest.mark.parametrize("give_up", [Consumer.close, Consumer.unsubscribe])
async def test_a_callback_may_commit_what_it_is_about_to_give_up(
    fake: FakeCluster, give_up: Callable[[Consumer], Awaitable[None]]
) -> None:
    async with client_of(fake) as client:
        member = Member.of(client)
        await settle(member)
        consumer = member.consumer

        async def commit() -> None:
            reached = await consumer.position(P0)
            assert (await consumer.committed([P0]))[P0] is None
            await consumer.commit({P0: reached})

        member.during_revoke = commit
        await give_up(consumer)
        assert committed(fake) == {0: 5}


# -- by themselves -------------------------------------------------------------------------------


async def test_positions_are_committed_by_themselves_if_that_is_wanted(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client, enable_auto_commit=True)
        await read(consumer, 2)
        assert committed(fake) == {}
        await pass_time(5)
        await consumer.poll(1)
        await pass_time(0.1)
        assert committed(fake) == {0: 2, 1: 0}, "what this poll returns is not processed yet"


async def test_positions_are_committed_before_partitions_go(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client, enable_auto_commit=True)
        await read(consumer, 2)
        await consumer.close()
        assert committed(fake) == {0: 2, 1: 0}


async def test_a_commit_by_itself_that_fails_does_not_stop_the_reading(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client, enable_auto_commit=True)
        await pass_time(5)
        fake.faults["CommitOffsets"].append(UnknownMemberIdError("gone"))
        await read(consumer, 3)
        assert committed(fake) == {}
        await pass_time(5)
        await read(consumer, 1)
        await pass_time(0.1)
        assert committed(fake) == {0: 3, 1: 0}


async def test_a_poll_waits_for_no_commit_by_itself(fake: FakeCluster) -> None:
    """Nor does closing, for longer than it may."""
    async with client_of(fake) as client:
        consumer = await member_of(client, enable_auto_commit=True)
        await read(consumer, 2)
        await pass_time(5)
        fake.down.add("group:1")
        before = now()
        await read(consumer, 3)
        assert now() == pytest.approx(before, abs=0.1)
        assert await consumer.poll(timeout_ms=500) == {}
        assert now() == pytest.approx(before + 0.5, abs=0.1)
        before = now()
        await consumer.close(timeout_ms=1_000)
        assert now() <= before + 2.1


async def test_a_commit_by_itself_never_comes_after_a_newer_one(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client, enable_auto_commit=True)
        await read(consumer, 2)
        await pass_time(5)
        fake.faults["CommitOffsets"].append(NetworkExceptionError("lost"))
        await read(consumer, 3)
        await pass_time(0.05)
        await consumer.commit()
        await pass_time(1)
        assert committed(fake) == {0: 5, 1: 0}
        assert len(fake.asked("CommitOffsets")) == 2


@pytest.mark.parametrize("give_up", [Consumer.close, Consumer.unsubscribe])
async def test_positions_are_committed_also_where_partitions_were_assigned(
    fake: FakeCluster, give_up: Callable[[Consumer], Awaitable[None]]
) -> None:
    async with client_of(fake) as client:
        consumer = client.consumer("g", auto_offset_reset="earliest", enable_auto_commit=True)
        consumer.assign([P0])
        await read(consumer, 2)
        await give_up(consumer)
        assert committed(fake) == {0: 2}


async def test_nothing_is_committed_by_itself_by_default(fake: FakeCluster) -> None:
    async with client_of(fake) as client:
        consumer = await member_of(client)
        await read(consumer, 2)
        await pass_time(10)
        await read(consumer, 1)
        await consumer.close()
        assert fake.asked("CommitOffsets") == []
