"""The program that uses the port of `semel up`: named, if it is a cluster."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from semel_cli.local.port_user import named_port_user
from semel_cli.local.running_clusters import RunningCluster, write_running
from semel_local.errors import PortInUseError
from semel_local.layout import ClusterLayout, Role, ServiceName, write_layout


@pytest.fixture
def silent_port() -> Iterator[int]:
    """The port of a program that answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def sentence(port: int) -> str:
    """Return what `semel up` says of a port that is in use."""
    with pytest.raises(PortInUseError) as refused:
        async with named_port_user():
            raise PortInUseError(port)
    return str(refused.value)


def run_here(folder: Path, port: int) -> None:
    """Let a cluster run in this folder, as far as other commands can see."""
    write_running(
        RunningCluster(
            bootstrap=f"127.0.0.1:{port}", folder=str(folder), pid=os.getpid(), started_ms=1
        )
    )


async def test_the_own_cluster_at_a_port_is_named_with_its_folder(tmp_path: Path) -> None:
    run_here(tmp_path, 9092)
    assert await sentence(9092) == (
        f"port 9092 is in use by the cluster that `semel up` runs in {tmp_path}: stop that one, or"
        " choose another port (--port 9192, or --port 0 for any that is free)"
    )


async def test_a_broker_of_the_own_cluster_is_known_by_its_port(tmp_path: Path) -> None:
    names = [ServiceName(Role.COORDINATOR, 0), ServiceName(Role.BROKER, 0)]
    write_layout(
        tmp_path, ClusterLayout(dict(zip(names, (9092, 9093), strict=True)), dict.fromkeys(Role, 1))
    )
    run_here(tmp_path, 9092)
    assert f"the cluster that `semel up` runs in {tmp_path}" in await sentence(9093)


async def test_the_cluster_of_another_user_is_named_by_its_id(bootstrap: str) -> None:
    port = int(bootstrap.rpartition(":")[2])
    assert f"port {port} is in use by the Semel cluster " in await sentence(port)


async def test_a_program_that_is_no_cluster_stays_another_program(silent_port: int) -> None:
    assert "is in use by another program" in await sentence(silent_port)
