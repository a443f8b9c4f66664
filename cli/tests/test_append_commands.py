"""`semel produce --expected-offset`: the whole input at one offset, or nothing."""

import pytest
from command_line import CommandLine

AT = ("--partition", "0", "--expected-offset")


def read(semel: CommandLine, topic: str) -> list[str]:
    """Read all that is there now."""
    return semel("consume", topic, "--from-beginning", "--to-end").lines


def test_the_input_is_stored_where_it_was_expected_or_not_at_all(
    semel: CommandLine, topic: str
) -> None:
    stored = semel("produce", topic, *AT, "0", stdin="a\nb\n")
    assert f"2 records stored in {topic}-0 at offset 0" in stored.err
    failed = semel("produce", topic, *AT, "0", stdin="c\n", status=1)
    assert "ends at offset 2, not at 0" in failed.err
    assert f"Nothing is stored in {topic}" in failed.err
    semel("produce", topic, *AT, "2", "-K", ":", stdin="k:c\n")
    assert read(semel, topic) == ["a", "b", "c"]


def test_a_transaction_takes_an_offset_more_for_its_marker(semel: CommandLine, topic: str) -> None:
    transaction = ("--transactional-id", topic)
    semel("produce", topic, *AT, "0", *transaction, stdin="a\n")
    failed = semel("produce", topic, *AT, "1", *transaction, stdin="b\n", status=1)
    assert "ends at offset 2, not at 1" in failed.err
    semel("produce", topic, *AT, "2", *transaction, stdin="b\n")
    assert read(semel, topic) == ["a", "b"]


def test_records_keep_what_their_json_says(semel: CommandLine, topic: str) -> None:
    record = '{"key": "k", "value": "v", "partition": 0, "timestamp_ms": 5}'
    semel("produce", topic, *AT, "0", "--format", "json", stdin=record + "\n")
    options = ("--from-beginning", "--to-end", "--format", "json")
    found = semel("consume", topic, *options).json
    assert (found["key"], found["timestamp_ms"]) == ("k", 5)


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "words"),
    [
        (("--expected-offset", "0"), "a\n", 2, "--partition"),
        ((*AT, "-1"), "a\n", 2, "expected-offset"),
        ((*AT, "0"), "", 1, "nothing to append"),
        ((*AT, "0", "--format", "json"), '{"value": "v", "partition": 1}\n', 1, "partition 1"),
        ((*AT, "0"), ("x" * 1_000 + "\n") * 2_000, 1, "one batch"),
    ],
    ids=["no partition", "below 0", "empty", "other partition", "too much"],
)
def test_what_cannot_be_appended_is_said(
    semel: CommandLine, topic: str, arguments: tuple[str, ...], stdin: str, status: int, words: str
) -> None:
    assert words in semel("produce", topic, *arguments, stdin=stdin, status=status).err
