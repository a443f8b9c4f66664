"""The console while one service is away: it names the service, and shows all that others know."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping

import pytest
from html_check import read_page
from web_console.console_stage import WAIT_MAX_S, Stage, console_stage

from aiosemel import ConsumerOptions, OffsetReset
from semel_console.pages import PAGES


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with console_stage() as made:
        await made.client.admin().create_topic("orders", partitions=2)
        yield made


OWN_PAGES: Mapping[str, dict[str, str | int]] = {
    "/": {},
    "/audit": {},
    "/cluster": {},
    "/group": {"id": "reports"},
    "/groups": {},
    "/history": {},
    "/messages": {"topic": "orders", "partition": 0},
    "/partition": {"topic": "orders", "partition": 0},
    "/prepared": {},
    "/rules": {},
    "/search": {"q": "nothing-has-this-name"},
    "/tail": {"topic": "orders", "since": "0-0_1-0"},
    "/topic": {"name": "orders"},
    "/topics": {},
    "/transaction": {"transactional_id": "nightly", "epoch": 0},
    "/transactions": {},
    "/why": {"group": "reports", "topic": "orders"},
}
"""Every page that shows something, with its parameters."""
NAMED: Mapping[str, set[str]] = {
    "broker-0": {
        "/",
        "/group",
        "/messages",
        "/partition",
        "/tail",
        "/topic",
        "/transaction",
        "/why",
    },
    "group-coordinator-0": {"/", "/group", "/groups", "/search", "/why"},
    "coordinator-0": set(OWN_PAGES),
}
"""The pages that need a service."""


async def shown(stage: Stage, path: str) -> tuple[str, int]:
    """Return the text of a page and its status."""
    answer = await stage.browser.get(path, params=OWN_PAGES[path])
    return read_page(answer.text).text, answer.status_code


async def is_whole(stage: Stage, path: str) -> None:
    """Assert that a page lacks nothing."""
    text, status = await shown(stage, path)
    assert status == 200, f"{path}: {text}"
    assert "cannot be shown" not in text, f"{path}: {text}"


async def names_the_lost(stage: Stage, path: str, lost: str) -> None:
    """Assert that a page names the lost instance; a call that was under way has another error."""
    deadline = time.monotonic() + WAIT_MAX_S
    while not is_named(lost, (await shown(stage, path))[0]):
        assert time.monotonic() < deadline, f"{path} does not name {lost}"


def is_named(name: str, text: str) -> bool:
    """Whether a page says that an instance does not answer."""
    role, _, number = name.rpartition("-")
    said = (f"{name} does not answer", f"{name}: ", f"{role} {number} leads it: not done in time")
    return any(each in text for each in said)


@pytest.mark.slow
async def test_a_group_shows_its_lag_on_the_brokers_that_answer() -> None:
    async with console_stage(brokers=2) as stage:
        await stage.client.admin().create_topic("orders", partitions=2)
        described = await stage.client.admin().describe_topic("orders")
        leads = {each.partition: f"broker-{each.leader_id}" for each in described.partitions}
        assert len(set(leads.values())) == 2
        producer = stage.client.producer()
        for partition in leads:
            await producer.send_and_wait("orders", b"v", partition=partition)
        offsets = {("orders", partition): 0 for partition in leads}
        await stage.client.admin().groups.alter_offsets("reports", offsets)
        whole = await stage.page("/group", id="reports")
        assert "It has 2 visible records to read" in whole.text
        await stage.cluster.stop_service(leads[1])
        part = await stage.until("in 1 of 2 partitions", "/group", id="reports")
        assert "It has 1 visible record to read in 1 of 2 partitions" in part.text
        assert f"{leads[1]} does not answer" in part.text
        await stage.cluster.start_service(leads[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
async def test_a_lost_service_is_named_where_it_is_missing_and_takes_no_other_page_away(
    stage: Stage, name: str
) -> None:
    assert {*OWN_PAGES, "/action"} == set(PAGES)
    await stage.client.producer().send_and_wait("orders", b"first", partition=0)
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    consumer = stage.client.consumer("reports", options)
    consumer.subscribe(["orders"])
    await consumer.poll(timeout_ms=10_000)
    await consumer.commit()
    await stage.open_transaction("nightly", "orders")
    await stage.page("/cluster")  # The console has heard of the instances.
    await stage.cluster.stop_service(name)
    async with asyncio.TaskGroup() as group:
        for path in OWN_PAGES:
            check = (
                names_the_lost(stage, path, name) if path in NAMED[name] else is_whole(stage, path)
            )
            group.create_task(check)
    await stage.cluster.start_service(name)  # Closing clients would wait for the service.
