"""A command names a missing thing before it does anything about it."""

import pytest
from command_line import CommandLine

from semel_cli.shared import command_session


@pytest.mark.parametrize(
    "options",
    [(), ("--transactional-id", "nowhere"), ("-p", "0", "--expected-offset", "0")],
    ids=["each", "one", "batch"],
)
def test_nothing_is_produced_to_a_topic_that_is_not_there(
    semel: CommandLine, options: tuple[str, ...]
) -> None:
    refused = semel("produce", "nowhere", *options, stdin="one\n", status=1)
    assert refused.err == "semel: no topic is named 'nowhere'\n"
    assert "nowhere" not in semel("transactions", "list").out


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"partition": 2}', "topic {topic} has 2 partitions, no partition 2"),
        (f'{{"value": "{"x" * 1_000_000}"}}', "--max-request-size (1,000,000)"),
    ],
    ids=["partition", "size"],
)
@pytest.mark.parametrize("as_one", [False, True], ids=["each", "one"])
def test_a_record_that_fits_nowhere_is_named_by_its_line(
    semel: CommandLine, topic: str, line: str, why: str, as_one: bool
) -> None:
    options = ("--transactional-id", topic) if as_one else ()
    stdin = f'{{"value": "good"}}\n{line}\n'
    refused = semel("produce", topic, "--format", "json", *options, stdin=stdin, status=1)
    sentence = refused.err.splitlines()[-1]
    assert sentence.startswith("semel: line 2 of the input cannot be stored: ")
    assert why.replace("{topic}", topic) in sentence
    assert sentence.endswith("2 records read, none visible") is as_one


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("topics", "delete", "nowhere"), "no topic is named 'nowhere'"),
        (("topics", "delete-records", "nowhere", "--all"), "no topic is named 'nowhere'"),
        (("groups", "delete", "nobody"), "there is no group 'nobody'"),
    ],
)
def test_no_question_is_asked_about_deleting_a_missing_thing(
    semel: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    assert semel(*arguments, status=1).err == f"semel: {sentence}\n"


def test_of_several_topics_only_those_are_asked_for_that_are_there(
    semel: CommandLine, topic: str
) -> None:
    delete = ("topics", "delete", "nowhere", topic)
    assert f"Delete {topic} with all records?" in semel(*delete, stdin="n\n", status=1).err
    assert topic in semel("topics", "list").out
    deleted = semel(*delete, stdin="y\n", status=1).err.splitlines()
    assert deleted[-2:] == [
        f"Delete {topic} with all records? [y/N]: {topic} is deleted",
        "semel: no topic is named 'nowhere'",
    ]
    assert semel(*delete, "--if-exists").err == ""


def test_records_that_cannot_be_deleted_are_not_asked_for(semel: CommandLine, topic: str) -> None:
    delete = ("topics", "delete-records", topic)
    refused = semel(*delete, "-p", "2", "--all", status=1).err
    assert refused == f"semel: topic {topic} has 2 partitions, no partition 2\n"
    assert "past the high watermark 0" in semel(*delete, "--before-offset", "1", status=1).err


def test_what_is_asked_is_no_part_of_the_result(semel: CommandLine, topic: str) -> None:
    delete = ("topics", "delete-records", topic, "--all")
    assert semel(*delete, stdin="y\n").lines[0] == "PARTITION\tSTART\tDELETED"
    assert semel(*delete, stdin=b"\xff\n", status=1).out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("transactions", "describe-producers", "TOPIC", "2"),
        ("groups", "reset-offsets", "readers", "--to-earliest", "-t", "TOPIC:0,2"),
        ("groups", "delete-offsets", "readers", "-t", "TOPIC:2"),
    ],
)
def test_a_partition_that_is_not_there_is_refused_and_not_waited_for(
    semel: CommandLine, topic: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A wait for it would never end: the test would not end in time.
    monkeypatch.setattr(command_session, "API_TIMEOUT_MS", 10**9)
    for name, sentence in [
        (topic, f"topic {topic} has 2 partitions, no partition 2"),
        ("nowhere", "no topic is named 'nowhere'"),
    ]:
        named = [argument.replace("TOPIC", name) for argument in arguments]
        assert semel(*named, status=1).err == f"semel: {sentence}\n"
