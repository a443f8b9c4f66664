"""Many ids, and lists of all of them."""

import asyncio
from collections.abc import Iterable

from google.protobuf.message import Message

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import unary_line
from hostile.stage import Stage
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire.methods import INIT_PRODUCER_ID, LIST_GROUPS, LIST_TRANSACTIONS, Method
from semel_local.layout import Role

IDS = 2_000
LISTS = 200
BESIDE = 50
"""Calls that are under way at once."""


async def _many_ids(stage: Stage, sent: Sent) -> None:
    """Make transactional ids of the longest names, and list them all again and again."""
    coordinator = stage.target(Role.COORDINATOR).address
    inits = (
        transactions.InitProducerIdRequest(
            transactional_id=f"writer-{number}-".ljust(255, "x"),
            instance_id="attacker",
            init_number=1,
            transaction_timeout_ms=60_000,
        )
        for number in range(IDS)
    )
    await _ask_all(stage, coordinator, Caller.WRITER, INIT_PRODUCER_ID, inits, sent)
    lists = [transactions.ListTransactionsRequest()] * (LISTS // 10)
    await _ask_all(stage, coordinator, Caller.WRITER, LIST_TRANSACTIONS, lists, sent)
    sent.expect("OK")


async def _lists_of_nothing(stage: Stage, sent: Sent) -> None:
    """List the resources that a caller without any rule may not see."""
    groups = stage.target(Role.GROUP_COORDINATOR).address
    asked = [group.ListGroupsRequest()] * LISTS
    await _ask_all(stage, groups, Caller.STRANGER, LIST_GROUPS, asked, sent)
    coordinator = stage.target(Role.COORDINATOR).address
    lists = [transactions.ListTransactionsRequest()] * LISTS
    await _ask_all(stage, coordinator, Caller.STRANGER, LIST_TRANSACTIONS, lists, sent)
    sent.expect("OK")


async def _ask_all(
    stage: Stage,
    address: str,
    caller: Caller,
    method: Method[Message, Message],
    requests: Iterable[Message],
    sent: Sent,
) -> None:
    async with unary_line(stage, address, caller) as line:
        left = iter(requests)

        async def work() -> None:
            for request in left:
                sent.add(await line.ask(method, request), request.ByteSize())

        await asyncio.gather(*(work() for _ in range(BESIDE)))


ATTACKS = (
    Attack(
        name="many-ids",
        what="A writer makes thousands of transactional ids of the longest names, and lists them.",
        rpc="InitProducerId, ListTransactions",
        transport="unary",
        caller=Caller.WRITER,
        run=_many_ids,
        quick=False,
    ),
    Attack(
        name="lists-of-nothing",
        what="A caller without a rule lists groups and transactional ids all the time.",
        rpc="ListGroups, ListTransactions",
        transport="unary",
        caller=Caller.STRANGER,
        run=_lists_of_nothing,
    ),
)
