"""The commands for topics, records, groups, transactions and the cluster, on a real cluster."""

import json
import os

import pytest
from command_line import CommandLine
from raw_produce import produce_raw

from semel_cli.shared import command_session
from semel_runtime.testing.payloads import header_bomb

PAIRS = "a:1\nb:2\nc:3\n"


def read(semel: CommandLine, topic: str, *options: str) -> list[str]:
    """Read all that is there now."""
    return semel("consume", topic, "--from-beginning", "--to-end", *options).lines


# -- topics


def test_a_topic_is_created_listed_described_and_deleted(semel: CommandLine) -> None:
    created = semel("topics", "create", "born", "-p", "3", "--format", "json").json
    assert [(each["name"], each["partitions"]) for each in created] == [("born", 3)]
    assert created[0] in semel("topics", "list", "--format", "json").json
    described = semel("topics", "describe", "born", "--format", "json").json
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    assert "born is deleted" in semel("topics", "delete", "born", "--yes").err
    assert "born" not in semel("topics", "list").out


def test_options_of_a_topic_are_set_shown_and_reset(semel: CommandLine) -> None:
    semel("topics", "create", "kept", "--config", "retention.ms=5000", "--config", "segment.ms=9")
    described = semel("topics", "describe", "kept", "--format", "json").json
    assert described["configs"] == {"retention.ms": "5000", "segment.ms": "9"}
    change = ("topics", "alter", "kept", "--config", "retention.bytes=7", "--reset", "segment.ms")
    dry = semel(*change, "--dry-run", "--format", "json").json
    assert dry["configs"] == {"retention.bytes": "7", "retention.ms": "5000"}
    assert "segment.ms\t9" in semel("topics", "describe", "kept").out
    assert "kept is changed" in semel(*change).err
    options = semel("topics", "configs", "kept", "--format", "json").json
    assert options["retention.bytes"]["value"] == "7"
    assert options["segment.ms"]["is_default"]


def test_an_option_that_cannot_be_is_refused_by_name_and_value(
    semel: CommandLine, topic: str
) -> None:
    refused = semel("topics", "alter", topic, "--config", "retention.ms=soon", status=2).err
    assert "retention.ms is 'soon': must be a whole number" in refused
    assert "NAME=VALUE" in semel("topics", "alter", topic, "--config", "x", status=2).err
    twice = ("--config", "segment.ms=1", "--config", "segment.ms=2")
    assert "twice" in semel("topics", "alter", topic, *twice, status=2).err
    assert "nothing to change" in semel("topics", "alter", topic, status=2).err


def test_a_topic_gets_more_partitions(semel: CommandLine) -> None:
    semel("topics", "create", "growing", "-p", "2")
    dry = semel("topics", "alter", "growing", "-p", "4", "--dry-run", "--format", "json").json
    assert dry["partitions"] == 4
    assert "PARTITIONS\t2" not in semel("topics", "alter", "growing", "-p", "4").out.upper()
    semel("produce", "growing", "-p", "3", stdin="one\n")
    assert read(semel, "growing") == ["one"]
    refused = semel("topics", "alter", "growing", "-p", "4", status=1).err
    assert "has 4 partitions already" in refused


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--partitions", "9", "--config", "nosuch=1"), 2),
        (("--partitions", "9", "--reset", "nosuch"), 2),
        (("--partitions", "1", "--config", "retention.ms=5000"), 1),
    ],
    ids=["config", "reset", "partitions"],
)
def test_of_changes_that_are_refused_none_is_made(
    semel: CommandLine, topic: str, options: tuple[str, ...], status: int
) -> None:
    semel("topics", "alter", topic, *options, status=status)
    described = semel("topics", "describe", topic, "--format", "json").json
    assert (len(described["partitions"]), described["configs"]) == (2, {})


