"""The history of transactions on the command line, and the causes why a reader waits."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

import pytest
from command_line import CommandLine

from aiosemel import (
    ConsumerGroupMetadata,
    ConsumerOptions,
    KnownOutcome,
    OffsetReset,
    ReaderCause,
    ReaderStanding,
    SemelClient,
    TransactionalProducer,
    TransactionState,
)
from aiosemel._admin import reader_check
from semel_console.insight.reader_causes import verdict
from semel_console.insight.texts import duration_text


def run(semel: CommandLine, work: Callable[[SemelClient], Awaitable[None]]) -> None:
    """Let a client work on the cluster."""

    async def connected() -> None:
        async with SemelClient(semel.environment["SEMEL_BOOTSTRAP"]) as client:
            await work(client)

    asyncio.run(connected())


@asynccontextmanager
async def writing(client: SemelClient, name: str) -> AsyncIterator[TransactionalProducer]:
    """Write to the topic of the same name, in a transaction that is begun."""
    producer = client.transactional_producer(name)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait(name, b"v", partition=0)
    yield producer
    await producer.close()


async def two_ends(client: SemelClient, name: str) -> None:
    """Commit one transaction, and abort the next one."""
    async with writing(client, name) as producer:
        await producer.commit(wait_until_visible=True)
        await producer.begin_transaction()
        await producer.send_and_wait(name, b"w", partition=1)
        await producer.abort()


def test_the_history_lists_what_has_ended_the_last_one_first(
    semel: CommandLine, topic: str
) -> None:
    run(semel, lambda client: two_ends(client, topic))
    listed = _until(semel, topic, 2)
    aborted, committed = listed["transactions"]
    assert (aborted["outcome"], aborted["abort_reason"]) == ("ABORTED", "CLIENT")
    assert (committed["outcome"], committed["abort_reason"]) == ("COMMITTED", None)
    assert committed["participants"] == [
        {
            "topic": topic,
            "partition": 0,
            "group_id": None,
            "commits": True,
            "marker_time_ms": committed["completed_time_ms"],
        }
    ]
    assert committed["client"]["address"] == "127.0.0.1"
    asked = ("transactions", "history", "--topic", topic)
    rows = semel(*asked).lines
    headings = ["COMPLETED", "TRANSACTIONAL-ID", "EPOCH", "OUTCOME", "REASON"]
    assert rows[0].split("	")[:5] == headings
    assert rows[1].split("\t")[1:5] == [topic, "1", "ABORTED", "CLIENT"]
    assert f"{topic}-1" in rows[1]
    assert len(semel(*asked, "--outcome", "committed").lines) == 2
    assert len(semel(*asked, "--reason", "timed-out").lines) == 1
    assert len(semel(*asked, "--partition", "1", "--within", "3600").lines) == 2
    cut = semel(*asked, "--limit", "1")
    assert "--behind" in cut.err
    position = cut.err.split("--behind ")[1].strip()
    assert "COMMITTED" in semel(*asked, "--behind", position).lines[1]


def _until(semel: CommandLine, topic: str, count: int) -> dict[str, Any]:
    """Ask until so many have ended: an abort has its answer before its markers are written."""
    asked = ("transactions", "history", "--id", topic, "--format", "json")
    for _ in range(100):
        listed: dict[str, Any] = semel(*asked).json
        if len(listed["transactions"]) == count:
            return listed
    raise AssertionError("too few have ended")


def test_a_timeline_has_all_steps_and_names_the_longest(semel: CommandLine, topic: str) -> None:
    run(semel, lambda client: two_ends(client, topic))
    _until(semel, topic, 2)
    shown = semel("transactions", "timeline", topic, "0").lines
    assert f"Transactional id\t{topic}" in shown
    assert "Outcome\tCOMMITTED" in shown
    steps = [line.split("\t")[2] for line in shown if line.startswith("2")]
    assert steps[0] == f"first write: {topic}-0, offset 0"
    assert "registered with its coordinator" in steps
    assert "decided: COMMITTED" in steps
    assert f"marker written: {topic}-0" in steps
    assert steps[-1] == "complete"
    assert f"{topic}-0\t1\t0\t0\t1" in shown
    assert any(line.startswith("Longest after the decision\t") for line in shown)
    (document,) = semel("transactions", "timeline", topic, "1", "--format", "json").json
    assert document["transaction"]["abort_reason"] == "CLIENT"
    assert document["steps"][0]["name"] == f"first write: {topic}-1, offset 0"
    (written,) = document["writes"]
    assert (written["topic"], written["partition"]) == (topic, 1)
    assert (written["record_count"], written["first_offset"], written["marker_offset"]) == (1, 0, 1)


def test_history_and_timeline_say_the_same_time_that_a_transaction_took(
    semel: CommandLine, topic: str
) -> None:
    """The first write came long before the coordinator heard of the transaction."""
    earlier_ms = 5_000

    async def work(client: SemelClient) -> None:
        producer = client.transactional_producer(topic)
        await producer.init_transactions()
        await producer.begin_transaction()
        began_ms = time.time_ns() // 1_000_000 - earlier_ms
        await producer.send_and_wait(topic, b"v", partition=0, timestamp_ms=began_ms)
        await producer.commit(wait_until_visible=True)
        await producer.close()

    run(semel, work)
    (entry,) = _until(semel, topic, 1)["transactions"]
    took = duration_text(entry["completed_time_ms"] - entry["start_time_ms"])
    (row,) = semel("transactions", "history", "--id", topic).lines[1:]
    assert row.split("\t")[5] == took
    shown = semel("transactions", "timeline", topic, "0").lines
    assert f"Took\t{took}" in shown
    steps = [line.split("\t") for line in shown if line.startswith("2")]
    assert steps[0][2] == f"first write: {topic}-0, offset 0"
    assert f"From the first step to the last\t{steps[-1][1]}" in shown
    assert steps[-1][1] != took


def test_the_timeline_of_an_open_transaction_names_the_offsets_that_it_holds(
    semel: CommandLine, topic: str
) -> None:
    held = {(topic, 1): 7, (topic, 0): 5}
    asked = ("transactions", "timeline", topic, "0")

    async def work(client: SemelClient) -> None:
        async with writing(client, topic) as producer:
            await producer.send_offsets(held, ConsumerGroupMetadata(group_id=topic))
            await producer.prepare()  # Now the coordinator knows what it wrote to.

    run(semel, work)
    shown = semel(*asked).lines
    assert "State\tPrepared" in shown
    steps = [line.split("\t")[2] for line in shown if line.startswith("2")]
    assert f"first write: {topic}-0, offset 0" in steps
    assert "prepared" in steps
    assert f"{topic}-0\t0\t-" in shown
    assert f"group {topic}\t-\t{topic}-0: 5, {topic}-1: 7" in shown
    (document,) = semel(*asked, "--format", "json").json
    assert document["transaction"]["state"] == "Prepared"
    assert [each["first_offset"] for each in document["first_writes"]] == [0]
    offsets = [
        {"topic": name, "partition": number, "offset": held[name, number]}
        for name, number in sorted(held)
    ]
    assert document["offsets_to_commit"] == [{"group_id": topic, "offsets": offsets}]
    whose = str(document["transaction"]["producer_id"])
    assert semel(*asked, "--producer-id", whose, "--format", "json").json
    other = semel(*asked, "--producer-id", str(int(whose) + 1), status=1)
    assert "and it is not open" in other.err
    semel("transactions", "complete", topic, "0", "--commit")
    _until(semel, topic, 1)
    assert "Outcome\tCOMMITTED" in semel(*asked).lines


def test_an_operator_who_ends_a_transaction_stands_in_the_history(
    semel: CommandLine, topic: str
) -> None:
    async def work(client: SemelClient) -> None:
        async with writing(client, topic):
            while True:  # The coordinator hears of a transaction that lasts.
                described = await client.admin().describe_transactions(topic)
                if described.transactions[-1].state is TransactionState.ONGOING:
                    break
            await client.admin().operators.abort_transaction(
                topic,
                described.producer_id,
                described.producer_epoch,
                operator="ada",
                reason="it hangs",
            )

    run(semel, work)
    listed = _until(semel, topic, 1)
    (entry,) = listed["transactions"]
    assert entry["abort_reason"] == "OPERATOR"
    assert entry["operator"] == {
        "name": "ada",
        "reason": "it hangs",
        "principal": "User:ANONYMOUS",
        "address": "127.0.0.1",
    }
    assert "Ended by\tada: it hangs" in semel("transactions", "timeline", topic, "0").lines


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("history", "--outcome", "maybe"), 2, "neither committed nor aborted"),
        (("history", "--reason", "bored"), 2, "client, timed_out, fenced, operator"),
        (("history", "--partition", "1"), 1, "without its topic"),
        (("history", "--behind", "yesterday"), 1, "behind is 'yesterday'"),
        (("timeline", "nobody", "3"), 1, "no transaction of epoch 3 of 'nobody'"),
    ],
)
def test_what_the_history_cannot_answer_is_said(
    semel: CommandLine, arguments: tuple[str, ...], status: int, words: str
) -> None:
    assert words in semel("transactions", *arguments, status=status).err


# -- why -----------------------------------------------------------------------------------------


def why(semel: CommandLine, group: str, place: str) -> list[dict[str, object]]:
    found = semel("why", group, place, "--format", "json").json
    assert isinstance(found, list)
    return found


def test_why_names_the_missing_thing(semel: CommandLine, topic: str) -> None:
    assert why(semel, "g", "nothing-here")[0]["cause"] == "NO_TOPIC"
    assert why(semel, "g", f"{topic}:9")[0]["cause"] == "NO_PARTITION"
    found = why(semel, "nobody", topic)
    assert [(each["partition"], each["cause"]) for each in found] == [
        (0, "NO_GROUP"),
        (1, "NO_GROUP"),
    ]
    assert "neither TOPIC nor" in semel("why", "g", f"{topic}:x", status=2).err


def test_why_follows_a_reader_to_the_transaction_that_holds_it(
    semel: CommandLine, topic: str
) -> None:
    """From no member, to an open transaction, to aborted records only, to nothing new."""
    causes: list[ReaderCause] = []

    async def work(client: SemelClient) -> None:
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)

        async def look() -> ReaderStanding:
            found = await client.admin().operators.explain_reader(topic, (topic, 0))
            causes.append(found.cause)
            return found

        async with client.consumer(topic, options) as consumer:
            consumer.subscribe([topic])
            while len(consumer.assignment()) < 2:
                await consumer.poll(timeout_ms=50)
            await look()
            async with writing(client, topic) as producer:
                held = await look()
                assert held.holder is not None
                assert held.holder.transactional_id == topic
                assert held.holder.outcome is KnownOutcome.ONGOING
                assert held.holder.client == "User:ANONYMOUS at 127.0.0.1"
                words = verdict(held)
                assert words.says.startswith(f"transaction '{topic}' (epoch 0")
                assert "times out in" in words.says
                assert "semel transactions abort" in words.do
                await producer.abort()
            while (await look()).cause is ReaderCause.OPEN_TRANSACTION:
                await consumer.poll(timeout_ms=50)
            async with writing(client, topic) as producer:
                await producer.commit(wait_until_visible=True)
            await look()
            with mock.patch.object(reader_check, "POLL_LATE_MS", 1):
                while (found := await look()).cause is ReaderCause.UNREAD:
                    pass  # Its next heartbeat tells.
            assert f"member {found.member_id} sends heartbeats" in verdict(found).says
            assert found.poll_age_ms
        await look()

    run(semel, work)
    short = [cause for at, cause in enumerate(causes) if at == 0 or causes[at - 1] != cause]
    expected = ["ALL_READ", "OPEN_TRANSACTION", "ABORTED_ONLY", "UNREAD", "NOT_POLLED", "NO_MEMBER"]
    assert short == expected
    text = semel("why", topic, f"{topic}:0").out
    assert "has no members" in text
    assert "start a consumer of this group" in text


# -- the audit -----------------------------------------------------------------------------------


def test_the_audit_lists_who_changed_what(semel: CommandLine, topic: str) -> None:
    fence = ("transactions", "fence", "nobody-has-this", "--operator", "ada")
    semel(*fence, "--reason", "runs twice", status=1)
    semel(*fence, "--dry-run", status=1)
    listed = semel("audit", "--format", "json").json
    fenced, created = listed["entries"][:2]
    assert (fenced["action"], fenced["end"]) == ("FenceProducer", "TRANSACTIONAL_ID_NOT_FOUND")
    assert (fenced["operator"], fenced["reason"]) == ("ada", "runs twice")
    assert (fenced["principal"], fenced["address"]) == ("User:ANONYMOUS", "127.0.0.1")
    assert (created["action"], created["end"]) == ("CreateTopics", "DONE")
    assert f'name: "{topic}"' in created["what"]
    rows = semel("audit", "--action", "FenceProducer", "--within", "3600", "--limit", "1").lines
    assert rows[0].split("\t")[:4] == ["TIME", "ACTION", "WHO", "FROM"]
    assert rows[1].split("\t")[1:5] == [
        *("FenceProducer", "User:ANONYMOUS (ada)", "127.0.0.1", "runs twice")
    ]
    cut = semel("audit", "--limit", "1")
    position = cut.err.split("--behind ")[1].strip()
    assert "CreateTopics" in semel("audit", "--behind", position, "--limit", "1").lines[1]
    assert semel("audit", "--principal", "User:nobody").lines[1:] == []
    assert semel("audit", "--address", "192.0.2.1").lines[1:] == []
    assert semel("audit", "--address", "127.0.0.1", "--limit", "1").lines[1:] != []


def test_the_audit_has_what_operators_do_to_groups_and_records(
    semel: CommandLine, topic: str
) -> None:
    semel("produce", topic, stdin="1\n2\n")
    at = f"{topic}:0"
    reset = ("groups", "reset-offsets", topic, "--topic", at, "--to-earliest")
    semel(*reset, "--dry-run")
    semel(*reset, "--reason", "read again")
    semel("groups", "delete-offsets", topic, "--topic", at, "--reason", "unused")
    semel(*reset)
    semel("groups", "delete", topic, "-y", "--reason", "gone")
    semel("topics", "delete-records", topic, "-p", "0", "--all", "-y", "--reason", "space")
    listed = semel("audit", "--format", "json").json["entries"]
    found = [each for each in reversed(listed) if topic in each["what"]]
    assert [(each["action"], each["reason"]) for each in found] == [
        ("CreateTopics", None),
        ("CommitOffsets", "read again"),
        ("DeleteOffsets", "unused"),
        ("CommitOffsets", None),
        ("DeleteGroups", "gone"),
        ("DeleteRecords", "space"),
    ]
    assert all(each["address"] == "127.0.0.1" and each["end"] == "DONE" for each in found)
    assert all("@" in each["operator"] for each in found[1:])
