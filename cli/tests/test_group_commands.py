"""The commands that change groups, on a real cluster."""

import subprocess
import sys

import pytest
from command_line import CommandLine


@pytest.fixture
def group(semel: CommandLine, topic: str) -> str:
    """A group that has read five records of a partition, and has no members."""
    group = f"readers of {topic}"
    semel("produce", topic, "-p", "0", stdin="1\n2\n3\n4\n5\n")
    semel("consume", topic, "--group", group, "--from-beginning", "--timeout", "2")
    return group


def offset(semel: CommandLine, group: str) -> int | None:
    """Return what a group has committed in partition 0."""
    described = semel("groups", "describe", group, "--format", "json").json
    found = [
        description["committed_offset"]
        for description in described["offsets"]
        if description["partition"] == 0
    ]
    return found[0] if found else None


def reset(semel: CommandLine, group: str, topic: str, *options: str) -> dict[str, int]:
    """Reset partition 0; return what is said about it."""
    command = ("groups", "reset-offsets", group, "--topic", f"{topic}:0", "--format", "json")
    (change,) = semel(*command, *options).json
    return {"before": change["before"], "after": change["after"]}


def test_offsets_are_reset_to_a_place_of_each_kind(
    semel: CommandLine, topic: str, group: str
) -> None:
    assert offset(semel, group) == 5
    assert reset(semel, group, topic, "--to-earliest") == {"before": 5, "after": 0}
    assert reset(semel, group, topic, "--shift-by", "3") == {"before": 0, "after": 3}
    assert reset(semel, group, topic, "--to-offset", "99") == {"before": 3, "after": 5}
    assert reset(semel, group, topic, "--shift-by", "-9") == {"before": 5, "after": 0}
    assert reset(semel, group, topic, "--to-latest") == {"before": 0, "after": 5}
    assert reset(semel, group, topic, "--to-datetime", "2001-01-01") == {"before": 5, "after": 0}
    assert reset(semel, group, topic, "--to-timestamp", f"{1 << 50}") == {"before": 0, "after": 5}
    assert offset(semel, group) == 5


def test_a_dry_run_changes_nothing(semel: CommandLine, topic: str, group: str) -> None:
    command = ("groups", "reset-offsets", group, "--to-earliest", "--dry-run")
    assert "dry run" in semel(*command).err
    semel("groups", "delete-offsets", group, "--topic", f"{topic}:0", "--dry-run")
    assert f"{group} would be deleted" in semel("groups", "delete", group, "--dry-run").err
    assert offset(semel, group) == 5


def test_a_dry_run_is_refused_as_the_deletion_would_be(
    semel: CommandLine, topic: str, group: str, bootstrap: str
) -> None:
    command = [sys.executable, "-m", "semel_cli", "consume", topic, "--group", group]
    reader = subprocess.Popen([*command, "--bootstrap", bootstrap])
    refused = {
        ("delete", group, "--yes"): "has 1 members",
        ("delete", "nobody's", "--yes"): "there is no group",
        ("delete-offsets", group, "--topic", topic): f"reads topic '{topic}'",
        ("delete-offsets", group, "--topic", f"{topic}:7"): "has 2 partitions, no partition 7",
    }
    try:
        while not semel("groups", "describe", group, "--format", "json").json["members"]:
            pass
        for deletion, sentence in refused.items():
            for options in ((), ("--dry-run",)):
                assert sentence in semel("groups", *deletion, *options, status=1).err
    finally:
        reader.terminate()
        reader.wait()


def test_offsets_and_groups_are_deleted(semel: CommandLine, topic: str, group: str) -> None:
    deleted = semel(
        "groups", "delete-offsets", group, "--topic", f"{topic}:0", "--format", "json"
    ).json
    assert deleted == [{"topic": topic, "partition": 0, "before": 5}]
    reset(semel, group, topic, "--to-offset", "2")
    assert f"{group} is deleted" in semel("groups", "delete", group, "--yes").err
    assert "there is no group" in semel("groups", "describe", group, status=1).err
    assert "there is no group" in semel("groups", "delete", group, "--yes", status=1).err


def test_what_cannot_be_reset_is_said_in_a_sentence(
    semel: CommandLine, topic: str, group: str
) -> None:
    command = ("groups", "reset-offsets", group)
    assert "no place to reset to: give one of" in semel(*command, status=2).err
    assert "2 places" in semel(*command, "--to-latest", "--to-earliest", status=2).err
    wrong = semel(*command, "--to-latest", "--topic", f"{topic}:x", status=2)
    assert "must be NAME or NAME:0,1,2" in wrong.err
    both = ("--to-datetime", "2001-01-01", "--to-timestamp", "1")
    assert "both given" in semel(*command, *both, status=2).err
    refused = semel("groups", "reset-offsets", "new", "-t", topic, "--shift-by", "1", status=1)
    assert "no committed offset to shift from" in refused.err
