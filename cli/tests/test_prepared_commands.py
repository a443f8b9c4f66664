"""Prepared transactions on the command line: find them, see what would happen, end them."""

import asyncio

import pytest
from command_line import CommandLine

from aiosemel import SemelClient


def prepare(semel: CommandLine, topic: str, *values: bytes) -> None:
    """Prepare a transaction with these values, under the topic's name; then go away."""

    async def prepared() -> None:
        async with SemelClient(semel.environment["SEMEL_BOOTSTRAP"]) as client:
            producer = client.transactional_producer(topic)
            await producer.init_transactions()
            await producer.begin_transaction()
            for value in values:
                await producer.send(topic, value, partition=0)
            await producer.prepare()

    asyncio.run(prepared())


def read(semel: CommandLine, topic: str) -> list[str]:
    """Read all that is there now."""
    return semel("consume", topic, "--from-beginning", "--to-end").lines


def test_what_is_prepared_is_found_and_committed(semel: CommandLine, topic: str) -> None:
    prepare(semel, topic, b"1", b"2")
    listed = semel("transactions", "list", "--state", "prepared", "--format", "json").json
    (found,) = (entry for entry in listed if entry["transactional_id"] == topic)
    assert (found["producer_epoch"], found["state"]) == (0, "Prepared")
    described = semel("transactions", "describe", topic, "--format", "json").json
    assert described["transactions"][0]["prepared_time_ms"] > 0
    complete = ("transactions", "complete", topic, "0", "--commit")
    rehearsed = semel(*complete, "--dry-run")
    assert "Nothing was done" in rehearsed.err
    assert f"Wrote to\t{topic}-0" in rehearsed.lines
    assert read(semel, topic) == []
    reason = ("--reason", "the bank has paid")
    assert semel(*complete, *reason, "--format", "json").json["outcome"] == "COMMITTED"
    assert read(semel, topic) == ["1", "2"]
    assert "the bank has paid" in semel("audit", "--action", "CompletePreparedTxn").out
    assert "ended like this already" in semel(*complete).err


def test_what_is_prepared_can_be_aborted_and_then_not_committed(
    semel: CommandLine, topic: str
) -> None:
    prepare(semel, topic, b"1")
    done = semel("transactions", "complete", topic, "0", "--abort", "--format", "json").json
    assert done["participants"]["partitions"] == [{"topic": topic, "partition": 0}]
    failed = semel("transactions", "complete", topic, "0", "--commit", status=1)
    assert "is aborted" in failed.err
    assert read(semel, topic) == []


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("0",), 2, "--commit"),
        (("-1", "--commit"), 2, "EPOCH"),
        (("7", "--commit", "--dry-run"), 1, "not prepared"),
        (("7", "--commit"), 1, "never given out"),
        (("1", "--commit"), 1, "not prepared"),
    ],
)
def test_what_cannot_be_completed_is_said(
    semel: CommandLine, topic: str, arguments: tuple[str, ...], status: int, words: str
) -> None:
    prepare(semel, topic)
    failed = semel("transactions", "complete", topic, *arguments, status=status)
    assert words in failed.err


def test_an_id_that_is_not_there_cannot_be_completed(semel: CommandLine) -> None:
    failed = semel("transactions", "complete", "nobody", "0", "--abort", status=1)
    assert "nobody" in failed.err


def test_an_operator_who_completes_a_transaction_types_the_decision(semel: CommandLine) -> None:
    refused = semel("transactions", "complete", "nobody", "1", status=2).err
    assert "Give --commit or --abort" in refused
