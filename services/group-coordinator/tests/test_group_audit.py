"""Requests of operators at a group coordinator stand in the controller's audit."""

import pytest
from google.protobuf.message import Message
from group_harness import GROUP
from group_service import GroupService, cluster_in_memory
from msgspec.structs import replace

from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.group.v1 import group_pb2 as wire
from semel_common.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InvalidRequestError,
    NetworkExceptionError,
    NotCoordinatorError,
    SemelError,
)
from semel_common.wire import methods
from semel_common.wire.status import IS_UNIMPLEMENTED
from semel_runtime.server.calls import Call
from semel_runtime.testing.virtual_time import in_virtual_time

ADA = outcomes.Operator(name="ada", reason="reads again")


def commit(offset: int, operator: outcomes.Operator | None = None) -> wire.CommitOffsetsRequest:
    """Put partition 0 there, as a consumer without a group's membership does, or an operator."""
    partition = wire.OffsetCommitPartition(partition=0, committed_offset=offset)
    topic = wire.OffsetCommitTopic(topic="orders", partitions=[partition])
    return wire.CommitOffsetsRequest(
        group_id=GROUP, member_epoch=-1, topics=[topic], operator=operator
    )


def deletion() -> wire.DeleteOffsetsRequest:
    topic = wire.OffsetFetchTopic(topic="orders", partitions=[0])
    return wire.DeleteOffsetsRequest(group_id=GROUP, topics=[topic], operator=ADA)


def noted(service: GroupService) -> list[str]:
    """Return the audit, as the action and reason of a request, or the number and end of one."""
    return [
        f"{each.number} {each.end}" if each.HasField("number") else f"{each.action} {each.reason}"
        for each in service.coordinators.controller.audit
    ]


@in_virtual_time
async def test_deletions_and_resets_are_noted_with_their_ends() -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(5, ADA))
        await service.call(methods.DELETE_OFFSETS, deletion())
        await service.call(
            methods.DELETE_GROUPS, wire.DeleteGroupsRequest(group_ids=[GROUP], operator=ADA)
        )
        with pytest.raises(GroupIdNotFoundError):
            await service.call(methods.DELETE_OFFSETS, deletion())
        assert noted(service) == [
            *("CommitOffsets reads again", "1 DONE"),
            *("DeleteOffsets reads again", "3 DONE"),
            *("DeleteGroups reads again", "5 DONE"),
            *("DeleteOffsets reads again", "7 GROUP_ID_NOT_FOUND"),
        ]
        (first, *_) = service.coordinators.controller.audit
        assert (first.operator, first.principal) == ("ada", "User:ANONYMOUS")
        assert first.what.startswith(f'group_id: "{GROUP}" member_epoch: -1 topics {{')
        assert "ada" not in first.what


@in_virtual_time
async def test_a_consumer_that_commits_leaves_no_entry() -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(5))
        assert noted(service) == []


@in_virtual_time
async def test_what_the_controller_did_not_note_is_not_carried_out() -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(5))
        service.coordinators.controller.audit_refusal = NotCoordinatorError("starting")
        with pytest.raises(CoordinatorNotAvailableError, match="DeleteOffsets is not carried out"):
            await service.call(methods.DELETE_OFFSETS, deletion())
        assert await service.fetch(0) == [5]


@in_virtual_time
async def test_a_controller_of_an_older_release_holds_up_no_request() -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(5))
        older = NetworkExceptionError("no such method", **{IS_UNIMPLEMENTED: 1})
        service.coordinators.controller.audit_refusal = older
        await service.call(methods.DELETE_OFFSETS, deletion())
        assert await service.fetch(0) == [-1]


@pytest.mark.parametrize(
    "refusal",
    [
        NetworkExceptionError("the connection was cut"),
        NotCoordinatorError("moved", **{IS_UNIMPLEMENTED: 1}),
    ],
    ids=str,
)
@in_virtual_time
async def test_a_controller_that_is_away_is_no_older_one(refusal: SemelError) -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(5))
        service.coordinators.controller.audit_refusal = refusal
        with pytest.raises(CoordinatorNotAvailableError):
            await service.call(methods.DELETE_OFFSETS, deletion())
        assert await service.fetch(0) == [5]


@in_virtual_time
async def test_an_end_that_is_not_noted_fails_no_request() -> None:
    async with cluster_in_memory() as service:
        await service.call(methods.COMMIT_OFFSETS, commit(5))
        controller = service.coordinators.controller
        real = controller.handlers.find(methods.NOTE_AUDIT.path)
        assert real is not None

        async def first_only(request: Message, call: Call) -> Message:
            if getattr(request, "end", ""):
                raise NetworkExceptionError("the connection was cut")
            return await real.handler(request, call)

        controller.handlers.wrap(
            lambda each: (
                replace(each, handler=first_only)
                if each.method.path == methods.NOTE_AUDIT.path
                else each
            )
        )
        await service.call(methods.DELETE_OFFSETS, deletion())
        assert noted(service) == ["DeleteOffsets reads again"]
        assert await service.fetch(0) == [-1]


@in_virtual_time
async def test_an_operator_without_bounds_is_refused() -> None:
    async with cluster_in_memory() as service:
        request = deletion()
        request.operator.reason = "x" * 1_001
        with pytest.raises(InvalidRequestError, match=r"operator\.reason"):
            await service.call(methods.DELETE_OFFSETS, request)
        assert noted(service) == []
