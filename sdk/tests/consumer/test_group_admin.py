"""What operators do to groups: resets are planned as committed readers see logs, then committed."""

import asyncio

import pytest
from consumer_harness import pass_time
from fake_cluster import FakeCluster, Member
from google.protobuf.message import Message

from aiosemel import (
    OffsetAndMetadata,
    OffsetChange,
    OffsetSpec,
    ResetTo,
    SemelClient,
    ShiftBy,
    ToOffset,
    TopicPartition,
    ToTimestamp,
)
from aiosemel.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    InvalidGroupIdError,
    InvalidRequestError,
    NonEmptyGroupError,
    RequestTimedOutError,
    UnknownMemberIdError,
)
from semel.group.v1 import group_pb2 as group
from semel_common.wire import status

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class FakeGroups(FakeCluster):
    """Also describes the group, and deletes it."""

    refusal: GroupIdNotFoundError | GroupSubscribedToTopicError | None = None
    describes_after_s = 0.0

    async def deliver(self, address: str, name: str, request: Message) -> Message:
        if name == "DescribeGroups":
            await pass_time(self.describes_after_s)
            self.calls.append((name, address, request))
            members = [
                group.MemberDescription(member_id=name, subscribed_topics=member.topics)
                for name, member in self.members.items()
            ]
            described = group.GroupDescription(group_id="g", members=members)
            if self.refusal:
                described.error.CopyFrom(status.to_value(self.refusal))
            return group.DescribeGroupsResponse(groups=[described])
        error = status.to_value(self.refusal) if self.refusal else None
        if name == "DeleteGroups":
            deleted = group.DeletedGroup(group_id="g", error=error)
            return group.DeleteGroupsResponse(groups=[deleted])
        if name == "DeleteOffsets":
            refused = group.OffsetPartitionError(topic="orders", error=error)
            errors = [refused] if error else []
            return group.DeleteOffsetsResponse(errors=errors)
        return await super().deliver(address, name, request)


@pytest.fixture
def fake() -> FakeGroups:
    """A log from 2 to 8 whose offsets from 6 on are open; the group stands at 4 in it."""
    fake = FakeGroups(brokers=2)
    fake.create_topic("orders", 2)
    for values in ([b"cut", b"cut"], [b"2", b"3"], [b"4", b"5"], [b"open", b"open"]):
        fake.append("orders", 0, list(values))
    fake.log("orders").start = 2
    fake.log("orders").open_from = 6
    fake.committed[fake.key("orders", 0)] = (4, "noted")
    return fake


def open_client(fake: FakeCluster) -> SemelClient:
    return SemelClient("coordinator:1", connector=fake)


@pytest.mark.parametrize(
    ("to", "after"),
    [
        (OffsetSpec.EARLIEST, 2),
        (OffsetSpec.LATEST, 6),
        (ToOffset(0), 2),
        (ToOffset(5), 5),
        (ToOffset(7), 6),
        (ShiftBy(-1), 3),
        (ShiftBy(-9), 2),
        (ShiftBy(9), 6),
        (ToTimestamp(0), 2),
        (ToTimestamp(1_001), 6),
    ],
    ids=str,
)
async def test_a_reset_stays_within_what_committed_readers_see(
    fake: FakeGroups, to: ResetTo, after: int
) -> None:
    async with open_client(fake) as client:
        admin = client.admin()
        planned = await admin.groups.reset_offsets("g", to, dry_run=True)
        assert planned == (OffsetChange(partition=P0, before=4, after=after),)
        assert fake.committed[fake.key("orders", 0)] == (4, "noted")
        assert await admin.groups.reset_offsets("g", to) == planned
    assert fake.committed[fake.key("orders", 0)][0] == after


