"""The questions of people, each answered in a real browser: at most three clicks, or one search."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser
from web_console.console_browser import (
    LEFT_OUT,
    NEWS_MS,
    Stand,
    browser_of,
    console_at_an_address,
    find_chromium,
    serious_findings,
)

from aiosemel import (
    AclBinding,
    AclOperation,
    AclPermission,
    ConsumerGroupMetadata,
    ConsumerOptions,
    OffsetReset,
    PatternType,
    ResourceType,
)
from semel_console.insight.doctor_checks import Thresholds
from semel_console.insight.examination import examine
from semel_local import LocalCluster

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

EARLIEST = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
PAGES = (
    *("/", "/transactions", "/history", "/prepared", "/topics", "/groups", "/cluster", "/rules"),
    "/audit",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip(LEFT_OUT)
    async with browser_of(program) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(browser: Browser) -> AsyncIterator[Stand]:
    async with (
        LocalCluster(brokers=2) as cluster,
        cluster.client() as client,
        console_at_an_address(cluster) as url,
    ):
        yield Stand(cluster, client, url, browser)


async def group_of(stand: Stand, group_id: str, topic: str) -> None:
    """Let a group read and commit everything that it can see of a topic with one record."""
    await stand.client.admin().create_topic(topic, partitions=1)
    await stand.client.producer().send_and_wait(topic, b"first")
    consumer = stand.client.consumer(group_id, EARLIEST)
    consumer.subscribe([topic])
    while not await consumer.poll(timeout_ms=1_000):
        pass
    await consumer.commit()


async def producer_id_of(stand: Stand, transactional_id: str) -> int:
    """Return the producer id of an id."""
    return (await stand.client.admin().describe_transactions(transactional_id)).producer_id


async def test_01_why_does_my_consumer_not_see_records(stand: Stand) -> None:
    await group_of(stand, "reports", "bills")
    await stand.open_transaction("nightly", "bills")
    async with stand.person() as person:
        await person.click("Groups")
        await person.click("reports")
        await person.click("Why does it not see records?")
        await person.sees("holds the last stable offset, 1")
        assert "transaction 'nightly' (epoch 0, open for" in await person.text()


async def test_02_who_holds_the_last_stable_offset_of_a_topic(stand: Stand) -> None:
    await stand.client.admin().create_topic("held", partitions=2)
    await stand.open_transaction("holder", "held", partition=1)
    async with stand.person() as person:
        await person.click("Topics")
        await person.click("held")
        await person.sees("holder, epoch 0: open for")
        text = await person.text()
        assert "written by User:ANONYMOUS at 127.0.0.1, ends in" in text
        assert "no transaction holds it" in text


async def test_03_which_transactions_were_aborted_and_why(stand: Stand) -> None:
    await stand.client.admin().create_topic("aborts", partitions=1)
    aborted = await stand.open_transaction("given-up", "aborts")
    await aborted.abort()
    async with stand.person() as person:
        await person.click("History")
        await person.sees("aborted in the last day")
        assert "CLIENT" in await person.text()


async def test_04_did_this_transaction_commit(stand: Stand) -> None:
    await stand.client.admin().create_topic("ends", partitions=1)
    committed = await stand.open_transaction("kept-0", "ends")
    await committed.commit()
    async with stand.person() as person:
        await person.search("kept-0")
        await person.page.get_by_role("textbox", name="Epoch").fill("0")
        await person.click("How did it end?")
        await person.sees("Yes: it is committed.")
        assert person.page.url.endswith("/transaction?transactional_id=kept-0&epoch=0")


async def test_05_what_did_it_write(stand: Stand) -> None:
    await stand.client.admin().create_topic("writes", partitions=3)
    producer = await stand.open_transaction("writer", "writes", partition=2)
    await producer.commit(wait_until_visible=True)
    async with stand.person() as person:
        await person.search("writer")
        await person.click("0")
        await person.sees("Partitions and groups")
        assert "writes-2" in await person.text()
        await person.click("writes-2")
        await person.click("show the newest")
        await person.sees("1 record shown")


async def test_06_which_transaction_wrote_this_record_and_can_readers_see_it(stand: Stand) -> None:
    await stand.client.admin().create_topic("sightings", partitions=1)
    await stand.open_transaction("watcher", "sightings", value=b"not yet")
    async with stand.person() as person:
        await person.search("sightings")
        await person.click("0")
        await person.click("show all of the newest")
        await person.sees("not yet: its transaction is open")
        await person.click("watcher, epoch 0")
        await person.sees("It is open: it may still commit or abort.")
        assert "User:ANONYMOUS" in await person.text()


async def test_07_why_was_this_commit_slow(stand: Stand) -> None:
    await stand.client.admin().create_topic("slow", partitions=1)
    producer = await stand.open_transaction("slowly", "slow")
    await producer.commit(wait_until_visible=True)
    async with stand.person() as person:
        await person.search("slowly")
        await person.click("0")
        await person.sees("Timeline")
        text = await person.text()
        assert "The longest step: " in text or "within one millisecond" in text


async def test_08_which_markers_are_missing_and_who_owes_them(browser: Browser) -> None:
    async with (
        LocalCluster(brokers=2) as cluster,
        cluster.client() as client,
        console_at_an_address(cluster) as url,
    ):
        stand = Stand(cluster, client, url, browser)
        await client.admin().create_topic("owed", partitions=2)
        topic = await client.admin().describe_topic("owed")
        away = next(each for each in topic.partitions if each.leader_id == 1).partition
        producer = await stand.open_transaction("half-done", "owed", partition=away)
        await producer.send_and_wait("owed", b"here", partition=1 - away)
        await producer.send_offsets({("owed", away): 1}, ConsumerGroupMetadata(group_id="reports"))
        await cluster.stop_service("broker-1")
        await cluster.stop_service("group-coordinator-0")
        await producer.commit()
        async with stand.person() as person:
            await person.search("half-done")
            await person.click("0")
            await person.sees("broker-1, which does not answer")
            await person.sees("Some markers are still missing.")
            lines = (await person.text()).splitlines()
            (owed,) = (each for each in lines if each.startswith(f"owed-{away}\tmissing\t"))
            assert owed.split("\t")[2].endswith(("s", "ms"))
            (group,) = (each for each in lines if each.startswith("group reports\tmissing\t"))
            assert group.endswith("group-coordinator-0, which does not answer")
            (here,) = (each for each in lines if each.startswith(f"owed-{1 - away}\t"))
            assert here.startswith(f"owed-{1 - away}\twritten\t")


async def test_09_what_is_prepared_and_what_waits_behind_it(stand: Stand) -> None:
    await stand.client.admin().create_topic("outside", partitions=1)
    producer = await stand.open_transaction("two-phase", "outside")
    await producer.prepare()
    async with stand.person() as person:
        await person.click("Prepared")
        await person.sees("outside-0")
        assert "semel transactions complete two-phase 0 --commit" in await person.text()


async def test_10_who_takes_ids_from_one_another(stand: Stand) -> None:
    await stand.client.admin().create_topic("fought", partitions=1)
    for _ in range(4):
        await stand.open_transaction("contested", "fought")
    async with stand.person() as person:
        await person.sees("contested was taken over 3 times")
        await person.click("contested")
        await person.sees("Written by")
        assert "FENCED" in await person.text()


async def test_11_who_ended_this_transaction_by_hand(stand: Stand) -> None:
    await stand.client.admin().create_topic("hand", partitions=1)
    await stand.open_transaction("by-hand", "hand")
    await stand.client.admin().operators.abort_transaction(
        "by-hand",
        await producer_id_of(stand, "by-hand"),
        0,
        operator="ada",
        reason="its host is lost",
    )
    async with stand.person() as person:
        await person.search("by-hand")
        await person.click("0")
        await person.sees("Ended by hand: ada")
        assert "its host is lost" in await person.text()


async def test_12_may_this_user_write_this_topic_under_this_id(stand: Stand) -> None:
    await stand.client.admin().create_topic("invoices", partitions=1)
    await stand.client.admin().access.create_acls(
        [
            AclBinding(
                resource_type=ResourceType.TOPIC,
                resource_name="inv",
                pattern_type=PatternType.PREFIXED,
                principal="User:billing",
                operation=AclOperation.WRITE,
            ),
            AclBinding(
                resource_type=ResourceType.TRANSACTIONAL_ID,
                resource_name="billing-1",
                principal="User:billing",
                operation=AclOperation.ALL,
                permission=AclPermission.DENY,
            ),
        ]
    )
    async with stand.person() as person:
        await person.click("Rules")
        page = person.page
        await page.get_by_role("textbox", name="Principal, such as User:app").fill("User:billing")
        await page.get_by_role("combobox", name="Operation").select_option("write")
        await page.get_by_role("textbox", name="On topic").fill("invoices")
        await page.get_by_role("textbox", name="On transactional id").fill("billing-1")
        await person.click("May it?")
        await person.sees("Yes: User:billing may write topic invoices, by the rule")
        await person.sees("No: User:billing may not write transactional id billing-1, by the rule")
        text = await person.text()
        assert "allow User:billing write every topic that begins with inv" in text
        assert "deny User:billing all transactional id billing-1" in text


async def test_13_how_far_is_this_group_really_behind(stand: Stand) -> None:
    await group_of(stand, "behind", "lag")
    await stand.client.producer().send_and_wait("lag", b"visible")
    await stand.open_transaction("hides-lag", "lag")
    async with stand.person() as person:
        await person.click("Groups")
        await person.click("behind")
        await person.sees("It has 1 visible record to read; the oldest is from ")
        await person.sees("1 record more lies behind the last stable offset")


async def test_14_is_the_cluster_well(stand: Stand) -> None:
    examined = await examine(stand.client.admin(), Thresholds())
    async with stand.person() as person:
        await person.sees("The cluster has")
        text = await person.text()
        for found in examined.findings:
            assert found.what in text
            assert found.do in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_have_no_serious_finding_of_accessibility(stand: Stand, scheme: str) -> None:
    assert scheme in {"light", "dark"}
    async with stand.person(scheme="dark" if scheme == "dark" else "light") as person:
        for path in (*PAGES, "/topic?name=held", "/partition?topic=held&partition=1"):
            await person.page.goto(f"{stand.url.rstrip('/')}{path}")
            assert await serious_findings(person.page) == [], path


async def test_a_narrow_screen_scrolls_only_tables_sideways(stand: Stand) -> None:
    async with stand.person(width=360) as person:
        for path in PAGES:
            await person.page.goto(f"{stand.url.rstrip('/')}{path}")
            width = await person.page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, path


async def test_a_narrow_screen_has_room_for_words_of_a_value(stand: Stand) -> None:
    await stand.client.admin().create_topic("narrow", partitions=1)
    await stand.client.producer().send_and_wait("narrow", b"a value of some words", key=b"k")
    async with stand.person(width=360) as person:
        await person.page.goto(f"{stand.url}messages?topic=narrow&partition=0")
        value = person.page.locator("td", has_text="a value of some words")
        assert (await value.evaluate("cell => cell.getBoundingClientRect().width")) > 120


async def test_keys_lead_to_pages(stand: Stand) -> None:
    async with stand.person() as person:
        await person.page.keyboard.press("g")
        await person.page.keyboard.press("t")
        await person.page.wait_for_url("**/transactions")
        await person.page.keyboard.press("Tab")
        assert await person.page.evaluate("document.activeElement.className") == "skip"


async def test_an_open_page_shows_what_is_new_without_a_reload(stand: Stand) -> None:
    await stand.client.admin().create_topic("live", partitions=1)
    async with stand.person() as person:
        await person.click("Transactions")
        await person.page.evaluate("window.kept = 'the same page'")
        await stand.open_transaction("<img src=x onerror=alert(1)>", "live")
        await person.sees("<img src=x onerror=alert(1)>", within_ms=NEWS_MS)
        assert await person.page.evaluate("window.kept") == "the same page"


async def test_an_open_page_says_that_its_topic_is_gone_until_it_is_there_again(
    stand: Stand,
) -> None:
    admin = stand.client.admin()
    await admin.create_topic("fleeting", partitions=1)
    page = await stand.browser.new_page()  # A person's tab takes a status of 404 for a fault.
    await page.goto(f"{stand.url}topic?name=fleeting")
    await page.get_by_text("no transaction holds it").wait_for(timeout=NEWS_MS)
    await admin.delete_topic("fleeting")
    await page.get_by_text("This page cannot be shown").wait_for(timeout=NEWS_MS)
    await admin.create_topic("fleeting", partitions=1)
    await page.get_by_text("no transaction holds it").wait_for(timeout=NEWS_MS)
    await page.close()


async def test_an_open_page_stays_where_the_answer_is_no_page(stand: Stand) -> None:
    page = await stand.browser.new_page()
    await page.goto(f"{stand.url}transactions")
    await page.route("**/transactions", lambda route: route.fulfill(status=503, body="too busy"))
    await page.get_by_text("The console does not answer.").wait_for(timeout=NEWS_MS)
    assert await page.get_by_role("heading", name="Transactions").is_visible()
    await page.unroute("**/transactions")
    lost = page.get_by_text("The console does not answer.")
    await lost.wait_for(state="hidden", timeout=NEWS_MS)
    await page.close()


async def test_a_tail_shows_the_newest_record_on_top_until_it_is_stopped(stand: Stand) -> None:
    await stand.client.admin().create_topic("tailed", partitions=2)
    send = stand.client.producer().send_and_wait
    async with stand.person() as person:
        page = person.page
        await page.goto(f"{stand.url}topic?name=tailed")
        await person.click("follow")
        await person.sees("Records appear here as they come.")
        await send("tailed", b"first", partition=0)
        await person.sees("first", within_ms=NEWS_MS)
        await send("tailed", b"second", partition=1)
        await person.sees("second", within_ms=NEWS_MS)
        values = await page.locator("tbody code").all_inner_texts()
        assert values == ["second", "first"]
        await person.click("Stop updates")
        await send("tailed", b"third", partition=0)
        await page.wait_for_timeout(5_000)
        assert await page.locator("tbody code").all_inner_texts() == values
        await person.click("Go on")
        await person.sees("third", within_ms=NEWS_MS)
        await person.sees("3 records came since the tail has begun; none was dropped.")


@pytest.mark.parametrize("path", ["", "tail?topic=unseen"])
async def test_a_hidden_page_asks_for_nothing(stand: Stand, path: str) -> None:
    if path:
        await stand.client.admin().create_topic("unseen", partitions=1)
    async with stand.person() as person:
        asked: list[str] = []
        await person.page.goto(f"{stand.url}{path}")
        await person.page.evaluate(
            "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        person.page.on("request", lambda request: asked.append(request.url))
        await person.page.wait_for_timeout(5_000)
        # The browser fetches the page's icon when it likes.
        assert [url for url in asked if "/static/icon.svg" not in url] == []
        async with person.page.expect_request("**/events"):
            await person.page.evaluate(
                "Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
                "document.dispatchEvent(new Event('visibilitychange'))"
            )
