"""The console's pages on a real cluster, in states that real clients have brought about."""

from collections.abc import AsyncIterator

import pytest
from web_console.console_stage import Stage, console_stage

from aiosemel import ConsumerOptions, OffsetReset
from semel_console.insight.doctor_checks import Thresholds
from semel_console.insight.examination import examine
from semel_console.pages import PAGES
from semel_console.views.search_view import FOUND_MAX
from semel_console.views.why_view import PARTITIONS_MAX
from semel_console.web.lag_samples import SAMPLES_MAX

HOSTILE = '<script>alert(1)</script>"&'


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with console_stage() as made:
        await made.client.admin().create_topic("orders", partitions=2)
        yield made


async def test_a_well_cluster_has_no_finding(stage: Stage) -> None:
    page = await stage.page("/")
    assert "Nothing is wrong." in page.text
    assert "semel doctor" in page.text


async def test_an_open_transaction_is_listed_with_its_age_and_leads_to_its_page(
    stage: Stage,
) -> None:
    assert "No transaction is in this state." in (await stage.page("/transactions")).text
    await stage.open_transaction("nightly", "orders")
    page = await stage.page("/transactions")
    assert "Ongoing" in page.text
    assert "/transaction?transactional_id=nightly&epoch=0" in page.links
    assert "nightly" not in (await stage.page("/transactions", state="Prepared")).text
    assert (
        "nightly" in (await stage.page("/transactions", state="any", transactional_id="ight")).text
    )
    assert (
        "nightly"
        not in (await stage.page("/transactions", state="any", transactional_id="i.ht")).text
    )


async def test_the_page_of_a_transaction_says_where_it_began_to_write(stage: Stage) -> None:
    await stage.open_transaction("nightly", "orders", partition=1)
    page = await stage.page("/transaction", transactional_id="nightly", epoch=0)
    assert "It is open: it may still commit or abort. It times out in 9 min" in page.text
    assert "first write to orders-1, offset 0" in page.text
    assert "/partition?topic=orders&partition=1" in page.links


async def test_a_transaction_that_has_ended_tells_how(stage: Stage) -> None:
    committed = await stage.open_transaction("a", "orders")
    await committed.commit()
    aborted = await stage.open_transaction("b", "orders")
    await aborted.abort()
    assert (
        "Yes: it is committed."
        in (await stage.page("/transaction", transactional_id="a", epoch=0)).text
    )
    page = await stage.page("/transaction", transactional_id="b", epoch=0)
    assert "No: it is aborted (CLIENT, its own producer aborted it)." in page.text
    assert "semel transactions timeline b 0" in page.text


async def test_an_unknown_transactional_id_is_said_to_be_unknown(stage: Stage) -> None:
    page = await stage.page("/transaction", transactional_id="nobody")
    assert "cannot be shown." in page.text
    assert "nobody" in page.text


async def test_a_prepared_transaction_shows_the_readers_behind_it(stage: Stage) -> None:
    assert "No transaction is prepared." in (await stage.page("/prepared")).text
    producer = await stage.open_transaction("two-phase", "orders")
    await producer.prepare()
    page = await stage.page("/prepared")
    assert "1 transactional id with a prepared transaction." in page.text
    assert "semel transactions complete two-phase 0 --commit" in page.text
    assert "/partition?topic=orders&partition=0" in page.links
    outcome = await stage.page("/transaction", transactional_id="two-phase", epoch=0)
    assert "It is prepared: its owner decides" in outcome.text


async def test_a_partition_names_the_holder_of_its_last_stable_offset(stage: Stage) -> None:
    page = await stage.page("/partition", topic="orders", partition=0)
    assert "No transaction holds the last stable offset" in page.text
    await stage.open_transaction("nightly", "orders")
    await stage.client.producer().send_and_wait("orders", b"later", partition=0)
    page = await stage.page("/partition", topic="orders", partition=0)
    assert "The last stable offset is held by nightly, epoch 0 (open for " in page.text
    assert "do not see 2 records from offset 0 on" in page.text
    topic = await stage.page("/topic", name="orders")
    assert "nightly, epoch 0: open for" in topic.text
    for each in (page, topic):
        assert "written by User:ANONYMOUS at 127.0.0.1, ends in" in each.text
    assert "no transaction holds it" in topic.text


