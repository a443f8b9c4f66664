"""Which cluster a command changes: it is said, and one that its user does not expect is refused."""

import os
import time

import pytest
import typer
from command_line import CommandLine

from semel_cli.local.running_clusters import (
    RunningCluster,
    forget_running,
    read_last_used,
    write_running,
)
from semel_cli.shared import cluster_choice, command_session
from semel_cli.shared.cluster_choice import Purpose, begin_command_line, find_bootstrap
from semel_cli.shared.command_errors import UsageError

UNUSED_PID = 2**22 + 1
"""No process has this number."""
LATER_MS = 10**9


@pytest.fixture(autouse=True)
def _own_command_line() -> None:
    begin_command_line()


def running(folder: str, *, started_ms: int = 0, pid: int | None = None) -> RunningCluster:
    """Let a cluster run, as far as others see; `started_ms` counts from now."""
    cluster = RunningCluster(
        bootstrap=f"127.0.0.1:{len(folder)}",
        folder=folder,
        pid=os.getpid() if pid is None else pid,
        started_ms=time.time_ns() // 1_000_000 + started_ms,
    )
    write_running(cluster)
    return cluster


def change() -> str:
    """Find the cluster as a command does that changes something."""
    begin_command_line()
    return find_bootstrap(None, Purpose.CHANGE)


def test_change_says_where_it_happens(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = running("/one")
    assert find_bootstrap(None) == cluster.bootstrap
    assert capsys.readouterr().err == ""
    assert change() == cluster.bootstrap
    assert capsys.readouterr().err == f"cluster {cluster.bootstrap} in /one\n"


def test_older_cluster_is_not_changed_when_the_one_used_last_has_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    older, newer = running("/older", started_ms=-2_000), running("/newer!", started_ms=-1_000)
    assert change() == newer.bootstrap
    forget_running(newer)
    with pytest.raises(UsageError, match=r"used last, 127.0.0.1:7 in /newer!, has ended: name the"):
        change()
    capsys.readouterr()
    assert find_bootstrap(None) == older.bootstrap
    assert f"this is cluster {older.bootstrap} in /older; the one" in capsys.readouterr().err
    with pytest.raises(UsageError):
        change()


def test_cluster_that_was_killed_counts_as_ended() -> None:
    running("/older", started_ms=-2_000)
    newer = running("/newer!", started_ms=-1_000)
    assert change() == newer.bootstrap
    running("/newer!", pid=UNUSED_PID)
    with pytest.raises(UsageError, match="has ended"):
        change()


def test_cluster_that_was_started_after_the_other_has_ended_is_expected() -> None:
    first = running("/first", started_ms=-1_000)
    assert change() == first.bootstrap
    forget_running(first)
    second = running("/second", started_ms=LATER_MS)
    assert change() == second.bootstrap


def test_second_cluster_beside_the_one_in_use_is_not_changed() -> None:
    first = running("/first", started_ms=-1_000)
    assert change() == first.bootstrap
    running("/second", started_ms=LATER_MS)
    with pytest.raises(UsageError, match="is another one that runs"):
        change()


def test_cluster_that_is_named_is_the_one_used_last() -> None:
    older, newer = running("/older", started_ms=-2_000), running("/newer!", started_ms=-1_000)
    assert change() == newer.bootstrap
    forget_running(newer)
    begin_command_line()
    assert find_bootstrap(older.bootstrap, Purpose.CHANGE) == older.bootstrap
    assert change() == older.bootstrap
    begin_command_line()
    assert find_bootstrap("far.example:1", Purpose.CHANGE) == "far.example:1"
    assert change() == older.bootstrap


@pytest.mark.parametrize("answer", [True, False])
def test_person_is_asked(monkeypatch: pytest.MonkeyPatch, *, answer: bool) -> None:
    def confirm(question: str) -> None:
        assert question.endswith("has ended. Change this one?")
        if not answer:
            raise typer.Abort

    older, newer = running("/older", started_ms=-2_000), running("/newer!", started_ms=-1_000)
    assert change() == newer.bootstrap
    forget_running(newer)
    monkeypatch.setattr(cluster_choice, "can_ask", lambda: True)
    monkeypatch.setattr(cluster_choice, "confirm", confirm)
    if answer:
        assert change() == older.bootstrap
        last = read_last_used()
        assert last is not None
        assert last.folder == "/older"
    else:
        with pytest.raises(typer.Abort):
            change()


def test_person_is_told_of_the_cluster_that_the_environment_names(
    semel: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = semel.environment["SEMEL_BOOTSTRAP"]
    line = f"cluster {address} (SEMEL_BOOTSTRAP)"
    assert line not in semel("topics", "create", "script").err
    monkeypatch.setattr(cluster_choice, "can_see", lambda: True)
    assert line in semel("topics", "create", "named-cluster").err
    assert semel("produce", "named-cluster", stdin="one\n").err.count(line) == 1
    assert line not in semel("topics", "list").err
    assert line not in semel("topics", "delete", "named-cluster", "--yes", "-b", address).err


def test_one_command_line_has_one_cluster(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the question and its deed, another cluster may start."""
    semel = CommandLine({})
    here = RunningCluster(bootstrap=bootstrap, folder="/here", pid=os.getpid(), started_ms=1)
    write_running(here)
    semel("topics", "create", "asked-about")
    monkeypatch.setattr(
        "semel_cli.shared.questions.confirm", lambda _: running("/x", started_ms=LATER_MS)
    )
    assert "asked-about is deleted" in semel("topics", "delete", "asked-about").err


# -- addresses that do not answer ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "nothing listens at 127.0.0.1:1; `semel up` starts a cluster"),
        ("nosuch.invalid:1", "the host name of nosuch.invalid:1 cannot be resolved"),
    ],
)
def test_address_that_does_not_answer_is_named_at_once_and_at_the_end(
    address: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_session, "API_TIMEOUT_MS", 900)
    said = CommandLine({})("topics", "list", "-b", address, status=1).err.splitlines()
    assert said[0].startswith(f"semel: no metadata from {address}, still trying: {says}")
    assert said[-1].startswith(f"semel: not done in time: {says}")
    assert "ipv4" not in "".join(said)


@pytest.mark.parametrize("address", ["::1:9092", "a b:9092", "localhost:\uff19\uff10\uff19\uff12"])
def test_bootstrap_of_no_address_is_a_wrong_command_line(address: str) -> None:
    refused = CommandLine({})("topics", "list", "-b", address, status=2).err
    assert "bootstrap address" in refused
