"""The admin client's lists of transactions: their order, and parts of them."""

import pytest
from google.protobuf.message import Message
from producer_harness import FakeCluster, open_client

from aiosemel import TransactionOrder
from aiosemel.errors import InvalidRequestError
from semel.coordinator.v1 import transactions_pb2 as transactions


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(coordinators=2)


def listed_as(name: str, start: int, *, position: bool = True) -> transactions.TransactionListing:
    return transactions.TransactionListing(
        transactional_id=name,
        state=transactions.TRANSACTION_STATE_ONGOING,
        start_time_ms=start,
        position=f"{start}-0-{name}" if position else "",
    )


def page(
    *entries: transactions.TransactionListing, more: str = ""
) -> transactions.ListTransactionsResponse:
    return transactions.ListTransactionsResponse(transactions=entries, next_page_token=more)


async def test_the_first_entries_of_all_coordinators_are_listed_by_age(fake: FakeCluster) -> None:
    """No coordinator is asked for a page behind the limit."""
    first = page(listed_as("d", 2), listed_as("a", 5), more="more")
    fake.canned["coordinator:1", "ListTransactions"] = first
    second = page(listed_as("c", 1), listed_as("b", 0))
    fake.canned["coordinator1:1", "ListTransactions"] = second
    async with open_client(fake) as client:
        listed = await client.admin().list_transactions(
            order=TransactionOrder.OLDEST_FIRST, limit=2, behind="1-0-x"
        )
    assert [each.transactional_id for each in listed] == ["c", "d"]
    assert listed[-1].position == "2-0-d"
    asked = fake.asked(transactions.ListTransactionsRequest)
    assert [(each.limit, each.behind, each.order) for each in asked] == [
        (2, "1-0-x", transactions.LIST_TRANSACTIONS_ORDER_OLDEST_FIRST)
    ] * 2


async def test_a_limit_below_one_is_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidRequestError, match="limit is 0"):
            await client.admin().list_transactions(limit=0)


async def test_an_older_coordinator_gives_its_whole_list_which_is_put_in_order(
    fake: FakeCluster,
) -> None:
    """It knows no order, so its oldest transaction may be on its last page."""
    whole = [
        page(listed_as("b", 9, position=False), more="t"),
        page(listed_as("z", 3, position=False)),
    ]

    def older(request: Message) -> Message:
        assert isinstance(request, transactions.ListTransactionsRequest)
        return whole[bool(request.page_token)]

    other = page(listed_as("c", 5))
    fake.canned["coordinator1:1", "ListTransactions"] = other
    fake.answering["coordinator:1", "ListTransactions"] = older
    async with open_client(fake) as client:
        order = TransactionOrder.OLDEST_FIRST
        listed = await client.admin().list_transactions(order=order, limit=1)
        assert [each.transactional_id for each in listed] == ["z"]
        with pytest.raises(InvalidRequestError, match=r"behind is .*older release"):
            await client.admin().list_transactions(order=order, limit=1, behind="3-0-z")