async def test_a_partition_says_which_offsets_were_aborted(stage: Stage) -> None:
    page = await stage.page("/partition", topic="orders", partition=0)
    assert "no transaction that was aborted here" in page.text
    await stage.client.producer().send_and_wait("orders", b"first", partition=0)
    aborted = await stage.open_transaction("given-up", "orders")
    await aborted.send_and_wait("orders", b"more", partition=0)
    await aborted.abort()
    elsewhere = await stage.open_transaction("other", "orders", partition=1)
    await elsewhere.abort()
    page = await stage.until("given-up, epoch 0", "/partition", topic="orders", partition=0)
    assert "1 to 232given-up, epoch 0CLIENT" in page.text  # Its marker is at 3, of 2 records.
    assert "other" not in page.text
    assert "CLIENT" in (await stage.browser.get(page.link_to_writer("given-up"))).text


async def test_a_group_shows_its_lag_and_what_lies_behind_the_last_stable_offset(
    stage: Stage,
) -> None:
    producer = stage.client.producer()
    for number in range(3):
        await producer.send_and_wait("orders", b"%d" % number, partition=0)
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    consumer = stage.client.consumer("reports", options)
    consumer.subscribe(["orders"])
    await consumer.poll(timeout_ms=10_000)
    await consumer.commit()
    assert "It has 0 visible records to read." in (await stage.page("/group", id="reports")).text
    await producer.send_and_wait("orders", b"new", partition=0)
    await stage.open_transaction("nightly", "orders")
    page = await stage.page("/group", id="reports")
    assert "It has 1 visible record to read; the oldest is from " in page.text
    assert "1 record more lies behind the last stable offset" in page.text
    assert "/group?id=reports" in (await stage.page("/groups")).links


async def test_the_lag_of_a_group_is_drawn_over_the_looks_at_it(stage: Stage) -> None:
    producer = stage.client.producer()
    await stage.client.admin().groups.alter_offsets("reports", {("orders", 0): 0})
    first = await stage.page("/group", id="reports")
    assert "Lag over time" not in first.text
    await producer.send_and_wait("orders", b"new", partition=0)
    await stage.open_transaction("nightly", "orders")
    text = (await stage.page("/group", id="reports")).text
    assert "Lag over time" in text
    assert "0 visible records, 0 behind the LSO" in text
    assert "1 visible record, 1 behind the LSO" in text
    for _ in range(SAMPLES_MAX):
        text = (await stage.page("/group", id="reports")).text
    assert "0 visible records, 0 behind the LSO" not in text
    topic = (await stage.page("/topic", name="orders")).text
    assert "Age of each last stable offset" in topic


async def test_a_group_says_who_its_members_are_and_when_they_spoke(stage: Stage) -> None:
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    consumer = stage.client.consumer("reports", options)
    consumer.subscribe(["orders"])
    await consumer.poll(timeout_ms=1_000)
    page = await stage.until("s ago", "/group", id="reports")
    assert "User:ANONYMOUS127.0.0.1" in page.text


async def test_pending_offsets_name_their_transaction(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"in", partition=0)
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    consumer = stage.client.consumer("reports", options)
    consumer.subscribe(["orders"])
    await consumer.poll(timeout_ms=10_000)
    producer = await stage.open_transaction("app-0", "orders", partition=1)
    await producer.send_offsets({("orders", 0): 1}, consumer.group_metadata())
    page = await stage.page("/group", id="reports")
    assert "app-0, epoch 0" in page.text
    assert "orders-0: 1" in page.text


async def test_the_cluster_page_names_every_instance(stage: Stage) -> None:
    text = (await stage.page("/cluster")).text
    for name in stage.cluster.names:
        assert name in text


async def test_a_search_with_one_find_goes_there(stage: Stage) -> None:
    answer = await stage.browser.get("/search", params={"q": "rder"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/topic?name=orders")
    await stage.open_transaction("order-import", "orders")
    page = await stage.page("/search", q="order")
    assert {"/topic?name=orders", "/transaction?transactional_id=order-import"} <= set(page.links)
    assert (
        "semel topics list | grep -F -- order; semel groups list | grep -F -- order;"
        " semel transactions list --id-pattern '(?s).*order.*'"
    ) in page.text
    quoted = await stage.page("/search", q="-x; rm $HOME")
    assert "grep -F -- '-x; rm $HOME';" in quoted.text
    assert "--id-pattern '(?s).*\\-x;\\ rm\\ \\$HOME.*'" in quoted.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/topic?name=none", 404),
        ("/group?id=none", 404),
        ("/topic", 400),
        ("/transactions?state=odd", 400),
        ("/transaction?transactional_id=a&epoch=-1", 400),
        ("/transaction?transactional_id=a&epoch=9223372036854775808", 400),
        ("/partition?topic=orders&partition=2", 400),
        ("/partition?topic=orders&partition=²", 400),
        (f"/topics?q={'x' * 2001}", 400),
        ("/topic?name=%00", 400),
        ("/tail?topic=a/b", 400),
        (f"/group?id={'g' * 1_999}", 400),
    ],
)
async def test_an_address_that_names_nothing_says_so(stage: Stage, path: str, status: int) -> None:
    page = await stage.page(path, status=status)
    assert "This address names no page" in page.text or "no" in page.text


