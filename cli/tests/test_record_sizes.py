"""`semel produce` and the sizes that its option and the topic allow."""

import re

import pytest
from command_line import CommandLine


@pytest.mark.parametrize("transaction", [False, True])
def test_a_long_line_is_stored_once_option_and_topic_allow_it(
    semel: CommandLine, topic: str, transaction: bool
) -> None:
    line = "x" * 3_000_000
    options = ("--transactional-id", topic) if transaction else ()
    refused = semel("produce", topic, *options, stdin=f"{line}\n", status=1).err
    assert (
        f"topic {topic!r}: 3,000,016 bytes exceed --max-request-size (1,000,000); raise it up to"
        " 16,777,216, and the topic's max.message.bytes, or send smaller records"
    ) in refused
    options = (*options, "--max-request-size", "16777216")
    refused = semel("produce", topic, *options, stdin=f"small\n{line}\n", status=1).err
    assert f"topic {topic!r}: a record of 3,000,0" in refused
    assert "exceeds max.message.bytes (1,048,588)" in refused
    (command,) = re.findall(r"semel (topics alter .* --config max\.message\.bytes=\d+)", refused)
    semel(*command.split())
    assert "1 record stored" in semel("produce", topic, *options, stdin=f"{line}\n").err


def test_small_batches_of_a_topic_are_cut(semel: CommandLine, topic: str) -> None:
    semel("topics", "alter", topic, "--config", "max.message.bytes=100000")
    lines = [f"{number:0500}" for number in range(2_000)]
    semel("produce", topic, "-p", "0", stdin="\n".join(lines))
    consumed = semel("consume", topic, "--from-beginning", "--to-end")
    assert consumed.lines == lines
