"""The group coordinator as its callers see it, over a journal in memory."""

import asyncio

import pytest
from group_harness import GROUP, PRODUCER_ID
from group_service import (
    ABORT,
    COMMIT,
    Coordinators,
    GroupService,
    cluster_in_memory,
    commit_topic,
    running,
)

from semel.common.v1 import errors_pb2 as errors
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.group.v1 import group_pb2 as wire
from semel_common.errors import (
    InvalidRequestError,
    SemelError,
    ThrottlingQuotaExceededError,
    UnknownMemberIdError,
)
from semel_common.wire import methods
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.virtual_time import VirtualTimeLoop, after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume


def assigned(response: wire.ConsumerGroupHeartbeatResponse) -> list[int]:
    return [number for topic in response.assignment.topics for number in topic.partitions]


async def two_members(service: GroupService) -> None:
    """Let a hold 0 and 1, and b 2 and 3, at epoch 2."""
    await service.heartbeat("a", 0)
    await service.heartbeat("b", 0)
    await service.heartbeat("a", 1, 0, 1, 2, 3)
    await service.heartbeat("a", 2, 0, 1)
    await service.heartbeat("b", 2)
    await service.heartbeat("b", 2, 2, 3)


@in_virtual_time
async def test_a_member_joins_moves_and_leaves() -> None:
    async with cluster_in_memory() as service:
        joined = await service.heartbeat("a", 0)
        assert (joined.member_id, joined.member_epoch) == ("a", 1)
        (topic,) = joined.assignment.topics
        assert (topic.topic, topic.topic_id) == ("orders", "orders-id")
        assert list(topic.partitions) == [0, 1, 2, 3]
        known = await service.heartbeat("a", 1, 0, 1, 2, 3)
        assert not known.HasField("assignment")
        left = await service.heartbeat("a", -1)
        assert left.member_epoch == -1
        with pytest.raises(UnknownMemberIdError):
            await service.heartbeat("a", 1, 0, 1, 2, 3)


@in_virtual_time
async def test_members_are_asked_to_speak_more_often_while_they_wait() -> None:
    async with cluster_in_memory() as service:
        assert (await service.heartbeat("a", 0)).heartbeat_interval_ms == 5_000
        assert (await service.heartbeat("b", 0)).heartbeat_interval_ms == 500
        assert (await service.heartbeat("a", 1, 0, 1, 2, 3)).heartbeat_interval_ms == 500
        b_is_late_in_ms = (await service.heartbeat("a", 2, 0, 1)).heartbeat_interval_ms
        assert b_is_late_in_ms == 500 + 500


@in_virtual_time
async def test_intervals_are_settings() -> None:
    intervals = {
        "group_consumer_heartbeat_interval_ms": 50,
        "group_consumer_reconciling_heartbeat_interval_ms": 70,
    }
    async with cluster_in_memory(**intervals) as service:
        assert (await service.heartbeat("a", 0)).heartbeat_interval_ms == 50
        assert (await service.heartbeat("b", 0)).heartbeat_interval_ms == 50


@in_virtual_time
async def test_answer_to_a_heartbeat_says_how_long_the_group_waits_for_the_next() -> None:
    async with cluster_in_memory() as service:
        assert (await service.heartbeat("a", 0)).session_timeout_ms == 45_000
    async with cluster_in_memory(group_consumer_session_timeout_ms=9_000) as service:
        assert (await service.heartbeat("a", 0)).session_timeout_ms == 9_000


@in_virtual_time
async def test_offsets_are_committed_and_fetched() -> None:
    async with cluster_in_memory() as service:
        request = wire.CommitOffsetsRequest(
            group_id=GROUP, member_epoch=-1, topics=[commit_topic({0: 5, 9: 5})]
        )
        (error,) = (await service.call(methods.COMMIT_OFFSETS, request)).errors
        assert (error.topic, error.partition) == ("orders", 9)
        assert error.error.code == errors.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        assert await service.fetch(0, 1) == [5, -1]

        everything = wire.FetchOffsetsRequest(group_id=GROUP, all_partitions=True)
        (fetched,) = (await service.call(methods.FETCH_OFFSETS, everything)).offsets
        assert (fetched.topic, fetched.topic_id, fetched.partition) == ("orders", "orders-id", 0)
        assert not fetched.HasField("error")