@pytest.mark.slow
async def test_texts_of_strangers_are_shown_and_never_run_on_any_page(stage: Stage) -> None:
    await hostile_state(stage)
    shown: list[tuple[str, dict[str, str | int]]] = [
        ("/transactions", {}),
        ("/transactions", {"state": "any", "transactional_id": HOSTILE}),
        ("/transaction", {"transactional_id": HOSTILE, "epoch": "0"}),
        ("/history", {}),
        ("/prepared", {}),
        ("/topic", {"name": "orders"}),
        ("/partition", {"topic": "orders", "partition": "0"}),
        ("/messages", {"topic": "orders", "partition": 1, "isolation": "read_uncommitted"}),
        ("/messages", {"topic": "orders", "partition": 1, "start": 0, "one": 1}),
        ("/tail", {"topic": "orders", "since": "0-0_1-0", "isolation": "read_uncommitted"}),
        ("/groups", {"q": HOSTILE}),
        ("/group", {"id": HOSTILE}),
        ("/why", {"group": HOSTILE, "topic": "orders"}),
        ("/search", {"q": HOSTILE}),
        ("/rules", {"principal": HOSTILE}),
        ("/audit", {"principal": HOSTILE}),
        ("/audit", {}),
    ]
    for path, parameters in shown:
        assert HOSTILE in (await stage.page(path, parameters=parameters)).text, path
    assert {path for path, _ in shown} | {"/", "/cluster", "/topics", "/action"} == set(PAGES)


async def hostile_state(stage: Stage) -> None:
    """Let a stranger give names, keys, values, headers and reasons."""
    await stage.client.producer().send_and_wait(
        "orders", HOSTILE.encode(), key=HOSTILE.encode(), headers=[(HOSTILE, b"1")], partition=1
    )
    ended = await stage.open_transaction(f"{HOSTILE}2", "orders")
    await stage.until(f"{HOSTILE}2", "/transactions")  # Registration waits for no answer.
    await stage.client.admin().operators.fence_producer(
        f"{HOSTILE}2", operator=HOSTILE, reason=HOSTILE
    )
    await ended.close()
    await stage.until(HOSTILE, "/history")
    prepared = await stage.open_transaction(f"{HOSTILE}3", "orders", partition=1)
    await prepared.prepare()
    producer = await stage.open_transaction(HOSTILE, "orders", value=HOSTILE.encode())
    consumer = stage.client.consumer(HOSTILE, ConsumerOptions(group_instance_id=HOSTILE))
    consumer.subscribe(["orders"])
    await consumer.poll(timeout_ms=2_000)
    await producer.send_offsets({("orders", 0): 0}, consumer.group_metadata())


async def test_a_search_for_a_whole_name_goes_there_although_a_service_is_away(
    stage: Stage,
) -> None:
    await stage.open_transaction("import", "orders")
    await stage.cluster.stop_service("group-coordinator-0")
    answer = await stage.browser.get("/search", params={"q": "import"})
    assert answer.headers["location"] == "/transaction?transactional_id=import"
    page = await stage.page("/search", q="impor")
    assert "/transaction?transactional_id=import" in page.links
    assert "The groups cannot be shown." in page.text


async def test_a_list_of_many_ids_goes_on_page_by_page(stage: Stage) -> None:
    for number in range(120):
        producer = stage.client.transactional_producer(f"app-{number:04d}-{'&' * 150}")
        await producer.init_transactions()
        await producer.close()
    address, seen = "/transactions?state=any", ""
    for _ in range(10):
        page = await stage.page(address)
        seen += page.text
        more = [each for each in page.links if "after=" in each and each != address]
        if not more:
            break
        (address,) = more
    assert [number for number in range(120) if f"app-{number:04d}" not in seen] == []
    assert "after=" in address


async def test_an_ended_transaction_leads_to_its_records(stage: Stage) -> None:
    await stage.client.producer().send_and_wait("orders", b"of no transaction", partition=1)
    producer = await stage.open_transaction("nightly", "orders", partition=1)
    await producer.commit(wait_until_visible=True)
    page = await stage.until("complete", "/transaction", transactional_id="nightly", epoch=0)
    assert "first write to orders-1, offset 1" in page.text
    assert "1 to 1" in page.text
    records = "/messages?topic=orders&partition=1&start=1&isolation=read_uncommitted"
    assert page.links.count(records) == 2
    await stage.cluster.stop_service("broker-0")
    page = await stage.page("/transaction", transactional_id="nightly", epoch=0)
    assert "The records in orders-1 cannot be shown" in page.text
    assert "marker of orders-1" in page.text


