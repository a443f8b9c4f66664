"""What is not there is said by name, before anything is done about it."""

import pytest
from command_line import CommandLine


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
        (f'{{"value": "{"x" * 1_000_000}"}}', "record takes 1000016 bytes"),
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
    assert why.format(topic=topic) in sentence
    assert sentence.endswith("2 records read, none visible") is as_one
