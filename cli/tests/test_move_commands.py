"""Commands that move partitions, on a cluster of two brokers."""

from collections.abc import Iterator

import pytest
from command_line import CommandLine


def places(semel: CommandLine, topic: str) -> list[tuple[int, int | None]]:
    """Return leader and target of each partition."""
    described = semel("topics", "describe", topic, "--format", "json").json
    return [
        (description["leader_id"], description["moving_to"])
        for description in described["partitions"]
    ]


@pytest.fixture
def other(semel: CommandLine, topic: str) -> int:
    """The broker that does not lead partition 0."""
    return 1 - places(semel, topic)[0][0]


def test_a_partition_is_moved_and_back(semel: CommandLine, topic: str, other: int) -> None:
    semel("produce", topic, "-p", "0", stdin="one\n")
    ran = semel("topics", "move", topic, "-p", "0", "--to", str(other), "--wait")
    assert ran.err.splitlines() == ["1 partition moves", "1 partition has moved"]
    assert ran.lines[1].split("\t") == [topic, "0", f"broker-{other}", "-"]
    assert places(semel, topic)[0] == (other, None)
    semel("produce", topic, "-p", "0", stdin="two\n")
    assert semel("consume", topic, "--from-beginning", "--to-end").lines == ["one", "two"]
    back = semel("topics", "move", topic, "-p", "0", "--to", str(1 - other), "--format", "json")
    (moved,) = back.json["partitions"]
    assert moved["moving_to"] == 1 - other
    assert back.json["dry_run"] is False


def test_a_move_is_checked_and_shown_before_it_begins(
    semel: CommandLine, topic: str, other: int
) -> None:
    before = places(semel, topic)
    dry = semel("topics", "move", topic, "-p", "0", "--to", str(other), "--dry-run")
    assert "1 partition would move" in dry.err
    assert f"broker-{1 - other}\tbroker-{other}" in dry.out
    refused = semel("topics", "move", topic, "-p", "0", "--to", "7", status=1).err
    assert "no broker 7 has ever registered" in refused
    assert (
        "has no partition 2" in semel("topics", "move", topic, "-p", "2", "--to", "0", status=1).err
    )
    assert places(semel, topic) == before


def test_what_does_not_move_is_given_up_without_harm(semel: CommandLine, topic: str) -> None:
    ran = semel("topics", "move", topic, "--cancel", "--wait")
    assert "0 partitions move" in ran.err
    assert len(ran.lines) == 3


@pytest.mark.parametrize("options", [(), ("--to", "0", "--cancel")])
def test_a_move_has_a_place_to_go_to(
    semel: CommandLine, topic: str, options: tuple[str, ...]
) -> None:
    assert (
        "either --to NUMBER or --cancel" in semel("topics", "move", topic, *options, status=2).err
    )


@pytest.fixture
def reopened(semel: CommandLine) -> Iterator[None]:
    """Other tests need both brokers."""
    yield
    semel("cluster", "decommission", "broker-1", "--undo")


@pytest.mark.usefixtures("reopened")
def test_a_broker_is_emptied_and_taken_back(semel: CommandLine, topic: str) -> None:
    closed = semel("cluster", "decommission", "broker-1")
    assert "broker-1 is decommissioned, but not empty yet" in closed.err
    planned = semel("cluster", "rebalance", "--dry-run", "--format", "json").json
    assert {each["leader_id"] for each in planned["partitions"]} == {1}
    assert {each["moving_to"] for each in planned["partitions"]} == {0}
    semel("cluster", "rebalance", "--wait")
    assert places(semel, topic) == [(0, None), (0, None)]
    assert (
        "broker-1 is decommissioned and empty" in semel("cluster", "decommission", "broker-1").err
    )
    shown = semel("cluster", "describe", "--format", "json").json["instances"]
    brokers = {each["instance_id"]: each for each in shown if each["role"] == "broker"}
    assert (brokers[1]["decommissioned"], brokers[1]["leader_partitions"]) == (True, 0)
    assert "decommissioned" in semel("cluster", "describe").out
    assert "is decommissioned" in semel("topics", "move", topic, "--to", "1", status=1).err
    undone = semel("cluster", "decommission", "broker-1", "--undo", "--format", "json")
    assert undone.json == {"instance": "broker-1", "decommissioned": False, "leader_partitions": 0}
    assert "may lead partitions again" in undone.err
    semel("cluster", "rebalance", "--wait")
    assert sorted(places(semel, topic)) == [(0, None), (1, None)]
    assert semel("cluster", "rebalance").lines == ["TOPIC\tPARTITION\tLEADER\tMOVING-TO"]


def test_an_unknown_broker_is_not_decommissioned(semel: CommandLine) -> None:
    assert "no broker 7" in semel("cluster", "decommission", "broker-7", status=1).err


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("coordinator-0", 1, "coordinator 0 is the controller"),
        ("group-coordinator-7", 1, "no group coordinator 7 has ever registered"),
        ("1", 2, "'1' names no instance"),
        ("broker-x", 2, "'broker-x' names no instance"),
        ("bookkeeper-1", 2, "'bookkeeper-1' names no instance"),
    ],
)
def test_only_an_instance_that_may_go_is_decommissioned(
    semel: CommandLine, name: str, status: int, says: str
) -> None:
    assert says in semel("cluster", "decommission", name, status=status).err


def test_partitions_of_groups_are_led_by_group_coordinators(semel: CommandLine) -> None:
    ran = semel("topics", "move", "__consumer_offsets", "-p", "3", "--to", "0", "--dry-run")
    assert ran.lines[1].split("\t") == ["__consumer_offsets", "3", "group-coordinator-0", "-"]


@pytest.mark.parametrize(
    ("topic", "leader", "partitions"),
    [
        ("__consumer_offsets", "group-coordinator-0", range(50)),
        ("__transaction_state", "coordinator-0", range(1, 50)),
    ],
)
def test_without_a_partition_all_that_can_move_are_meant(
    semel: CommandLine, topic: str, leader: str, partitions: range
) -> None:
    for options in (("--to", "0", "--dry-run"), ("--cancel",)):
        ran = semel("topics", "move", topic, *options)
        rows = [line.split("\t") for line in ran.lines[1:]]
        assert rows == [[topic, str(partition), leader, "-"] for partition in partitions]


def test_where_nothing_moves_the_list_is_empty(semel: CommandLine) -> None:
    semel("cluster", "rebalance", "--wait")
    assert semel("cluster", "moves").lines == ["TOPIC\tPARTITION\tLEADER\tMOVING-TO"]
    assert semel("cluster", "moves", "--format", "json").json == {"partitions": []}
