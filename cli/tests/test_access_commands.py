"""`semel acls` and `semel quotas`: their changes, their output, and their refusals."""

import pytest
from command_line import CommandLine

RULE = ("--principal", "User:shop", "--operation", "read", "--topic", "orders")


def principals(semel: CommandLine, *options: str) -> list[str]:
    return [
        f"{each['principal']} {each['permission']} {each['operation']} {each['resource_name']}"
        for each in semel("acls", "list", *options, "--format", "json").json
    ]


def test_rules_are_added_listed_and_removed(semel: CommandLine) -> None:
    tried = semel("acls", "add", *RULE, "--operation", "write", "--dry-run", "--format", "json")
    assert [each["operation"] for each in tried.json] == ["read", "write"]
    assert "2 rules would be added" in tried.err
    assert principals(semel, "--principal", "User:shop") == []
    semel("acls", "add", *RULE, "--operation", "write")
    assert "0 rules are added" in semel("acls", "add", *RULE).err
    assert principals(semel, "--principal", "User:shop") == [
        "User:shop allow read orders",
        "User:shop allow write orders",
    ]
    would = semel("acls", "remove", "--principal", "User:shop", "--dry-run")
    assert "2 rules would be removed" in would.err
    semel("acls", "remove", *RULE)
    assert principals(semel, "--topic", "orders") == ["User:shop allow write orders"]
    semel("acls", "remove", "--principal", "User:shop")
    assert principals(semel, "--principal", "User:shop") == []


def test_rules_that_count_for_a_name_are_found_by_it(semel: CommandLine) -> None:
    whom = ("--principal", "User:prefix")
    semel("acls", "add", *whom, "-o", "all", "--topic", "pre-", "--prefixed", "--deny")
    assert principals(semel, *whom, "--topic", "pre-fix") == []
    assert principals(semel, *whom, "--topic", "pre-fix", "--match") == [
        "User:prefix deny all pre-"
    ]
    lines = semel("acls", "list", *whom).lines
    assert lines[1].split("\t") == ["User:prefix", "deny", "all", "topic", "pre-", "prefixed"]
    assert "0 rules are removed" in semel("acls", "remove", *whom, "--topic", "pre-").err
    semel("acls", "remove", *whom, "--topic", "pre-", "--prefixed")
    assert principals(semel, *whom) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("add", "--principal", "User:a"), "a rule has --principal"),
        (("remove", "--operation", "read"), "which rules?"),
    ],
)
def test_half_a_rule_is_refused(
    semel: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in semel("acls", *arguments, status=2).err


@pytest.mark.parametrize(
    "arguments",
    [
        ("acls", "remove", "--principal", "User:unset", "--topic", ""),
        ("acls", "remove", "--principal", "User:unset", "--group", ""),
        ("acls", "remove", "--principal", "User:unset", "--transactional-id", ""),
        ("acls", "remove", "--principal", "", "--topic", "unset"),
        ("acls", "list", "--principal", ""),
        ("quotas", "remove", "--default", "--user", ""),
        ("topics", "list", "--bootstrap", ""),
    ],
    ids=" ".join,
)
def test_a_name_that_is_empty_is_refused(semel: CommandLine, arguments: tuple[str, ...]) -> None:
    semel("acls", "add", "--principal", "User:unset", "-o", "read", "--topic", "unset")
    assert "empty: " in semel(*arguments, status=2).err
    assert principals(semel, "--principal", "User:unset") == ["User:unset allow read unset"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--principal", "shop", "-o", "read", "--topic", "t"), "User:name"),
        (("--principal", "User:a", "-o", "read", "--cluster"), "no rule can allow or deny"),
    ],
)
def test_a_rule_that_could_never_count_is_refused(
    semel: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in semel("acls", "add", *arguments, status=1).err


def limits_of(semel: CommandLine, user: str | None) -> dict[str, float]:
    listed = semel("quotas", "list", "--format", "json").json
    return {
        name: value
        for entry in listed
        if entry["user"] == user
        for name, value in entry["limits"].items()
    }


def test_limits_are_set_listed_and_removed(semel: CommandLine) -> None:
    tried = semel("quotas", "set", "--user", "shop", "--request-rate", "50", "--dry-run")
    assert "limits of shop would be changed" in tried.err
    assert limits_of(semel, "shop") == {}
    semel("quotas", "set", "--user", "shop", "--request-rate", "50")
    semel("quotas", "set", "--user", "shop", "--producer-byte-rate", "1000000")
    assert limits_of(semel, "shop") == {"request_rate": 50, "producer_byte_rate": 1_000_000}
    assert "shop\trequest_rate\t50" in semel("quotas", "list").lines
    semel("quotas", "remove", "--user", "shop", "--limit", "request_rate")
    assert limits_of(semel, "shop") == {"producer_byte_rate": 1_000_000}
    semel("quotas", "remove", "--user", "shop")
    assert limits_of(semel, "shop") == {}


def test_everybody_can_be_limited(semel: CommandLine) -> None:
    semel("quotas", "set", "--default", "--request-rate", "1000000")
    assert limits_of(semel, None) == {"request_rate": 1_000_000}
    semel("quotas", "remove", "--default")
    assert limits_of(semel, None) == {}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("set", "--request-rate", "1"), "whose limits?"),
        (("set", "--user", "a", "--default", "--request-rate", "1"), "whose limits?"),
        (("set", "--user", "a"), "which limit?"),
        (("remove",), "whose limits?"),
    ],
)
def test_half_a_limit_is_refused(
    semel: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in semel("quotas", *arguments, status=2).err


def test_a_rate_of_nothing_is_refused(semel: CommandLine) -> None:
    refused = semel("quotas", "set", "--user", "a", "--request-rate", "0", status=1)
    assert "request_rate is 0.0: must be 1 to" in refused.err