async def test_a_reset_reaches_the_partitions_that_are_named(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        changes = await client.admin().groups.reset_offsets(
            "g", OffsetSpec.LATEST, partitions=[("orders", 1), P0]
        )
    assert changes == (
        OffsetChange(partition=P0, before=4, after=6),
        OffsetChange(partition=P1, before=None, after=0),
    )


async def test_nothing_is_shifted_from_nowhere(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        groups = client.admin().groups
        with pytest.raises(InvalidRequestError, match="orders-1 has no committed offset"):
            await groups.reset_offsets("g", ShiftBy(1), partitions=[P0, P1])
        with pytest.raises(InvalidRequestError, match="cannot be reset to max-timestamp"):
            await groups.reset_offsets("g", OffsetSpec.MAX_TIMESTAMP)
    assert fake.asked("CommitOffsets") == []


async def test_a_group_with_members_is_not_even_planned_for(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        consumer = client.consumer("g")
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            await consumer.poll()
        with pytest.raises(NonEmptyGroupError, match="has 1 members"):
            await client.admin().groups.reset_offsets("g", OffsetSpec.LATEST, dry_run=True)


async def test_a_member_that_comes_in_between_keeps_its_offsets(fake: FakeGroups) -> None:
    fake.faults["CommitOffsets"].append(UnknownMemberIdError("the group has members"))
    async with open_client(fake) as client:
        with pytest.raises(NonEmptyGroupError, match="stop them first"):
            await client.admin().groups.reset_offsets("g", OffsetSpec.LATEST)
    assert fake.committed[fake.key("orders", 0)] == (4, "noted")


async def test_offsets_are_altered_with_their_notes(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        groups = client.admin().groups
        await groups.alter_offsets("g", {P0: 1, ("orders", 1): OffsetAndMetadata(2, "why")})
        await groups.alter_offsets("g", {})
    assert list(fake.committed.values()) == [(1, ""), (2, "why")]
    assert len(fake.asked("CommitOffsets")) == 1


async def test_deletions_say_what_was_refused(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        groups = client.admin().groups
        await groups.delete("g")
        await groups.delete_offsets("g", [P0])
        fake.refusal = GroupSubscribedToTopicError("read")
        with pytest.raises(GroupSubscribedToTopicError):
            await groups.delete_offsets("g", [P0])
        fake.refusal = GroupIdNotFoundError("no group")
        await groups.delete("g", missing_ok=True)
        with pytest.raises(GroupIdNotFoundError):
            await groups.delete("g")


async def test_a_dry_run_of_a_deletion_takes_no_longer_than_any_call(fake: FakeGroups) -> None:
    fake.describes_after_s = 20
    fake.held["FetchOffsets"] = asyncio.Event()
    async with open_client(fake) as client:
        loop = asyncio.get_running_loop()
        before = loop.time()
        with pytest.raises(RequestTimedOutError):
            await client.admin().groups.delete_offsets("g", [P0], dry_run=True)
        assert loop.time() - before <= 60.1


async def test_a_dry_run_is_refused_as_the_deletion_would_be(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        groups = client.admin().groups
        await groups.delete("g", dry_run=True)
        await groups.delete_offsets("g", [P0], dry_run=True)
        fake.members["m"] = Member(epoch=1, topics=("orders",))
        with pytest.raises(NonEmptyGroupError, match="'g' has 1 members"):
            await groups.delete("g", dry_run=True)
        with pytest.raises(GroupSubscribedToTopicError, match="reads topic 'orders'"):
            await groups.delete_offsets("g", [P0], dry_run=True)
        fake.refusal = GroupIdNotFoundError("no group")
        await groups.delete("g", missing_ok=True, dry_run=True)
        for call in (
            groups.delete("g", dry_run=True),
            groups.delete_offsets("g", [P0], dry_run=True),
        ):
            with pytest.raises(GroupIdNotFoundError):
                await call
    assert not fake.asked("DeleteGroups")
    assert fake.committed[fake.key("orders", 0)] == (4, "noted")


async def test_a_group_without_a_name_is_refused_before_anybody_is_asked(fake: FakeGroups) -> None:
    async with open_client(fake) as client:
        groups = client.admin().groups
        for call in (
            groups.delete(""),
            groups.delete_offsets("", [P0]),
            groups.alter_offsets("", {P0: 1}),
            groups.reset_offsets("", OffsetSpec.LATEST),
        ):
            with pytest.raises(InvalidGroupIdError):
                await call
    assert fake.calls == []