def test_the_oldest_records_are_deleted_after_a_question(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "-p", "1", stdin="one\ntwo\nthree\n")
    delete = ("topics", "delete-records", topic, "-p", "1", "--before-offset")
    dry = semel(*delete, "2", "--dry-run", "--format", "json")
    (partition,) = dry.json["partitions"]
    assert (partition["log_start_offset"], partition["deleted_offsets"]) == (2, 2)
    assert "2 offsets would be deleted" in dry.err
    asked = semel(*delete, "2", stdin="n\n", status=1).err
    assert f"Delete the records below offset 2 in partition 1 of {topic}?" in asked
    assert sorted(read(semel, topic)) == ["one", "three", "two"]
    assert semel(*delete, "2", "--yes").lines == ["PARTITION\tSTART\tDELETED", "1\t2\t2"]
    assert read(semel, topic) == ["three"]
    refused = semel(*delete, "9", "--yes", status=1).err
    assert "offset 9 is past the high watermark 3" in refused
    assert "Delete" not in semel("topics", "delete-records", topic, status=2).err
    asked = semel("topics", "delete-records", topic, "--all", stdin="n\n", status=1).err
    assert f"Delete all records in all partitions of {topic}?" in asked
    everything = semel("topics", "delete-records", topic, "--all", "--yes", "--format", "json")
    assert [each["log_start_offset"] for each in everything.json["partitions"]] == [0, 3]


def test_each_partition_is_described_with_its_own_offsets(semel: CommandLine) -> None:
    semel("topics", "create", "uneven", "-p", "4")
    for partition, lines in enumerate(("", "1\n", "1\n2\n", "1\n2\n3\n")):
        semel("produce", "uneven", "-p", str(partition), stdin=lines)
    described = semel("topics", "describe", "uneven", "--format", "json").json
    assert [each["high_watermark"] for each in described["partitions"]] == [0, 1, 2, 3]
    assert [each["last_stable_offset"] for each in described["partitions"]] == [0, 1, 2, 3]


def test_a_topic_that_exists_is_refused_unless_told_otherwise(
    semel: CommandLine, topic: str
) -> None:
    assert topic in semel("topics", "create", topic, status=1).err
    assert topic in semel("topics", "create", topic, "--if-not-exists").out


def test_of_several_topics_one_that_is_refused_keeps_no_other(
    semel: CommandLine, topic: str
) -> None:
    created = semel("topics", "create", "several-1", topic, "several-2", status=1)
    assert [line.split("\t")[0] for line in created.lines[1:]] == ["several-1", "several-2"]
    assert f"'{topic}'" in created.err
    names = ("several-1", "nowhere", "nobody's", "several-2")
    deleted = semel("topics", "delete", *names, "--yes", status=1)
    *done, first, second = deleted.err.splitlines()
    assert done == ["several-1 is deleted", "several-2 is deleted"]
    assert first.startswith("semel: ")
    assert second.startswith("semel: ")


def test_deleting_asks_first(semel: CommandLine, topic: str) -> None:
    semel("topics", "delete", topic, stdin="n\n", status=1)
    assert topic in semel("topics", "list").out
    semel("topics", "delete", topic, stdin="y\n")


def test_deleting_a_missing_thing_is_a_failure_unless_told_otherwise(semel: CommandLine) -> None:
    assert "nowhere" in semel("topics", "delete", "nowhere", "--yes", status=1).err
    semel("topics", "delete", "nowhere", "--yes", "--if-exists")


def test_a_topic_that_is_not_there_is_named(semel: CommandLine) -> None:
    assert semel("topics", "describe", "nowhere", status=1).err.startswith("semel: ")
    assert "nowhere" in semel("consume", "nowhere", status=1).err


def test_a_piped_table_is_plain_with_tabs(semel: CommandLine, topic: str) -> None:
    lines = semel("topics", "list").lines
    assert lines[0] == "TOPIC\tPARTITIONS\tID"
    assert any(line.startswith(f"{topic}\t2\t") for line in lines)


# -- records


def test_lines_become_records_and_records_lines(semel: CommandLine, topic: str) -> None:
    produced = semel("produce", topic, "-p", "1", stdin="one\n\nthree")
    assert produced.err == f"3 records stored in {topic}\n"
    assert read(semel, topic) == ["one", "", "three"]


def test_an_offset_that_the_log_does_not_hold_is_refused_with_the_range(
    semel: CommandLine, topic: str
) -> None:
    semel("produce", topic, "-p", "0", stdin="one\ntwo\n")
    from_second = ("consume", topic, "-p", "0", "--to-end", "--offset")
    assert semel(*from_second, "1").lines == ["two"]
    assert semel(*from_second, "2").lines == []
    refused = semel(*from_second, "7", status=1).err
    assert "7" in refused
    assert "0 to 2" in refused
    both = semel(*from_second, "1", "--from-beginning", status=2).err
    assert "--offset and --from-beginning" in both


