"""The console's pages of records, and of reasons why a consumer sees none."""

from collections.abc import AsyncIterator

import pytest
from web_console.console_stage import Stage, console_stage

from aiosemel import Consumer, ConsumerOptions, ConsumerRecord, OffsetReset, TopicPartition
from semel_console.insight.offset_views import Watermarks
from semel_console.views.blocks import Grid, Missing
from semel_console.views.record_views.message_view import (
    COMMITTED,
    UNCOMMITTED,
    ScannedRecords,
    WantedRecords,
    messages_page,
    record_row,
)

EARLIEST = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with console_stage() as made:
        await made.client.admin().create_topic("orders", partitions=1)
        yield made


async def fill(stage: Stage) -> None:
    """Write two plain records, an aborted one, and an open one."""
    producer = stage.client.producer()
    await producer.send_and_wait("orders", b"first", key=b"a", headers=[("trace", b"<i>")])
    await producer.send_and_wait("orders", b"\xff\x00", key=None)
    aborted = await stage.open_transaction("aborted", "orders", value=b"taken back")
    await aborted.abort()
    await stage.open_transaction("open", "orders", value=b"undecided")


async def test_a_reader_of_committed_records_sees_what_the_page_shows(stage: Stage) -> None:
    await fill(stage)
    page = await stage.page("/messages", topic="orders", partition=0)
    assert "first" in page.text
    assert "trace=<i>" in page.text
    assert "0xff00" in page.text
    assert "taken back" not in page.text
    assert "undecided" not in page.text
    assert "2 records shown" in page.text
    assert "--max-messages 50 --to-end" in page.text, "the command ends, as the page does"


async def test_open_and_aborted_records_are_shown_as_such(stage: Stage) -> None:
    await fill(stage)
    page = await stage.page("/messages", topic="orders", partition=0, isolation="read_uncommitted")
    states = [
        line for line in page.text.splitlines() if "taken back" in line or "undecided" in line
    ]
    assert [line.rpartition("-")[2] for line in states] == [
        "no: abortedaborted, epoch 0",
        "not yet: its transaction is openopen, epoch 0",
    ]
    assert page.link_to_writer("aborted")
    linked = await stage.browser.get(page.link_to_writer("open"))
    assert "It is open: it may still commit or abort." in linked.text


async def test_records_behind_an_open_transaction_are_shown_as_such(stage: Stage) -> None:
    await fill(stage)
    await stage.client.producer().send_and_wait("orders", b"behind", partition=0)
    aborted = await stage.open_transaction("aborted", "orders", value=b"given up")
    await aborted.abort()
    page = await stage.until(
        "no: abortedaborted, epoch 2",
        "/messages",
        topic="orders",
        partition=0,
        isolation="read_uncommitted",
    )
    lines = page.text.splitlines()
    (behind,) = (line for line in lines if "behind" in line and "open transaction" in line)
    assert behind.endswith("not yet: behind an open transaction-")
    assert any("first" in line and line.endswith("yes-") for line in lines)


def test_a_broker_that_tells_no_outcome_is_said_to_tell_none() -> None:
    states = [_state_of(3, isolation) for isolation in (COMMITTED, UNCOMMITTED)]
    assert states == ["yes", "the broker's release does not tell"]
    assert _state_of(4, UNCOMMITTED) == "not yet: behind an open transaction"


def _state_of(offset: int, isolation: str) -> str:
    """Return how a record is shown whose outcome is not known, if 4 is the last stable offset."""
    wanted = WantedRecords(
        at=TopicPartition("orders", 0), start=0, isolation=isolation, text="", one=False
    )
    record = ConsumerRecord("orders", 0, offset, 1, None, b"value")
    scanned = ScannedRecords(records=[record], writers={}, scanned=1, next_offset=5)
    marks = Watermarks(start=0, stable_end=4, end=5)
    return record_row(record, wanted, scanned, marks, 100).cells[-2].text


async def test_a_record_outside_of_transactions_names_none(stage: Stage) -> None:
    producer = await stage.open_transaction("app", "orders")
    await producer.commit(wait_until_visible=True)
    await stage.client.producer().send_and_wait("orders", b"plain", partition=0)
    page = await stage.page("/messages", topic="orders", partition=0)
    assert "plain" in page.text
    assert page.text.count("app, epoch 0") == 1


