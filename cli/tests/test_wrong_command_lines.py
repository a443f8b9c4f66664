"""A command line that is wrong is refused before anything else: no cluster is even looked for."""

from pathlib import Path

import pytest
from command_line import CommandLine

semel = CommandLine({})
"""Without a cluster: a command that gets so far asks for one."""

NOT_A_PORT = ("--port", "none")
"""The second mistake of the line, so that nothing is started if the first is let through."""
ABORT = ("transactions", "abort", "orders-1", "--producer-id", "1", "--epoch", "0")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("consume", "orders", "--isolation", "snapshot"),
            "isolation 'snapshot' is neither read_committed nor read_uncommitted",
        ),
        (("topics", "alter", "orders"), "nothing to change"),
        (("topics", "move", "orders"), "where to?"),
        (("cluster", "decommission", "broker"), "'broker' names no instance"),
        (("groups", "reset-offsets", "reports"), "no place to reset to"),
        (
            ("groups", "reset-offsets", "reports", "--to-earliest", "-t", "orders:all"),
            "--topic is 'orders:all'",
        ),
        (("groups", "delete-offsets", "reports", "-t", "orders:"), "--topic is 'orders:'"),
        (("transactions", "list", "--state", "Open"), "state 'Open' is none of Empty, Ongoing"),
        (ABORT, "why?"),
        (("transactions", "fence", "orders-1"), "why?"),
        (("acls", "add", "--topic", "orders"), "a rule has --principal User:NAME"),
        (("acls", "remove", "-o", "read"), "which rules?"),
        (("quotas", "set", "--request-rate", "1"), "whose limits?"),
        (("quotas", "set", "--default"), "which limit?"),
        (("quotas", "remove"), "whose limits?"),
    ],
)
def test_a_wrong_command_line_is_refused_before_a_cluster_is_looked_for(
    arguments: tuple[str, ...], sentence: str
) -> None:
    assert semel(*arguments, status=2).err.startswith(f"semel: {sentence}")


@pytest.mark.parametrize(
    "arguments",
    [
        ("up", "--data", "", *NOT_A_PORT),
        ("up", "--otlp", "", *NOT_A_PORT),
        ("demo", "pizza", "--data", "", "--seed", "none"),
        ("recover", "broker-0", "--data", "", "--reason", "old copy", "--dry-run"),
        ("recover", "broker-0", "--data", "volume", "--reason", "", "--dry-run"),
        ("consume", "orders", "--group", ""),
        ("produce", "orders", "--transactional-id", ""),
        ("transactions", "list", "--id-pattern", ""),
    ],
)
def test_an_option_whose_variable_is_not_set_stands_for_nothing_else(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "is empty: name something" in semel(*arguments, status=2).err
    assert not list(tmp_path.iterdir())
