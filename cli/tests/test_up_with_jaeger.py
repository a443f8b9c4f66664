"""`semel up --jaeger`, with a program in place of Jaeger that listens where it is told."""

import os
import signal
import sys
from pathlib import Path

import pytest
from command_process import command

pytestmark = pytest.mark.slow

LISTENS = """
import signal, socket, sys
addresses = [each.rpartition("=")[2] for each in sys.argv if ".host-port=" in each]
sockets = [socket.create_server((h, int(p))) for h, _, p in (a.rpartition(":") for a in addresses)]
print("Jaeger listens at", *addresses, flush=True)
signal.sigwait([signal.SIGTERM])
"""


@pytest.fixture(autouse=True)
def _jaeger_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "path" / "jaeger-all-in-one"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{LISTENS}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


@pytest.mark.timeout(150)
async def test_a_new_cluster_starts_with_jaeger_and_so_it_does_again(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    for _ in range(2):
        async with command("up", "--data", str(folder), "--port", "0", "--jaeger") as up:
            await up.until("Ready after")
            up.process.send_signal(signal.SIGINT)
            assert await up.ends() == 0
    assert (folder / "semel.jaeger.log").read_text().count("Jaeger listens at") == 2


async def test_jaeger_writes_nothing_into_the_folder_of_another_program(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    folder.mkdir()
    (folder / "inbox").touch()
    async with command("up", "--data", str(folder), "--port", "0", "--jaeger") as up:
        assert await up.ends() == 1
    assert "has files in it, but no cluster" in up.said[-1]
    assert [path.name for path in folder.iterdir()] == ["inbox"]
