"""DeleteOffsets, DeleteGroups and the expiry of offsets, as a running service does them."""

import pytest
from group_harness import GROUP
from group_service import cluster_in_memory

from semel.common.v1.errors_pb2 import ErrorCode
from semel.group.v1 import group_pb2 as wire
from semel_common.errors import GroupIdNotFoundError, InvalidGroupIdError
from semel_common.wire import methods
from semel_runtime.testing.virtual_time import after, in_virtual_time


def commit(*partitions: int) -> wire.CommitOffsetsRequest:
    topic = wire.OffsetCommitTopic(
        topic="orders",
        partitions=[
            wire.OffsetCommitPartition(partition=partition, committed_offset=5)
            for partition in partitions
        ],
    )
    return wire.CommitOffsetsRequest(group_id=GROUP, member_epoch=-1, topics=[topic])


def deletion(*partitions: int, group_id: str = GROUP) -> wire.DeleteOffsetsRequest:
    topic = wire.OffsetFetchTopic(topic="orders", partitions=partitions)
    return wire.DeleteOffsetsRequest(group_id=group_id, topics=[topic])


@in_virtual_time
async def test_offsets_and_groups_are_deleted_each_for_itself() -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(0, 1))
        answer = await service.call(methods.DELETE_OFFSETS, deletion(0, 9))
        assert [error.partition for error in answer.errors] == [9]
        everything = wire.FetchOffsetsRequest(group_id=GROUP, all_partitions=True)
        fetched = await service.call(methods.FETCH_OFFSETS, everything)
        assert [offset.partition for offset in fetched.offsets] == [1]
        deleted = await service.call(
            methods.DELETE_GROUPS, wire.DeleteGroupsRequest(group_ids=[GROUP, "nobody's"])
        )
        assert [group.error.code for group in deleted.groups] == [
            ErrorCode.ERROR_CODE_UNSPECIFIED,
            ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND,
        ]
        with pytest.raises(GroupIdNotFoundError):
            await service.call(methods.DELETE_OFFSETS, deletion(0))
        with pytest.raises(InvalidGroupIdError):
            await service.call(methods.DELETE_OFFSETS, deletion(0, group_id=""))


@in_virtual_time
async def test_offsets_expire_by_themselves() -> None:
    async with cluster_in_memory(
        offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000
    ) as service:
        await service.call(methods.COMMIT_OFFSETS, commit(0, 1))
        await after(50_000)
        listed = await service.call(methods.LIST_GROUPS, wire.ListGroupsRequest())
        assert [group.group_id for group in listed.groups] == [GROUP]
        await after(25_000)
        listed = await service.call(methods.LIST_GROUPS, wire.ListGroupsRequest())
        assert not listed.groups


@in_virtual_time
async def test_a_static_member_that_is_away_keeps_its_place_for_one_session() -> None:
    async with cluster_in_memory() as service:
        heartbeat = wire.ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="a",
            instance_id="s",
            rebalance_timeout_ms=60_000,
            subscription=wire.Subscription(topics=["orders"]),
        )
        await service.call(methods.CONSUMER_GROUP_HEARTBEAT, heartbeat)
        await after(40_000)
        heartbeat.member_epoch = -2
        answer = await service.call(methods.CONSUMER_GROUP_HEARTBEAT, heartbeat)
        assert answer.member_epoch == -2
        question = wire.DescribeGroupsRequest(group_ids=[GROUP])
        await after(40_000)
        described = await service.call(methods.DESCRIBE_GROUPS, question)
        (member,) = described.groups[0].members
        assert (member.instance_id, member.member_epoch) == ("s", -2)
        await after(10_000)
        described = await service.call(methods.DESCRIBE_GROUPS, question)
        assert not described.groups[0].members


@in_virtual_time
async def test_lists_take_turns_and_no_call_of_a_member_does() -> None:
    async with cluster_in_memory() as service:
        in_turns = [each.method.name for each in service.app.handlers if each.turns is not None]
        assert sorted(in_turns) == ["DescribeGroups", "ListGroups", "ListOpenTransactions"]
