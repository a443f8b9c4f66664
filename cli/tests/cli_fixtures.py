"""Fixtures: a cluster, the command line on it, and a user's folders that hold nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_process import cluster_process
from command_line import CommandLine


@pytest.fixture(autouse=True)
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see, or touch, what the user who runs it has."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("SEMEL_BOOTSTRAP", raising=False)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    with cluster_process() as address:
        yield address


@pytest.fixture
def semel(bootstrap: str) -> CommandLine:
    """The command line, on a cluster."""
    return CommandLine({"SEMEL_BOOTSTRAP": bootstrap})


@pytest.fixture
def topic(semel: CommandLine, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with two partitions."""
    name = request.node.name.replace("[", "-").replace("]", "").replace(" ", "-")
    semel("topics", "create", name, "--partitions", "2")
    return str(name)
