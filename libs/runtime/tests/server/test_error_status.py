"""Errors inside an answer, as clients get them that ask for one thing at a time."""

import grpc
import pytest
from server_harness import UNARY, serving

from semel.broker.v1.broker_pb2 import FetchPartitionResult, FetchResponse
from semel.common.v1.records_pb2 import Record
from semel.group.v1 import group_pb2 as group
from semel_common.errors import (
    GroupAuthorizationFailedError,
    NotLeaderOrFollowerError,
    SemelError,
    UnknownTopicIdError,
)
from semel_common.wire import status
from semel_common.wire.methods import FETCH_OFFSETS
from semel_runtime.server.calls import Call
from semel_runtime.server.item_errors import raise_first

REFUSED = group.FetchedOffset(
    topic="orders",
    error=status.to_value(UnknownTopicIdError("topic id x is not known", topic_id="x")),
)
FOUND = group.FetchedOffset(topic="orders", committed_offset=7)


async def fetch_offsets(
    answered: group.FetchedOffset, metadata: tuple[tuple[str, str], ...]
) -> group.FetchedOffset:
    """Make a call as any client makes it."""
    answers = {"FetchOffsets": group.FetchOffsetsResponse(offsets=[answered])}
    async with (
        serving(never, answers=answers) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        call: grpc.aio.UnaryUnaryMultiCallable[
            group.FetchOffsetsRequest, group.FetchOffsetsResponse
        ] = channel.unary_unary(
            FETCH_OFFSETS.path,
            group.FetchOffsetsRequest.SerializeToString,
            group.FetchOffsetsResponse.FromString,
        )
        response = await call(group.FetchOffsetsRequest(), metadata=metadata, timeout=50)
    return response.offsets[0]


async def never(_: group.TxnOffsetCommitRequest, __: Call) -> group.TxnOffsetCommitResponse:
    """Commit nothing."""
    raise AssertionError


async def test_an_error_inside_an_answer_fails_the_call_that_asks_for_it() -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await fetch_offsets(REFUSED, (("semel-errors", "status"),))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    error = status.from_rpc_error(caught.value, "127.0.0.1:1")
    assert isinstance(error, UnknownTopicIdError)
    assert (error.message, error.details) == ("topic id x is not known", {"topic_id": "x"})


@pytest.mark.parametrize("metadata", [(), (("semel-errors", "inside"),)], ids=["none", "other"])
async def test_an_error_inside_an_answer_stays_there_for_all_others(
    metadata: tuple[tuple[str, str], ...],
) -> None:
    assert await fetch_offsets(REFUSED, metadata) == REFUSED


async def test_an_answer_without_an_error_is_the_same_with_errors_as_status() -> None:
    assert await fetch_offsets(FOUND, (("semel-errors", "status"),)) == FOUND


def partition(error: SemelError | None) -> FetchPartitionResult:
    """Return what one partition has in an answer."""
    return FetchPartitionResult(
        error=None if error is None else status.to_value(error), records=[Record(value=b"v")]
    )


def test_of_several_errors_the_first_one_counts() -> None:
    results = [
        partition(None),
        partition(NotLeaderOrFollowerError("led by 2")),
        partition(GroupAuthorizationFailedError("no")),
    ]
    with pytest.raises(NotLeaderOrFollowerError, match="led by 2"):
        raise_first(FetchResponse(partitions=results))


def test_no_error_is_none() -> None:
    raise_first(FetchResponse(partitions=[partition(None)]))


@pytest.mark.parametrize("character", ["x", "é", "😀", "%"])
async def test_an_error_that_names_a_long_text_arrives_as_itself(character: str) -> None:
    """gRPC drops metadata of more than 8 KiB, and the call with it."""

    async def refuse(_: group.TxnOffsetCommitRequest, __: Call) -> group.TxnOffsetCommitResponse:
        raise UnknownTopicIdError(f"topic {character * 16_000}", topic_id=character * 16_000)

    async with serving(refuse) as served:
        with pytest.raises(UnknownTopicIdError) as caught:
            await served.connection.call(UNARY, group.TxnOffsetCommitRequest(), timeout_ms=50_000)
    assert caught.value.message.startswith(f"topic {character * 100}")
    assert len(caught.value.details["topic_id"]) >= 100
