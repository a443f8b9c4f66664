"""Compacted topics on the command line: keys, and tombstones."""

import json

from command_line import CommandLine


def test_a_compacted_topic_asks_for_keys_and_takes_tombstones(semel: CommandLine) -> None:
    # No pass of compaction takes the first record away before it is read.
    late = ("--config", "min.compaction.lag.ms=3600000")
    semel("topics", "create", "prices", "--config", "cleanup.policy=compact", *late)
    refused = semel("produce", "prices", stdin="apples\n", status=1).err
    assert "the topic is compacted: give each record a key" in refused
    assert "--key-separator" in refused
    semel("produce", "prices", "--key-separator", ":", stdin="apples:3\n")
    semel("produce", "prices", "--format", "json", stdin='{"key": "apples", "value": null}\n')
    read = semel("consume", "prices", "--from-beginning", "-n", "2", "--format", "json").lines
    assert [json.loads(line)["value"] for line in read] == ["3", None]
