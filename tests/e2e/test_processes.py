"""Services as processes: how they start, refuse to start, and end."""

import asyncio
import os
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cluster that was started and stopped once."""

    async def make(folder: Path) -> None:
        async with ProcessCluster(folder):
            pass

    folder = tmp_path_factory.mktemp("made")
    asyncio.run(make(folder))
    return folder


def test_help_names_every_setting_with_its_meaning(tmp_path: Path) -> None:
    helped = start(BROKER, tmp_path, "--help")
    assert helped.returncode == 0
    assert "--disk_reserve_bytes" in helped.stdout
    assert "Folder of this instance's journal" in helped.stdout


@pytest.mark.parametrize(
    "option",
    ["listeners", "advertised_listeners", "frame_listeners", "advertised_frame_listeners"],
)
def test_a_wrong_setting_is_named(tmp_path: Path, option: str) -> None:
    ended = start(BROKER, tmp_path, f"--{option}=nonsense")
    assert ended.returncode == 2
    assert f"broker: {option}: 'nonsense' is not of the form NAME://HOST:PORT" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_wrong_map_of_protocols_is_named(tmp_path: Path) -> None:
    ended = start(BROKER, tmp_path, "--listener_security_protocol_map=nonsense")
    assert ended.returncode == 2
    expected = "listener_security_protocol_map: 'nonsense' is not of the form NAME:PROTOCOL"
    assert expected in ended.stderr


def test_the_folder_of_another_service_is_refused(made: Path) -> None:
    ended = start(COORDINATOR, made / "broker-0")
    assert ended.returncode == 1
    assert "broker" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_folder_of_another_instance_is_refused(made: Path) -> None:
    ended = start(BROKER, made / "broker-0", "--instance_id=1", "--controller=127.0.0.1:1")
    assert ended.returncode == 1
    assert "broker 0" in ended.stderr


def test_a_layout_that_changes_is_refused(made: Path) -> None:
    ended = start(COORDINATOR, made / "coordinator-0", "--coordinators=3")
    assert ended.returncode == 1
    assert "coordinators" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_what_is_in_use_is_refused_and_sigterm_ends_with_status_zero(
    tmp_path: Path,
) -> None:
    async with ProcessCluster(tmp_path / "cluster") as cluster:
        controller = f"--controller={cluster.bootstrap}"
        folder = start(BROKER, tmp_path / "cluster" / "broker-0", controller)
        port = start(COORDINATOR, tmp_path / "x", f"--listeners=default://{cluster.bootstrap}")
        statuses = await cluster.stop()
    assert (folder.returncode, port.returncode) == (1, 1)
    assert "in use" in folder.stderr
    assert f"cannot listen on {cluster.bootstrap}" in port.stderr
    assert set(statuses.values()) == {0}
