"""How other commands find the cluster that `semel up` has started."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import CommandLine

from semel_cli.local.running_clusters import (
    RunningCluster,
    data_folder,
    forget_running,
    read_running,
    write_running,
)
from semel_cli.shared.cluster_choice import begin_command_line, find_bootstrap
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import SecurityOptions, find_security, use_security

UNUSED_PID = 2**22 + 1
"""No process has this number."""


def running(pid: int, *, folder: str = "somewhere", port: int = 9092) -> RunningCluster:
    """Return a cluster; one at a higher port was started later."""
    return RunningCluster(
        bootstrap=f"127.0.0.1:{port}", folder=folder, pid=pid, started_ms=1_000 * port
    )


def found(given: str | None) -> str:
    """Return what one command line finds."""
    begin_command_line()
    return find_bootstrap(given)


def test_a_cluster_that_runs_is_found_until_it_is_forgotten() -> None:
    cluster = running(os.getpid())
    write_running(cluster)
    assert found(None) == cluster.bootstrap
    forget_running(cluster)
    assert read_running() == []


def test_of_several_clusters_the_last_one_that_runs_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = running(os.getpid(), folder="/first", port=1)
    second = running(os.getpid(), folder="/second", port=2)
    write_running(second)
    write_running(first)
    assert found(None) == second.bootstrap
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert found(None) == second.bootstrap
    assert "2 clusters run here: this is the last one, in /second" in capsys.readouterr().err
    forget_running(second)
    assert found(None) == first.bootstrap
    assert "the one used last, 127.0.0.1:2 in /second, has ended" in capsys.readouterr().err


def test_a_cluster_that_was_killed_hides_none_that_runs_and_is_forgotten_then() -> None:
    killed = running(UNUSED_PID, folder="/killed", port=2)
    write_running(running(os.getpid(), folder="/runs", port=1))
    write_running(killed)
    assert found(None) == "127.0.0.1:1"
    write_running(running(os.getpid(), folder="/new", port=3))
    assert killed not in read_running()


def test_an_address_that_is_given_comes_first() -> None:
    write_running(running(os.getpid()))
    assert found("other:1") == "other:1"


def test_a_cluster_that_was_killed_is_not_taken_for_running() -> None:
    write_running(running(UNUSED_PID))
    with pytest.raises(UsageError, match="not running any more"):
        found(None)


def test_only_the_cluster_itself_forgets_a_cluster() -> None:
    write_running(running(os.getpid()))
    forget_running(running(UNUSED_PID))
    assert read_running() == [running(os.getpid())]


@pytest.mark.parametrize("text", ["", "{", "{}", "[]"])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "state" / "semel" / "running" / "damaged.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert read_running() == []


def test_a_folder_that_is_not_absolute_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local" / "share" / "semel"


def test_a_user_without_a_home_has_no_cluster_and_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable)
    monkeypatch.setattr("os.getuid", lambda: 65_531)
    assert read_running() == []
    with pytest.raises(OSError, match="the user has no home folder"):
        write_running(running(os.getpid()))
    with pytest.raises(UsageError, match="which cluster"):
        found(None)
    assert "no home folder: set HOME or XDG_DATA_HOME" in CommandLine({})("up", status=1).err


def test_the_certificates_of_a_cluster_are_found_with_it() -> None:
    cluster = replace(running(os.getpid()), tls_ca="ca", tls_cert="cert", tls_key="key")
    write_running(cluster)
    found = find_security(cluster.bootstrap)
    assert found is not None
    assert found.ssl_ca_location == Path("ca")
    assert found.ssl_certificate_location == Path("cert")
    assert find_security(cluster.bootstrap.replace("127.0.0.1", "localhost")) == found
    assert find_security("other:1") is None


def test_a_cluster_without_certificates_is_plain_text() -> None:
    write_running(running(os.getpid()))
    assert find_security(running(os.getpid()).bootstrap) is None


def test_options_say_how_to_connect_before_anything_that_is_found(tmp_path: Path) -> None:
    token = tmp_path / "token"
    cluster = replace(running(os.getpid()), tls_ca="ca", tls_cert="cert", tls_key="key")
    write_running(cluster)
    use_security(SecurityOptions(token_file=token, server_name="semel"))
    found = find_security(cluster.bootstrap)
    use_security(SecurityOptions(tls=False))
    plain = find_security(cluster.bootstrap)
    use_security(SecurityOptions())
    assert found is not None
    assert (found.tls, found.token, found.ssl_ca_location) == (True, token, None)
    assert plain is not None
    assert not plain.tls
