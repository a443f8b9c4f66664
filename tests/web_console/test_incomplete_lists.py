"""Lists of all instances while one does not answer: in the SDK, in commands and in the console."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import pytest
import pytest_asyncio
from command_process import DEADLINE_S
from web_console.console_stage import Stage, console_stage

from aiosemel import Admin, ClientOptions
from aiosemel.errors import IncompleteListError
from semel_console.insight.doctor_checks import Thresholds
from semel_console.insight.examination import examine

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

IDS = [f"shop-{number}" for number in range(8)]
"""Transactional ids and groups: each instance has some of them."""
COMMAND = """
from semel_cli.main import main
from semel_cli.shared import command_session

command_session.API_TIMEOUT_MS = 1_500
main()
"""
QUICK = ClientOptions(request_timeout_ms=500, default_api_timeout_ms=1_000)


@dataclass(frozen=True, slots=True)
class Listing:
    """One call of the SDK that asks all instances, with its command and page."""

    call: Callable[[Admin], Awaitable[object]]
    command: tuple[str, ...]
    path: str
    lost: str = "coordinator-1"


LISTINGS: Mapping[str, Listing] = {
    "transactions": Listing(
        lambda admin: admin.list_transactions(), ("transactions", "list"), "/transactions"
    ),
    "prepared": Listing(
        lambda admin: admin.list_prepared_transactions(),
        ("transactions", "list", "--state", "prepared"),
        "/prepared",
    ),
    "history": Listing(
        lambda admin: admin.transaction_history(), ("transactions", "history"), "/history"
    ),
    "audit": Listing(lambda admin: admin.operators.list_audit(), ("audit",), "/audit"),
    "groups": Listing(
        lambda admin: admin.list_groups(), ("groups", "list"), "/groups", "group-coordinator-1"
    ),
}


def ids_in(text: object) -> set[str]:
    """Return the ids that a text has."""
    return {name for name in IDS if name in str(text)}


@dataclass(frozen=True, slots=True)
class HalfThere:
    """A cluster of which two instances are away, and the ids that each list had before."""

    stage: Stage
    whole: Mapping[str, set[str]]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def half() -> AsyncIterator[HalfThere]:
    async with console_stage(coordinators=2, group_coordinators=2) as stage:
        admin = stage.client.admin()
        await admin.create_topic("orders", partitions=1)
        for name in IDS:
            producer = await stage.open_transaction(name, "orders")
            prepared = await producer.prepare()
            await admin.complete_prepared(
                prepared, commit=False, wait_until_visible=True, operator="ada", reason=name
            )
            await (await stage.open_transaction(name, "orders")).prepare()
            await admin.groups.alter_offsets(name, {("orders", 0): 0})
        whole = {name: ids_in(await each.call(admin)) for name, each in LISTINGS.items()}
        await stage.page("/cluster")  # The console has heard of the instances.
        for lost in ("coordinator-1", "group-coordinator-1"):
            await stage.cluster.stop_service(lost)
        yield HalfThere(stage, whole)
        for lost in ("coordinator-1", "group-coordinator-1"):
            await stage.cluster.start_service(lost)


@pytest.mark.parametrize("name", LISTINGS)
async def test_the_error_has_the_entries_of_the_instances_that_answer(
    half: HalfThere, name: str
) -> None:
    listing = LISTINGS[name]
    assert half.whole[name] == {*IDS}
    async with half.stage.cluster.client(options=QUICK) as client:
        with pytest.raises(IncompleteListError) as raised:
            await listing.call(client.admin())
    assert set() < ids_in(raised.value.partial) < {*IDS}
    assert {*raised.value.errors} == {listing.lost}
    assert f"{listing.lost}: " in raised.value.message


@pytest.mark.parametrize("name", LISTINGS)
async def test_the_command_shows_them_names_the_instance_and_fails(
    half: HalfThere, name: str
) -> None:
    listing, pipe = LISTINGS[name], asyncio.subprocess.PIPE
    bootstrap = half.stage.cluster.bootstrap
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COMMAND),
        *listing.command,
        "--bootstrap",
        bootstrap,
        stdout=pipe,
        stderr=pipe,
    )
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode == 1, err
    assert f"{listing.lost}: " in err.decode()
    assert set() < ids_in(out) < {*IDS}


@pytest.mark.parametrize("name", LISTINGS)
async def test_the_page_shows_them_and_names_the_instance(half: HalfThere, name: str) -> None:
    listing = LISTINGS[name]
    page = await half.stage.page(listing.path)
    assert set() < ids_in(page.text) < {*IDS}
    assert f"{listing.lost} cannot be shown." in page.text
    assert "The page shows, and counts, only the entries of the instances" in page.text


async def test_the_search_and_the_aborted_ranges_show_them_too(half: HalfThere) -> None:
    found = await half.stage.page("/search", q="shop")
    assert set() < ids_in(found.text) < {*IDS}
    assert "The groups of group-coordinator-1 cannot be shown." in found.text
    assert "The transactional ids of coordinator-1 cannot be shown." in found.text
    partition = await half.stage.page("/partition", topic="orders", partition=0)
    assert "The aborted transactions of coordinator-1 cannot be shown." in partition.text
    assert set() < ids_in(partition.text) < {*IDS}


async def test_open_transactions_have_the_outcomes_that_the_other_coordinator_knows(
    half: HalfThere,
) -> None:
    async with half.stage.cluster.client(options=QUICK) as client:
        found = (await client.admin().operators.list_open_transactions()).transactions
        with pytest.raises(IncompleteListError) as raised:
            await client.admin().list_prepared_transactions()
    known = [each.known.transactional_id for each in found if each.known is not None]
    assert {*known} == ids_in(raised.value.partial)
    unknown = [each for each in found if each.known is None]
    assert len(known) + len(unknown) == len(IDS)
    assert not any(each.coordinator_answered for each in unknown)


async def test_a_part_of_the_list_is_examined(half: HalfThere) -> None:
    limits = Thresholds(prepared_ms=0, stuck_ms=0)
    async with half.stage.cluster.client(options=QUICK) as client:
        examined = await examine(client.admin(), limits)
    findings = examined.findings
    assert "stuck" not in {each.check for each in findings}
    away = {each.what.partition(":")[0] for each in findings if each.check == "unreachable"}
    assert away == {"coordinator-1", "group-coordinator-1"}
    prepared = ids_in([each for each in findings if each.check == "prepared"])
    assert set() < prepared < {*IDS}
    assert examined.remarks[0].startswith("some transactional ids are left out: ")