def test_a_batch_that_cannot_be_opened_is_named_and_skipped_by_its_name(
    semel: CommandLine, topic: str, bootstrap: str
) -> None:
    semel("produce", topic, "-p", "0", stdin="before\n")
    produce_raw(bootstrap, topic, header_bomb())
    semel("produce", topic, "-p", "0", stdin="behind\n")
    from_the_start = ("consume", topic, "--from-beginning", "--to-end")
    refused = semel(*from_the_start, status=1)
    assert refused.lines == ["before"]
    assert f"{topic}-0, offset 1: batch at offset 1 has more than 1024 headers" in refused.err
    assert semel(*from_the_start, "--skip-batch", f"{topic}:0:1").lines == ["before", "behind"]
    past = semel("consume", topic, "-p", "0", "--offset", "2", "--to-end")
    assert past.lines == ["behind"]
    assert "TOPIC:PARTITION:OFFSET" in semel(*from_the_start, "--skip-batch", "x", status=2).err


def test_a_key_separator_may_be_any_byte(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "-K", os.fsdecode(b"\xff"), stdin=b"a\xff1\n")
    assert read(semel, topic, "--format", "key-value") == ["a\t1"]


def test_an_empty_key_separator_is_refused(semel: CommandLine) -> None:
    assert "--key-separator is empty" in semel("produce", "t", "-K", "", status=2).err