@in_virtual_time
async def test_offsets_of_a_transaction_wait_for_the_marker() -> None:
    async with cluster_in_memory() as service:
        await service.txn_commit({0: 8})
        assert await service.fetch(0) == [-1]
        (unstable,) = await service.fetch(0, require_stable=True)
        assert unstable == "1 open transactions may move partition 0 of topic 'orders'"
        await service.marker(COMMIT)
        assert await service.fetch(0, require_stable=True) == [8]
        await service.txn_commit({0: 9}, epoch=1)
        await service.marker(ABORT, epoch=1)
        assert await service.fetch(0, require_stable=True) == [8]


@in_virtual_time
async def test_a_partition_is_no_participant_here() -> None:
    async with cluster_in_memory() as service:
        topic = participants.TopicPartitions(topic_id="orders-id", partitions=[3])
        marker = participants.TxnMarker(
            producer_id=PRODUCER_ID,
            result=COMMIT,
            participants=participants.Participants(topics=[topic], group_ids=[GROUP]),
        )
        request = participants.WriteTxnMarkersRequest(cluster_id="cluster", markers=[marker])
        response = await service.call(methods.GROUP_WRITE_TXN_MARKERS, request)
        (error,) = response.results[0].errors
        assert error.participant.topic_partition.partition == 3
        assert error.error.code == errors.ERROR_CODE_INVALID_REQUEST


@in_virtual_time
async def test_every_group_that_refused_a_marker_is_named() -> None:
    async with cluster_in_memory() as service:
        markers = [
            participants.TxnMarker(
                producer_id=PRODUCER_ID,
                result=COMMIT,
                coordinator_epoch=epoch,
                participants=participants.Participants(group_ids=[GROUP]),
            )
            for epoch in (2, 1)
        ]
        for marker, expected in zip(markers, ([], [GROUP]), strict=True):
            request = participants.WriteTxnMarkersRequest(cluster_id="cluster", markers=[marker])
            response = await service.call(methods.GROUP_WRITE_TXN_MARKERS, request)
            (result,) = response.results
            assert [error.participant.group_id for error in result.errors] == expected


@in_virtual_time
async def test_groups_are_listed_and_described() -> None:
    async with cluster_in_memory() as service:
        await two_members(service)
        await service.call(
            methods.TXN_OFFSET_COMMIT,
            wire.TxnOffsetCommitRequest(
                transactional_id="t",
                producer_id=PRODUCER_ID,
                group_id=GROUP,
                member_id="a",
                member_epoch=2,
                topics=[commit_topic({1: 7, 0: 8})],
            ),
        )
        listed = await service.call(methods.LIST_GROUPS, wire.ListGroupsRequest())
        assert [(each.group_id, each.member_count) for each in listed.groups] == [(GROUP, 2)]
        empty = wire.ListGroupsRequest(states=[wire.GROUP_STATE_EMPTY])
        assert not (await service.call(methods.LIST_GROUPS, empty)).groups

        request = wire.DescribeGroupsRequest(group_ids=["nobody's", GROUP])
        unknown, group = (await service.call(methods.DESCRIBE_GROUPS, request)).groups
        assert unknown.group_id == "nobody's"
        assert unknown.error.code == errors.ERROR_CODE_GROUP_ID_NOT_FOUND
        assert group.state == wire.GROUP_STATE_STABLE
        assert (group.group_epoch, group.assignor) == (2, "uniform")
        assert [member.member_id for member in group.members] == ["a", "b"]
        assert list(group.members[1].assignment[0].partitions) == [2, 3]
        (pending,) = group.pending
        assert (pending.producer_id, pending.producer_epoch) == (PRODUCER_ID, 0)
        assert [partition.committed_offset for partition in pending.topics[0].partitions] == [8, 7]


@in_virtual_time
async def test_a_member_is_described_with_its_last_heartbeat() -> None:
    request = wire.DescribeGroupsRequest(group_ids=[GROUP])
    async with cluster_in_memory() as service:
        await service.heartbeat("a", 0)
        await after(1_500)
        (group,) = (await service.call(methods.DESCRIBE_GROUPS, request)).groups
        (member,) = group.members
        assert member.principal == "User:ANONYMOUS"
        assert member.heartbeat_age_ms == 1_500
        await service.heartbeat("a", 1)
        (group,) = (await service.call(methods.DESCRIBE_GROUPS, request)).groups
        assert group.members[0].heartbeat_age_ms == 0
    coordinators = Coordinators(MemoryNetwork())
    coordinators.serve()
    async with running(coordinators, service.volume) as service:
        (group,) = (await service.call(methods.DESCRIBE_GROUPS, request)).groups
        assert group.members[0].member_id == "a"
        assert not group.members[0].HasField("heartbeat_age_ms"), "it has not spoken since"


