"""Answers that refuse the one thing that was asked for: the client goes on as with other errors."""

from collections.abc import Awaitable, Callable
from itertools import chain, repeat

import pytest
from google.protobuf.message import Message
from producer_harness import FakeCluster, open_client

from aiosemel import Admin, ClientOptions
from aiosemel.errors import NotCoordinatorError, RequestTimedOutError
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire import status

MOVED = status.to_value(NotCoordinatorError("it has moved"))
ID = transactions.TransactionalIdDescription
GROUP = group.GroupDescription
DELETED = group.DeletedGroup
Call = Callable[[Admin], Awaitable[object]]


def ids(entry: ID) -> Message:
    return transactions.DescribeTransactionsResponse(descriptions=[entry])


def groups(entry: GROUP) -> Message:
    return group.DescribeGroupsResponse(groups=[entry])


def deletions(entry: DELETED) -> Message:
    return group.DeleteGroupsResponse(groups=[entry])


ANSWERS = {
    "DescribeTransactions": (
        ids(ID(transactional_id="x", error=MOVED)),
        ids(ID(transactional_id="x")),
    ),
    "DescribeGroups": (
        groups(GROUP(group_id="x", error=MOVED)),
        groups(GROUP(group_id="x", state=group.GROUP_STATE_EMPTY)),
    ),
    "DeleteGroups": (
        deletions(DELETED(group_id="x", error=MOVED)),
        deletions(DELETED(group_id="x")),
    ),
}
"""By call: the answer of an instance that is not in charge, and of the one that is."""
CASES: dict[str, tuple[str, Call]] = {
    "describe an id": ("DescribeTransactions", lambda admin: admin.describe_transactions("x")),
    "describe a group": ("DescribeGroups", lambda admin: admin.describe_group("x")),
    "rehearse": ("DescribeGroups", lambda admin: admin.groups.delete("x", dry_run=True)),
    "delete a group": ("DeleteGroups", lambda admin: admin.groups.delete("x")),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_thing_that_has_moved_is_asked_for_again(case: str) -> None:
    fake = FakeCluster()
    name, call = CASES[case]
    moved, here = ANSWERS[name]
    answers = chain([moved], repeat(here))
    for address in ("coordinator:1", "group:1"):
        fake.answering[address, name] = lambda _: next(answers)
    async with open_client(fake) as client:
        await call(client.admin())


@pytest.mark.parametrize("case", CASES)
async def test_a_thing_that_moves_for_too_long_is_said_to_be_late(case: str) -> None:
    fake = FakeCluster()
    name, call = CASES[case]
    moved, _ = ANSWERS[name]
    for address in ("coordinator:1", "group:1"):
        fake.canned[address, name] = moved
    async with open_client(fake, ClientOptions(default_api_timeout_ms=2_000)) as client:
        with pytest.raises(RequestTimedOutError, match="it has moved"):
            await call(client.admin())