async def test_the_history_says_how_many_were_aborted_and_why(stage: Stage) -> None:
    page = await stage.page("/history")
    assert "0 transactions committed and 0 aborted in the last day." in page.text
    for number in range(2):
        committed = await stage.open_transaction(f"app-{number}", "orders")
        await committed.commit(wait_until_visible=True)
    aborted = await stage.open_transaction("app-2", "orders")
    await aborted.abort()
    await stage.open_transaction("app-3", "orders")
    await stage.client.admin().operators.abort_transaction(
        "app-3", await producer_id_of(stage, "app-3"), 0, operator="ada", reason="its host is lost"
    )
    page = await stage.until("2 transactions committed and 2 aborted", "/history")
    assert "CLIENT" in page.text
    assert "ada: its host is lost" in page.text
    assert "/history?outcome=ABORTED&reason=OPERATOR" in page.links
    only = await stage.page("/history", outcome="ABORTED", reason="OPERATOR")
    assert "app-3" in only.text
    assert "app-2" not in only.text


async def test_a_transaction_that_has_ended_shows_where_its_time_went(stage: Stage) -> None:
    producer = await stage.open_transaction("app", "orders")
    await producer.send_and_wait("orders", b"more", partition=1)
    await producer.commit(wait_until_visible=True)
    page = await stage.until("Timeline", "/transaction", transactional_id="app", epoch=0)
    for text in ("decided", "marker of orders-0", "marker of orders-1", "complete"):
        assert text in page.text
    assert "The longest step: " in page.text or "within one millisecond" in page.text
    whole = await stage.page("/transaction", transactional_id="app")
    assert "Ended in the last day" in whole.text
    assert "COMMITTED" in whole.text


async def test_a_transaction_that_was_ended_by_hand_names_the_operator(stage: Stage) -> None:
    await stage.open_transaction("app", "orders")
    await stage.client.admin().operators.abort_transaction(
        "app", await producer_id_of(stage, "app"), 0, operator="ada", reason="its host is lost"
    )
    page = await stage.until("Ended by hand", "/transaction", transactional_id="app", epoch=0)
    assert "Ended by hand: ada" in page.text
    assert "The reason: its host is lost" in page.text
    assert "No: it is aborted (OPERATOR, an operator aborted it)." in page.text


async def producer_id_of(stage: Stage, transactional_id: str) -> int:
    """Return the producer id of an id."""
    return (await stage.client.admin().describe_transactions(transactional_id)).producer_id


async def with_ids(stage: Stage, count: int) -> None:
    """Use so many transactional ids, one after the other."""
    for number in range(count):
        producer = stage.client.transactional_producer(f"id-{number:03d}")
        await producer.init_transactions()
        await producer.close()


async def test_a_search_says_that_there_is_more_than_it_shows(stage: Stage) -> None:
    await with_ids(stage, FOUND_MAX)
    assert "More than" not in (await stage.page("/search", q="id-")).text
    await with_ids(stage, FOUND_MAX + 1)
    page = await stage.page("/search", q="id-")
    assert f"More than {FOUND_MAX} names have this text" in page.text
    assert f"id-{FOUND_MAX - 1:03d}" in page.text
    assert f"id-{FOUND_MAX:03d}" not in page.text


async def test_the_causes_of_many_partitions_go_on_page_by_page(stage: Stage) -> None:
    await stage.client.admin().create_topic("wide", partitions=PARTITIONS_MAX + 1)
    page = await stage.page("/why", group="reports", topic="wide")
    assert f"wide-{PARTITIONS_MAX - 1}" in page.text
    (more,) = (each for each in page.links if "after=" in each)
    rest = await stage.page(more)
    assert f"wide-{PARTITIONS_MAX}" in rest.text
    assert "wide-0" not in rest.text
    assert "The next" not in rest.text
    one = await stage.page("/why", group="reports", topic="wide", partition=1)
    assert "semel why reports wide:1" in one.text


async def test_an_examination_of_some_ids_says_so_and_finds_each_prepared_one(
    stage: Stage,
) -> None:
    await with_ids(stage, 3)
    prepared = await stage.open_transaction("zzz", "orders")
    await prepared.prepare()
    limits = Thresholds(prepared_ms=0)
    whole = await examine(stage.client.admin(), limits)
    part = await examine(stage.client.admin(), limits, ids_max=2)
    assert [each.transactional_id for each in whole.findings] == ["zzz"]
    assert [each.transactional_id for each in part.findings] == ["zzz"]
    assert whole.remarks == ()
    assert "there are more than 2 transactional ids" in part.remarks[0]