@in_virtual_time
async def test_a_member_is_described_with_the_time_since_its_last_poll() -> None:
    request = wire.DescribeGroupsRequest(group_ids=[GROUP])

    async def age_ms(service: GroupService) -> int | None:
        (group,) = (await service.call(methods.DESCRIBE_GROUPS, request)).groups
        (member,) = group.members
        return member.poll_age_ms if member.HasField("poll_age_ms") else None

    async with cluster_in_memory() as service:
        await service.heartbeat("a", 0)
        assert await age_ms(service) is None, "the member does not say"
        await service.heartbeat("a", 1, poll_age_ms=0)
        await after(1_500)
        assert await age_ms(service) == 1_500
        await service.heartbeat("a", 1, poll_age_ms=20_000)
        await after(500)
        assert await age_ms(service) == 20_500
        for wrong in (-1, 1 << 31, (1 << 63) - 1):
            with pytest.raises(InvalidRequestError, match=f"poll_age_ms is {wrong}"):
                await service.heartbeat("a", 1, poll_age_ms=wrong)
        assert await age_ms(service) == 20_500


@in_virtual_time
async def test_wrong_fields_are_refused_before_anything_is_decided() -> None:
    async with cluster_in_memory() as service:
        records = service.volume.content.next_offset
        with pytest.raises(InvalidRequestError, match="member_id is empty"):
            await service.heartbeat("", 0)
        with pytest.raises(InvalidRequestError, match="partition is -1"):
            await service.txn_commit({-1: 0})
        assert service.volume.content.next_offset == records


# -- time ----------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_silent_member_is_removed() -> None:
    async with cluster_in_memory(group_consumer_session_timeout_ms=10_000) as service:
        await two_members(service)
        await after(9_000)
        await service.heartbeat("b", 2, 2, 3)
        await after(2_000)
        answer = await service.heartbeat("b", 2, 2, 3)
        assert answer.member_epoch == 3
        assert assigned(answer) == [0, 1, 2, 3]


@in_virtual_time
async def test_a_member_that_speaks_while_another_one_is_removed_stays() -> None:
    async with cluster_in_memory(group_consumer_session_timeout_ms=10_000) as service:
        await two_members(service)
        service.volume.hold()
        while not service.volume.unsynced:
            await after(100)
        speaking = asyncio.create_task(service.heartbeat("b", 2, 2, 3))
        await after(100)
        service.volume.release()
        assert (await speaking).member_epoch == 3
        await after(2_000)
        assert assigned(await service.heartbeat("b", 3, 2, 3)) == [0, 1, 2, 3]


@in_virtual_time
async def test_a_member_that_gives_nothing_up_is_removed() -> None:
    async with cluster_in_memory() as service:
        await service.heartbeat("a", 0, rebalance_timeout_ms=3_000)
        await service.heartbeat("b", 0)
        for _ in range(5):
            await service.heartbeat("a", 1, 0, 1, 2, 3, rebalance_timeout_ms=3_000)
            await after(1_000)
            if (await service.heartbeat("b", 2)).member_epoch == 3:
                break
        with pytest.raises(UnknownMemberIdError):
            await service.heartbeat("a", 2, 0, 1, 2, 3)


@in_virtual_time
async def test_a_restart_gives_every_member_a_fresh_session() -> None:
    coordinators, volume = Coordinators(MemoryNetwork()), MemoryVolume()
    coordinators.serve()
    async with running(coordinators, volume, group_consumer_session_timeout_ms=10_000) as first:
        await two_members(first)
        await after(9_000)
    async with running(coordinators, volume, group_consumer_session_timeout_ms=10_000) as second:
        await after(9_000)
        assert not (await second.heartbeat("a", 2, 0, 1)).HasField("assignment")
        await after(2_000)
        assert assigned(await second.heartbeat("a", 2, 0, 1)) == [0, 1, 2, 3]
    await coordinators.network.close()


@in_virtual_time
async def test_members_are_not_removed_because_the_process_was_stopped() -> None:
    async with cluster_in_memory(group_consumer_session_timeout_ms=10_000) as service:
        await two_members(service)
        await after(5_000)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(60_000)
        await after(4_000)
        assert not (await service.heartbeat("a", 2, 0, 1)).HasField("assignment")
        await after(2_000)
        assert assigned(await service.heartbeat("a", 2, 0, 1)) == [0, 1, 2, 3]


