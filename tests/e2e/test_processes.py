"""Services as processes: how they start, refuse to start, and end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from semel_local import ProcessCluster

pytestmark = pytest.mark.slow

BROKER = "semel_broker"
COORDINATOR = "semel_coordinator"


def start(module: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a service that is expected to end by itself."""
    command = [sys.executable, "-m", module, f"--data_dir={folder}", *options]
    environment = {name: value for name, value in os.environ.items() if "SEMEL" not in name}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, env=environment
    )


async def made(folder: Path) -> Path:
    """Make a cluster's folders, and return where they are."""
    async with ProcessCluster(folder):
        pass
    return folder


def test_help_names_every_setting_with_its_meaning(tmp_path: Path) -> None:
    helped = start(BROKER, tmp_path, "--help")
    assert helped.returncode == 0
    assert "--disk_reserve_bytes" in helped.stdout
    assert "Folder of this instance's journal" in helped.stdout


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    ended = start(BROKER, tmp_path, "--listeners=nonsense")
    assert ended.returncode == 2
    assert "listeners: " in ended.stderr
    assert "'nonsense' is not of the form NAME://HOST:PORT" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_the_folder_of_another_service_is_refused(tmp_path: Path) -> None:
    folder = await made(tmp_path)
    ended = start(COORDINATOR, folder / "broker-0")
    assert ended.returncode == 1
    assert "broker" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_the_folder_of_another_instance_is_refused(tmp_path: Path) -> None:
    folder = await made(tmp_path)
    ended = start(BROKER, folder / "broker-0", "--instance_id=1", "--controller=127.0.0.1:1")
    assert ended.returncode == 1
    assert "broker 0" in ended.stderr


async def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    async with ProcessCluster(tmp_path) as cluster:
        ended = start(BROKER, tmp_path / "broker-0", f"--controller={cluster.bootstrap}")
    assert ended.returncode == 1
    assert "in use" in ended.stderr


async def test_a_layout_that_changes_is_refused(tmp_path: Path) -> None:
    folder = await made(tmp_path)
    ended = start(COORDINATOR, folder / "coordinator-0", "--coordinators=3")
    assert ended.returncode == 1
    assert "coordinators" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with ProcessCluster(tmp_path / "cluster") as cluster:
        listener = f"--listeners=default://{cluster.bootstrap}"
        ended = start(COORDINATOR, tmp_path / "other", listener)
    assert ended.returncode == 1
    assert f"cannot listen on {cluster.bootstrap}" in ended.stderr


async def test_sigterm_ends_every_service_with_status_zero(tmp_path: Path) -> None:
    async with ProcessCluster(tmp_path) as cluster:
        for name in cluster.names:
            cluster.signal(name, signal.SIGTERM)
        statuses = {name: await cluster.stop_service(name) for name in cluster.names}
    assert set(statuses.values()) == {0}