def test_a_record_of_a_transaction_that_no_coordinator_tells_names_its_producer() -> None:
    record = ConsumerRecord("orders", 0, 3, 1, None, b"value")
    wanted = WantedRecords(
        at=TopicPartition("orders", 0), start=0, isolation=COMMITTED, text="", one=False
    )
    missing = Missing(what="The transaction", why="its coordinator does not answer")
    scanned = ScannedRecords(
        records=[record],
        writers={3: ((1 << 63) - 1, 7)},
        transactions={((1 << 63) - 1, 7): missing},
        scanned=1,
        next_offset=4,
    )
    page = messages_page(wanted, Watermarks(start=0, stable_end=4, end=4), scanned)
    (grid,) = (each for each in page.sections[0].blocks if isinstance(each, Grid))
    assert grid.rows[0].cells[-1].text == "producer id 9223372036854775807, epoch 7"


async def test_a_reader_at_the_last_stable_offset_is_told_so(stage: Stage) -> None:
    await fill(stage)
    marks = await stage.page("/messages", topic="orders", partition=0, start=4)
    assert "A reader of committed records stands at the last stable offset." in marks.text
    assert "/partition?topic=orders&partition=0" in marks.links


async def test_a_filter_says_how_far_it_has_looked(stage: Stage) -> None:
    producer = stage.client.producer()
    for number in range(60):
        await producer.send("orders", b"value %d" % number)
    await producer.flush()
    page = await stage.page("/messages", topic="orders", partition=0, start=0, text="value 59")
    assert "1 record shown, 60 records read up to offset 60." in page.text
    none = await stage.page("/messages", topic="orders", partition=0, start=0, text="nothing")
    assert "0 records shown, 60 records read up to offset 60." in none.text
    first = await stage.page("/messages", topic="orders", partition=0, start=0)
    assert "From offset 50 on" in first.text


async def test_a_large_value_is_shown_in_part(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"x" * 100_000)
    page = await stage.page("/messages", topic="orders", partition=0)
    assert "… 99,840 bytes more" in page.text
    alone = await stage.page("/messages", topic="orders", partition=0, start=0, one=1)
    assert "… 95,904 bytes more" in alone.text


async def member(stage: Stage) -> Consumer:
    """Return a member of the group that has read and committed everything that it can see."""
    consumer = stage.client.consumer("reports", EARLIEST)
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        await consumer.poll(timeout_ms=200)
    await consumer.poll(timeout_ms=500)
    await consumer.commit()
    return consumer


async def why(stage: Stage, group: str = "reports", topic: str = "orders") -> str:
    """Return the page of reasons."""
    return (await stage.page("/why", group=group, topic=topic)).text


async def test_a_group_and_a_topic_that_do_not_exist_are_the_first_causes(stage: Stage) -> None:
    assert "there is no group 'reports'" in await why(stage)
    assert "there is no topic 'nothing'" in await why(stage, topic="nothing")


async def test_a_group_without_members_reads_nothing(stage: Stage) -> None:
    consumer = await member(stage)
    await consumer.close()
    assert "group 'reports' has no members" in await why(stage)


async def test_a_topic_that_no_member_has_subscribed_to_is_not_read(stage: Stage) -> None:
    await member(stage)
    await stage.client.admin().create_topic("other", partitions=1)
    assert "no member of group 'reports' reads topic 'other'" in await why(stage, topic="other")


async def test_a_group_that_has_read_everything_is_well(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"first")
    await member(stage)
    assert "the group has read everything" in await why(stage)


async def test_a_group_at_the_last_stable_offset_is_told_the_holder(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"first")
    await member(stage)
    await stage.open_transaction("nightly", "orders")
    page = await stage.page("/why", group="reports", topic="orders")
    assert "transaction 'nightly' (epoch 0, open for" in page.text
    assert "holds the last stable offset, 1: 1 offset behind it cannot be read yet" in page.text
    assert "semel transactions abort nightly" in page.text
    assert "semel why reports orders" in page.text
    assert page.link_to_writer("nightly")


async def test_records_that_a_member_has_not_taken_are_counted(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"first")
    await member(stage)
    for number in range(3):
        await stage.client.producer().send_and_wait("orders", b"%d" % number)
    assert "3 records can be read: member" in await why(stage)


async def test_aborted_records_are_no_lag(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"first")
    await member(stage)
    aborted = await stage.open_transaction("aborted", "orders")
    await aborted.abort()
    text = "lie only aborted records and markers"
    await stage.until(text, "/why", group="reports", topic="orders")


async def test_an_offset_below_the_log_start_is_named(stage: Stage) -> None:
    producer = stage.client.producer()
    await producer.send_and_wait("orders", b"first")
    await member(stage)
    for number in range(3):
        await producer.send_and_wait("orders", b"%d" % number)
    await stage.client.admin().delete_records({("orders", 0): 3})
    assert "the records at the group's offset 1 are deleted: the log begins at 3" in await why(
        stage
    )
