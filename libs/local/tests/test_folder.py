"""A cluster's folder in use: processes of an earlier supervisor, and others that look like them."""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from semel_local import ProcessCluster
from semel_local.errors import FolderError
from semel_local.folder import PIDS_FILE, FolderLock, forget_pids, stop_leftovers, write_pids
from semel_local.process import ManagedProcess


async def left_running(folder: Path, name: str) -> ManagedProcess:
    """Start a process with the arguments of a service, and without a supervisor."""
    endless = "import threading; threading.Event().wait()"
    command = (sys.executable, "-c", endless, f"--data_dir={folder / name}", "--instance_id=0")
    process = ManagedProcess(name, command, folder / "logs" / f"{name}.log")
    await process.spawn()
    return process


async def test_services_of_a_supervisor_that_was_killed_are_stopped_first(tmp_path: Path) -> None:
    process = await left_running(tmp_path, "broker-0")
    assert process.pid is not None
    write_pids(tmp_path, {"broker-0": process.pid, "broker-1": os.getpid()})
    assert await stop_leftovers(tmp_path) == ["broker-0"]
    assert await process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("other", ["c1", "c/broker-0", "c x", "x/c"])
async def test_services_of_a_folder_with_a_similar_name_are_left_alone(
    tmp_path: Path, other: str
) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    process = await left_running(tmp_path / other, "broker-0")
    assert process.pid is not None
    write_pids(folder, {"broker-0": process.pid, "broker-1": process.pid})
    assert await stop_leftovers(folder) == []
    assert process.running
    await process.kill()


@pytest.mark.parametrize("noted", ["", "{", "[]", "7", '{"broker-0": "x"}', '{"broker-0": null}'])
async def test_a_damaged_note_of_who_runs_is_as_good_as_none(tmp_path: Path, noted: str) -> None:
    (tmp_path / PIDS_FILE).write_text(noted)
    assert await stop_leftovers(tmp_path) == []


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(FolderError, match=r"cannot write to .*: choose another"):
        await ProcessCluster(tmp_path).open()
    with full_disk(), pytest.raises(FolderError, match=r"cannot write .*semel\.pids \("):
        write_pids(tmp_path, {"broker-0": 1})
    with FolderLock(tmp_path), full_disk():
        forget_pids(tmp_path)


def test_a_folder_is_the_same_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert ProcessCluster(tmp_path / "link").folder == ProcessCluster(tmp_path / "folder").folder
