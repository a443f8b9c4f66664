"""The tail of a topic: bounded, the newest record on top, honest about what it has dropped."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from web_console.console_stage import Stage, console_stage

from semel_console.views.record_views.message_view import RECORDS_MAX
from semel_console.views.record_views.tail_view import PARTITIONS_MAX


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with console_stage() as made:
        await made.client.admin().create_topic("orders", partitions=2)
        yield made


async def begin(stage: Stage, **parameters: str | int) -> str:
    """Return the address of a tail that begins now."""
    answer = await stage.browser.get("/tail", params={"topic": "orders", **parameters})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def send(stage: Stage, *values: bytes, partition: int = 0, at_ms: int | None = None) -> None:
    """Write records, one batch each."""
    for value in values:
        await stage.client.producer().send_and_wait(
            "orders", value, partition=partition, timestamp_ms=at_ms
        )


async def test_a_tail_begins_at_the_ends_of_the_logs_and_its_address_keeps_that(
    stage: Stage,
) -> None:
    await send(stage, b"too early", partition=1)
    address = await begin(stage)
    assert address == "/tail?topic=orders&since=0-0_1-1"
    page = await stage.page(address)
    assert "Records appear here as they come." in page.text
    assert "semel consume orders" in page.text
    await send(stage, b"after", partition=1)
    page = await stage.page(address)
    assert "too early" not in page.text
    assert "1 record came since the tail has begun; none was dropped." in page.text
    assert "/messages?topic=orders&partition=1&start=1&isolation=read_committed&one=1" in page.links


async def test_the_newest_record_is_on_top_and_each_partition_keeps_its_order(
    stage: Stage,
) -> None:
    address = await begin(stage)
    await send(stage, b"value-1", at_ms=1_000)
    await send(stage, b"value-3", partition=1, at_ms=3_000)
    await send(stage, b"value-4", b"value-2", at_ms=2_000)
    text = (await stage.page(address)).text
    found = sorted(range(1, 5), key=lambda number: text.index(f"value-{number}"))
    assert found == [3, 2, 4, 1]


async def test_what_does_not_fit_is_dropped_and_counted(stage: Stage) -> None:
    address = await begin(stage, partition=0)
    await send(stage, *(b"value-%03d" % number for number in range(RECORDS_MAX + 7)))
    text = (await stage.page(address)).text
    assert f"{RECORDS_MAX + 7} records came since the tail has begun" in text
    assert f"the newest {RECORDS_MAX} are shown, 7 older ones were dropped." in text
    assert "value-006" not in text
    assert text.index("value-056") < text.index("value-007")


async def test_aborted_and_open_records_come_only_where_they_are_asked_for(stage: Stage) -> None:
    committed, everything = (
        await begin(stage, partition=0),
        await begin(stage, partition=0, isolation="read_uncommitted"),
    )
    aborted = await stage.open_transaction("aborted", "orders", value=b"taken back")
    await aborted.abort()
    await stage.open_transaction("open", "orders", value=b"undecided")
    page = await stage.page(committed)
    assert "0 records came" in page.text
    assert "undecided" not in page.text
    page = await stage.until("no: aborted", everything)
    assert "2 records came" in page.text
    assert "not yet: its transaction is open" in page.text
    assert page.link_to_writer("open")
    assert "semel consume orders --partition 0 --isolation read_uncommitted" in page.text


async def test_a_page_of_large_records_stays_small_and_counts_what_it_leaves_out(
    stage: Stage,
) -> None:
    address = await begin(stage)
    await send(stage, *(b"<&" * 5_000 for _ in range(RECORDS_MAX)))
    text = (await stage.page(address)).text
    assert "older ones were dropped" in text or "none was dropped" in text
    assert "9,840 bytes more" in text


async def test_a_topic_of_many_partitions_is_followed_in_part(stage: Stage) -> None:
    await stage.client.admin().create_topic("wide", partitions=PARTITIONS_MAX + 1)
    answer = await stage.browser.get("/tail", params={"topic": "wide"})
    page = await stage.page(answer.headers["location"])
    assert f"The first {PARTITIONS_MAX} of {PARTITIONS_MAX + 1} partitions" in page.text
    answer = await stage.browser.get("/tail", params={"topic": "wide", "partition": PARTITIONS_MAX})
    assert answer.headers["location"].endswith(f"&since={PARTITIONS_MAX}-0")


async def test_a_lost_broker_takes_its_partitions_away_alone() -> None:
    async with console_stage(brokers=2) as stage:
        await stage.client.admin().create_topic("orders", partitions=2)
        topic = await stage.client.admin().describe_topic("orders")
        lost = next(each.partition for each in topic.partitions if each.leader_id == 1)
        address = await begin(stage)
        await send(stage, b"here", partition=1 - lost)
        await stage.cluster.stop_service("broker-1")
        await shows(stage, address, "here", "broker-1 does not answer")


async def shows(stage: Stage, address: str, *texts: str) -> None:
    """Load a page until it has all texts: on a busy machine, a service may answer too late."""
    async with asyncio.timeout(60):
        while True:
            page = await stage.page(address)
            if all(text in page.text for text in texts):
                return


@pytest.mark.parametrize("since", ["x", "0", "0-", "-1", "0-1_", "0-²", f"0-{1 << 63}"])
async def test_a_begin_that_is_none_is_refused(stage: Stage, since: str) -> None:
    page = await stage.page("/tail", status=400, topic="orders", since=since)
    assert "since is" in page.text


async def test_a_topic_or_partition_that_does_not_exist_is_refused(stage: Stage) -> None:
    await stage.page("/tail", status=404, topic="none")
    await stage.page("/tail", status=400, topic="orders", partition=2)