# -- restarts and metadata -----------------------------------------------------------------------


@in_virtual_time
async def test_a_restart_forgets_nothing() -> None:
    coordinators, volume = Coordinators(MemoryNetwork()), MemoryVolume()
    coordinators.serve()
    async with running(coordinators, volume) as first:
        await first.txn_commit({0: 8})
        await first.marker(COMMIT)
        await first.txn_commit({1: 9}, epoch=1)
        await two_members(first)
    async with running(coordinators, volume) as second:
        assert await second.fetch(0, require_stable=True) == [8]
        await second.marker(COMMIT, epoch=1)
        assert await second.fetch(1, require_stable=True) == [9]
        assert not (await second.heartbeat("b", 2, 2, 3)).HasField("assignment")
    claims = [registration.claim_epoch for registration in coordinators.controller.registrations]
    assert claims == [1, 2]
    assert {registration.role for registration in coordinators.controller.registrations} == {
        cluster.SERVICE_ROLE_GROUP_COORDINATOR
    }
    assert volume.content.cluster_id == "cluster"
    await coordinators.network.close()


@in_virtual_time
async def test_offsets_of_deleted_topics_are_forgotten() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.topics({"orders": 4, "many": 2_500})
        await after(1_000)
        topic = commit_topic(dict.fromkeys(range(2_500), 1))
        topic.topic = "many"
        commit = wire.CommitOffsetsRequest(group_id=GROUP, member_epoch=-1, topics=[topic])
        assert not (await service.call(methods.COMMIT_OFFSETS, commit)).errors
        service.coordinators.topics({"orders": 4})
        await after(1_000)
        listed = await service.call(methods.LIST_GROUPS, wire.ListGroupsRequest())
        assert not listed.groups


@in_virtual_time
async def test_members_markers_and_expiry_go_on_when_the_disk_is_nearly_full() -> None:
    async with cluster_in_memory(group_consumer_session_timeout_ms=10_000) as service:
        await two_members(service)
        service.volume.free_bytes = 1
        commit = wire.CommitOffsetsRequest(
            group_id="readers", member_epoch=-1, topics=[commit_topic({0: 1})]
        )
        with pytest.raises(ThrottlingQuotaExceededError):
            await service.call(methods.COMMIT_OFFSETS, commit)
        await service.heartbeat("c", 0)
        await service.heartbeat("c", -1)
        await service.marker(ABORT)
        await after(12_000)
        with pytest.raises(UnknownMemberIdError):
            await service.heartbeat("a", 2, 0, 1)


@in_virtual_time
async def test_a_failed_journal_ends_the_service() -> None:
    async with cluster_in_memory() as service:
        service.volume.fail_next_write(applied=False)
        with pytest.raises(SemelError, match="journal failed"):
            await service.heartbeat("a", 0)
        assert service.app.failed.is_set()


@in_virtual_time
async def test_a_member_whose_client_went_away_while_it_joined_expires() -> None:
    """The journal has the member, although no member was told."""
    async with cluster_in_memory() as service:
        endpoint = service.app.handlers.find(methods.CONSUMER_GROUP_HEARTBEAT.path)
        assert endpoint is not None
        join = wire.ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="a",
            rebalance_timeout_ms=60_000,
            subscription=wire.Subscription(topics=["orders"]),
        )
        call = endpoint.handler(join, Call(origin=Origin(listener="default")))
        joining = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        joining.cancel()
        await asyncio.wait([joining])
        assert joining.cancelled()
        heard = await service.heartbeat("b", 0)
        assert assigned(heard) == []
        for _ in range(12):
            await after(5_000)
            heard = await service.heartbeat("b", heard.member_epoch)
        assert assigned(heard) == [0, 1, 2, 3]


@in_virtual_time
async def test_a_marker_without_a_waiter_is_written_when_a_caller_waits() -> None:
    async with cluster_in_memory() as service:
        await service.txn_commit({0: 5})
        begun = asyncio.get_running_loop().time()
        marking = asyncio.create_task(service.marker(COMMIT))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not marking.done()
        assert await service.fetch(0, require_stable=True) == [5]
        await marking

        await service.txn_commit({0: 6}, epoch=1)
        await service.marker(COMMIT, epoch=1, awaited=True)
        assert asyncio.get_running_loop().time() == begun

        await service.txn_commit({0: 7}, epoch=2)
        await service.marker(COMMIT, epoch=2)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(0.002, abs=0.0005)