def test_keys_stand_before_the_separator(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--key-separator", ":", stdin=PAIRS)
    assert sorted(read(semel, topic, "--format", "key-value")) == ["a\t1", "b\t2", "c\t3"]


def test_json_of_one_topic_can_be_piped_into_another(semel: CommandLine, topic: str) -> None:
    record = {"key": "k", "value_base64": "/w==", "headers": [["trace", "1"]], "timestamp_ms": 5}
    semel("produce", topic, "--format", "json", "-p", "0", stdin=json.dumps(record))
    (line,) = read(semel, topic, "--format", "json")
    assert json.loads(line) == {**record, "topic": topic, "partition": 0, "offset": 0}
    semel("produce", topic, "--format", "json", stdin=line)
    assert len(read(semel, topic)) == 2


def test_reading_starts_where_it_is_told_and_stops_after_enough(
    semel: CommandLine, topic: str
) -> None:
    semel("produce", topic, "-p", "1", stdin="0\n1\n2\n3\n")
    options = ("--partition", "1", "--offset", "1", "--max-messages", "2", "--format", "%o=%v\\n")
    assert semel("consume", topic, *options).lines == ["1=1", "2=2"]


def test_without_from_beginning_only_what_comes_next_is_read(
    semel: CommandLine, topic: str
) -> None:
    semel("produce", topic, stdin="old\n")
    assert semel("consume", topic, "--timeout", "0.2").lines == []


def test_a_bad_line_is_named_and_what_came_before_is_stored(semel: CommandLine, topic: str) -> None:
    failed = semel("produce", topic, "-K", ":", stdin="a:1\nb2\n", status=1)
    assert f"1 record stored in {topic}" in failed.err
    assert "line 2 of the input is no record" in failed.err
    assert read(semel, topic) == ["1"]


# -- transactions


def test_the_whole_input_is_one_transaction(semel: CommandLine, topic: str) -> None:
    produced = semel("produce", topic, "-K", ":", "--transactional-id", topic, stdin=PAIRS)
    assert "3 records stored" in produced.err
    assert sorted(read(semel, topic)) == ["1", "2", "3"]


def test_a_bad_line_aborts_the_transaction(semel: CommandLine, topic: str) -> None:
    failed = semel(
        "produce", topic, "-K", ":", "--transactional-id", topic, stdin="a:1\nb2\n", status=1
    )
    assert "none visible" in failed.err
    assert read(semel, topic) == []


def test_transactional_ids_are_listed_and_described(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--transactional-id", topic, stdin="1\n")
    options = ("--id-pattern", topic.replace("[", "."), "--format", "json")
    (listed,) = semel("transactions", "list", *options).json
    assert listed["transactional_id"] == topic
    described = semel("transactions", "describe", topic, "--format", "json").json
    assert described["producer_id"] == listed["producer_id"]
    assert described["transaction_timeout_ms"] == 900_000
    assert semel("transactions", "describe", topic).lines[0] == f"Transactional id\t{topic}"


def test_the_outcome_of_a_transaction_can_be_asked_for(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--transactional-id", topic, stdin="1\n")
    known = semel("transactions", "outcome", topic, "0", "--format", "json").json
    assert (known["outcome"], known["abort_reason"]) == ("COMMITTED", None)
    assert (known["transactional_id"], known["current_epoch"]) == (topic, 1)
    assert "Markers\twritten everywhere" in semel("transactions", "outcome", topic, "0").lines
    shown = semel("transactions", "outcome", topic, "1").lines
    assert (shown[0], shown[2]) == ("Outcome\tONGOING", "Markers\t-")
    assert "never given out" in semel("transactions", "outcome", topic, "2", status=1).err


def test_filters_that_nothing_passes_leave_an_empty_list(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--transactional-id", topic, stdin="1\n")
    options = ("--state", "ongoing", "--running-longer-than", "1000", "--producer-id", "1")
    assert semel("transactions", "list", *options, "--format", "json").json == []


def test_a_transactional_id_that_is_not_there_is_named(semel: CommandLine) -> None:
    assert "nobody" in semel("transactions", "describe", "nobody", status=1).err


# -- groups and the cluster


def test_a_group_goes_on_where_it_stopped_and_shows_its_lag(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "-K", ":", "--transactional-id", topic, stdin=PAIRS)
    options = ("--group", topic, "--from-beginning", "--max-messages", "3")
    assert sorted(semel("consume", topic, *options).lines) == ["1", "2", "3"]
    assert lag_of(semel, topic) == 0
    semel("produce", topic, stdin="4\n")
    assert lag_of(semel, topic) == 1
    assert semel("consume", topic, "--group", topic, "--max-messages", "1").lines == ["4"]
    assert lag_of(semel, topic) == 0
    listed = semel("groups", "list", "--format", "json").json
    assert {"group_id": topic, "state": "empty", "members": 0} in listed
    assert semel("groups", "describe", topic).lines[0] == f"Group\t{topic}"


def lag_of(semel: CommandLine, group: str) -> int:
    described = semel("groups", "describe", group, "--format", "json").json
    return sum(each["lag"] for each in described["offsets"])


def test_a_group_that_is_not_there_is_named(semel: CommandLine) -> None:
    assert "nobody" in semel("groups", "describe", "nobody", status=1).err


def test_the_cluster_is_described_with_its_instances(semel: CommandLine) -> None:
    described = semel("cluster", "describe", "--format", "json").json
    roles = [f"{each['role']}-{each['instance_id']}" for each in described["instances"]]
    assert sorted(roles) == ["broker-0", "broker-1", "coordinator-0", "group-coordinator-0"]
    assert "coordinator-0" in semel("cluster", "describe").out


# -- what is wrong


@pytest.mark.parametrize("command", ["topics list", "demo orders", "demo income"])
def test_without_a_cluster_it_is_said_how_to_name_one(command: str) -> None:
    failed = CommandLine({})(*command.split(), status=2)
    assert "semel up" in failed.err
    assert "--bootstrap" in failed.err


def test_a_variable_that_is_empty_names_no_cluster() -> None:
    failed = CommandLine({"SEMEL_BOOTSTRAP": ""})("topics", "list", status=2)
    assert "which cluster?" in failed.err


def test_an_address_without_an_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_session, "API_TIMEOUT_MS", 200)
    failed = CommandLine({})("topics", "list", "--bootstrap", "127.0.0.1:1", status=1)
    assert "127.0.0.1:1" in failed.err
    assert "Traceback" not in failed.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("consume", "t", "--offset", "3"),
        ("consume", "t", "--partition", "0", "--group", "g"),
        ("consume", "t", "u", "--partition", "0"),
        ("consume", "t", "--format", "%q"),
        ("consume", "t", "--format", "xml"),
        ("consume", "t", "--isolation", "none"),
        ("produce", "t", "--format", "json", "--key-separator", ":"),
        ("topics", "create"),
        ("topics", "create", "t", "--partitions", "0"),
        ("topics", "list", "--bootstrap", "nowhere"),
        ("topics", "describe", os.fsdecode(b"\xff")),
        ("topics", "create", "t", "--partitions", "2147483648"),
        ("topics", "alter", "t", "--partitions", "2147483648"),
        ("topics", "move", "t", "--to", "2147483648"),
        ("topics", "move", "t", "--to", "1", "--partition", "2147483648"),
        ("topics", "delete-records", "t", "--before-offset", "9223372036854775808", "--yes"),
        ("cluster", "decommission", "broker-99999999999"),
        ("consume", "t", "--partition", "0", "--offset", "9223372036854775808"),
        ("consume", "t", "--timeout", "inf"),
        ("consume", "t", "--timeout", "nan"),
        ("groups", "reset-offsets", "g", "--to-timestamp", "9223372036854775808"),
        ("groups", "reset-offsets", "g", "--to-latest", "--topic", "t:0,99999999999"),
        ("groups", "reset-offsets", "g", "--to-latest", "--topic", "t:-1"),
        ("produce", "t", "--partition", "0", "--expected-offset", f"{10**23}"),
        ("transactions", "abort", "i", "--producer-id", f"{2**63}", "--epoch", "0"),
        ("transactions", "list", "--producer-id", f"{2**63}"),
        ("transactions", "list", "--running-longer-than", "1e300"),
        ("transactions", "find-hanging", "--open-longer-than", "inf"),
        ("transactions", "describe-producers", "t", "2147483648"),
        ("transactions", "outcome", "i", f"{2**63}"),
        ("doctor", "--stuck-after", "inf"),
        ("transactions", "list", "--state", "lost"),
        ("nonsense",),
    ],
    ids=lambda arguments: ascii(" ".join(arguments)),
)
def test_a_wrong_command_line_has_status_two(
    semel: CommandLine, arguments: tuple[str, ...]
) -> None:
    assert semel(*arguments, status=2).err


# -- operators


def test_nothing_hangs_and_the_doctor_is_content(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--transactional-id", topic, stdin="1\n")
    assert semel("transactions", "find-hanging", "--format", "json").json == []
    assert semel("transactions", "find-hanging").lines[0].startswith("OPEN-AT\tAGE")
    assert semel("doctor", "--format", "json").json == []


def test_producers_of_a_partition_are_described(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "-K", ":", "--transactional-id", topic, stdin="a:1\n")
    described = [
        semel("transactions", "describe-producers", topic, str(each), "--format", "json").json
        for each in (0, 1)
    ]
    assert sorted(each["high_watermark"] for each in described) == [0, 2]
    assert [each["last_stable_offset"] for each in described] == [
        each["high_watermark"] for each in described
    ]
    (producer,) = next(each["producers"] for each in described if each["producers"])
    assert (producer["producer_epoch"], producer["fence"]) == (0, 1)
    shown = semel("transactions", "describe-producers", topic, "0").lines
    assert shown[0] == f"Partition\t{topic}-0"


def test_an_operator_says_why_or_only_looks(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--transactional-id", topic, stdin="1\n")
    (listed,) = semel("transactions", "list", "--id-pattern", topic, "--format", "json").json
    names = ("--producer-id", str(listed["producer_id"]), "--epoch", "1")
    assert "--reason" in semel("transactions", "abort", topic, *names, status=2).err
    looked = semel("transactions", "abort", topic, *names, "--dry-run")
    assert looked.lines[0] == "Result\twould abort"
    assert semel("transactions", "outcome", topic, "1").lines[0] == "Outcome\tONGOING"
    done = semel("transactions", "abort", topic, *names, "--reason", "why not").lines
    assert done[0] == "Result\taborted"
    assert semel("transactions", "outcome", topic, "1").lines[:2] == [
        "Outcome\tABORTED",
        "Reason\tOPERATOR",
    ]
    assert "--reason" in semel("transactions", "fence", topic, status=2).err
    fence = ("transactions", "fence", topic, "--format", "json")
    assert semel(*fence, "--dry-run").json["fenced_epoch"] == 2
    assert semel(*fence, "--reason", "why not", "--operator", "me").json["fenced_epoch"] == 2
    assert semel(*fence, "--dry-run").json["fenced_epoch"] == 3


def test_the_doctor_names_both_owners_of_a_taken_id(semel: CommandLine, topic: str) -> None:
    semel("produce", topic, "--transactional-id", topic, stdin="1\n")
    for _ in range(3):
        semel("transactions", "fence", topic, "--reason", "a duel")
    found = semel("doctor", "--format", "json", status=3).json
    assert ("duel", True) in [(each["check"], topic in each["what"]) for each in found]
    assert "id of its own" in semel("doctor", status=3).out
