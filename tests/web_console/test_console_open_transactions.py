"""The page of an open transaction: which offsets of groups it is to commit."""

from collections.abc import AsyncIterator

import pytest
from web_console.console_stage import Stage, console_stage

from aiosemel import ConsumerGroupMetadata, TransactionalProducer

MANY = 18
ASKED: dict[str, str | int] = {"transactional_id": "nightly", "epoch": 0}
GROUP = ConsumerGroupMetadata(group_id="reports")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with console_stage() as made:
        await made.client.admin().create_topic("orders", partitions=MANY)
        yield made


async def holding(
    stage: Stage, transactional_id: str, offsets: dict[tuple[str, int], int]
) -> TransactionalProducer:
    """Open a transaction that holds these offsets."""
    producer = await stage.open_transaction(transactional_id, "orders", partition=1)
    await producer.send_offsets(offsets, GROUP)
    return producer


async def test_an_open_transaction_names_the_offsets_that_it_is_to_commit(stage: Stage) -> None:
    await holding(stage, "other", {("orders", 3): 33})
    producer = await holding(stage, "nightly", {("orders", 2): 7, ("orders", 0): 5})
    page = await stage.until("orders-0: 5, orders-2: 7", "/transaction", **ASKED)
    assert "Offsets to commit" in page.text
    assert "/group?id=reports" in page.links
    assert "orders-3" not in page.text
    assert "cannot be shown" not in page.text
    prepared = await producer.prepare()
    page = await stage.page("/transaction", parameters=ASKED)
    assert "It is prepared" in page.text
    assert "orders-0: 5, orders-2: 7" in page.text
    await stage.client.admin().complete_prepared(prepared, commit=True)
    page = await stage.until("it is committed", "/transaction", **ASKED)
    assert "Offsets to commit" not in page.text


async def test_of_many_offsets_the_first_ones_are_named(stage: Stage) -> None:
    await holding(stage, "nightly", {("orders", number): 1 for number in range(MANY)})
    page = await stage.until("and 2 more", "/transaction", **ASKED)
    assert "orders-15: 1, and 2 more" in page.text


async def test_a_lost_group_coordinator_takes_only_the_offsets_away(stage: Stage) -> None:
    await holding(stage, "nightly", {("orders", 0): 5})
    await stage.until("orders-0: 5", "/transaction", **ASKED)
    await stage.cluster.stop_service("group-coordinator-0")
    missing = "The offsets for group reports cannot be shown."
    page = await stage.until(missing, "/transaction", **ASKED)
    assert "first write to orders-1, offset 0" in page.text
    assert "group reports" in page.text
    await stage.cluster.start_service("group-coordinator-0")  # Closing clients would wait for it.
