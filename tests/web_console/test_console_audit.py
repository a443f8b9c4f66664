"""The page of the audit, on a real cluster with requests of real operators."""

from collections.abc import AsyncIterator

import pytest
from web_console.console_stage import Stage, console_stage

from semel_broker.rpc import broker_service
from semel_console.views.audit_view import ACTIONS
from semel_coordinator.transactions.rpc.operators import auditor
from semel_group.rpc import group_service


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with console_stage() as made:
        await made.client.admin().create_topic("orders", partitions=1)
        yield made


async def fence(stage: Stage, transactional_id: str, reason: str) -> None:
    """Let an operator take an id away."""
    await stage.client.admin().operators.fence_producer(
        transactional_id, operator="ada", reason=reason
    )


def test_the_page_offers_every_action_that_is_written_down() -> None:
    services = (auditor, broker_service, group_service)
    noted = [name for service in services for name in service.AUDITED.values()]
    assert sorted(ACTIONS) == sorted(noted)


async def test_a_request_stands_there_with_its_caller_its_reason_and_its_end(stage: Stage) -> None:
    await stage.open_transaction("nightly", "orders")
    await fence(stage, "nightly", "its host is lost")
    page = await stage.until("done", "/audit", call="FenceProducer")
    for text in ("FenceProducer", "User:ANONYMOUS", "127.0.0.1", "ada", "its host is lost"):
        assert text in page.text
    assert 'transactional_id: "nightly"' in page.text
    assert "semel audit --action FenceProducer" in page.text
    assert "name:" not in page.text  # The topic was created by another action.
    assert "CreateTopics" in (await stage.page("/audit", call="CreateTopics")).text


@pytest.mark.parametrize(
    ("parameters", "command", "is_found"),
    [
        ({"principal": "User:ANONYMOUS"}, "semel audit --principal User:ANONYMOUS", True),
        ({"principal": "User:ada"}, "semel audit --principal User:ada", False),
        ({"address": "127.0.0.1"}, "semel audit --address 127.0.0.1", True),
        ({"address": "127.0.0"}, "semel audit --address 127.0.0", False),
        ({"period": "day"}, "semel audit --within 86400", True),
        ({"call": "DeleteAcls"}, "semel audit --action DeleteAcls", False),
        ({}, "semel audit", True),
    ],
)
async def test_an_address_keeps_a_filter_and_its_command_tells_the_same(
    stage: Stage, parameters: dict[str, str | int], command: str, *, is_found: bool
) -> None:
    page = await stage.page("/audit", parameters=parameters)
    assert command in page.text
    assert ('name: "orders"' in page.text) is is_found
    assert ("No request matches." in page.text) is not is_found


async def test_looks_at_records_stand_there_once_for_some_minutes(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"a value")
    assert "No request matches." in (await stage.page("/audit", call="Fetch")).text
    for path in ("/messages", "/messages", "/tail"):
        page = await stage.page(path, topic="orders", partition=0, since="0-0")
        assert "a value" in page.text
    page = await stage.until("done", "/audit", call="Fetch")
    assert page.text.count("to see records of orders-0 in the console") == 1
    assert "User:ANONYMOUS" in page.text


async def test_no_record_is_shown_whose_look_the_audit_cannot_have(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"a value")
    await stage.page("/partition", topic="orders", partition=0)  # It learns of the topic.
    await stage.cluster.stop_service("coordinator-0")
    answer = await stage.browser.get("/messages", params={"topic": "orders", "partition": 0})
    assert "a value" not in answer.text
    await stage.cluster.start_service("coordinator-0")
    assert "a value" in (await stage.until("a value", "/messages?topic=orders&partition=0")).text


async def test_a_reset_of_a_group_stands_there(stage: Stage) -> None:
    await stage.client.admin().groups.alter_offsets(
        "reports", {("orders", 0): 0}, operator="ada", reason="read it again"
    )
    page = await stage.page("/audit", call="CommitOffsets")
    for text in ('"reports"', "ada", "read it again"):
        assert text in page.text


async def test_each_name_leads_to_the_entries_that_have_the_same(stage: Stage) -> None:
    links = set((await stage.page("/audit", period="week")).links)
    assert {
        "/audit?call=CreateTopics&period=week",
        "/audit?principal=User%3AANONYMOUS&period=week",
        "/audit?address=127.0.0.1&period=week",
    } <= links


async def test_a_long_list_goes_on_page_by_page(stage: Stage) -> None:
    for number in range(120):
        await stage.client.admin().create_topic(f"topic-{number:03d}", partitions=1)
    first = await stage.page("/audit")
    assert "topic-119" in first.text
    assert "topic-010" not in first.text
    (earlier,) = (each for each in first.links if "behind=" in each)
    rest = await stage.page(earlier)
    assert "topic-010" in rest.text
    assert "topic-119" not in rest.text
    assert "--behind" in rest.text


async def test_large_requests_leave_their_page_small(stage: Stage) -> None:
    """Characters that HTML escapes are five times as long there."""
    for number in range(40):
        await stage.open_transaction(f"{number:03d}-{'<' * 190}", "orders")
        await fence(stage, f"{number:03d}-{'<' * 190}", "&" * 200)
    seen, address = "", "/audit?call=FenceProducer"
    while address:
        page = await stage.page(address)
        seen += page.text
        address = next((each for each in page.links if "behind=" in each and each != address), "")
    assert [number for number in range(40) if f'"{number:03d}-<' not in seen] == []


async def test_an_unknown_filter_is_refused(stage: Stage) -> None:
    await stage.page("/audit", status=400, call="Nothing")
    await stage.page("/audit", status=400, period="year")
    assert "behind is 'x'" in (await stage.page("/audit", behind="x")).text
