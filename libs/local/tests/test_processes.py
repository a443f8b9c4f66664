"""A cluster of real processes: killed and started again on the same data, and stopped in order."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from semel_local import ProcessCluster
from semel_local.errors import FolderError, LocalClusterError, ServiceFailedError
from semel_local.folder import FolderLock
from semel_local.health import wait_serving
from semel_local.layout import Role, ServiceName
from semel_local.process import Ended, ManagedProcess
from semel_local.processes import StartOptions
from semel_local.supervised import supervised

pytestmark = pytest.mark.slow

NAMES = ("coordinator-0", "broker-0", "broker-1", "group-coordinator-0")


shared_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessCluster]:
    async with ProcessCluster(tmp_path_factory.mktemp("cluster"), brokers=2) as running:
        yield running


@shared_loop
async def test_every_service_is_a_process_that_serves(cluster: ProcessCluster) -> None:
    assert cluster.names == NAMES
    assert len(set(cluster.pids().values())) == len(NAMES)
    async with asyncio.timeout(50):
        await asyncio.gather(*(wait_serving(cluster.address(name)) for name in NAMES))


@shared_loop
async def test_a_killed_service_comes_back_at_its_address(cluster: ProcessCluster) -> None:
    before, address = cluster.pid("broker-1"), cluster.address("broker-1")
    await cluster.kill("broker-1")
    assert cluster.pid("broker-1") is None
    await cluster.start("broker-1")
    assert cluster.pid("broker-1") not in {None, before}
    assert cluster.address("broker-1") == address


async def test_all_services_stop_in_order_and_come_back_at_their_addresses(tmp_path: Path) -> None:
    first = ProcessCluster(tmp_path)
    async with first:
        addresses = {name: first.address(name) for name in first.names}
        statuses = await first.stop()
    assert statuses == dict.fromkeys(first.names, 0)
    async with ProcessCluster(tmp_path) as second:
        assert {name: second.address(name) for name in second.names} == addresses


async def test_a_broker_is_added_while_the_others_run_and_comes_back(tmp_path: Path) -> None:
    async with ProcessCluster(tmp_path) as first:
        pids = first.pids()
        assert await first.add(Role.BROKER) == "broker-1"
        assert pids.items() <= first.pids().items()
        async with asyncio.timeout(50):
            await wait_serving(first.address("broker-1"))
        addresses = {name: first.address(name) for name in first.names}
        assert len(set(addresses.values())) == len(addresses) == 4
    async with ProcessCluster(tmp_path) as second:
        assert {name: second.address(name) for name in second.names} == addresses


@shared_loop
async def test_a_second_cluster_in_the_same_folder_is_refused(cluster: ProcessCluster) -> None:
    with pytest.raises(FolderError, match=rf"running in .* already \(process {os.getpid()}\)"):
        await ProcessCluster(cluster.folder).open()
    assert len(cluster.pids()) == len(NAMES)


async def test_a_service_that_ends_by_itself_is_reported_with_its_log(tmp_path: Path) -> None:
    ended: asyncio.Queue[Ended] = asyncio.Queue()
    async with ProcessCluster(tmp_path, on_ended=ended.put_nowait) as cluster:
        await cluster.kill("broker-0")
        await cluster.start("broker-0")
        pid = cluster.pid("broker-0")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(50):
            end = await ended.get()
    assert (end.name, end.exit_status) == ("broker-0", -signal.SIGKILL)
    assert "service ready" in end.log_tail
    assert "killed by SIGKILL" in str(end)
    assert ended.empty()


async def test_a_service_that_ends_by_itself_is_started_again(tmp_path: Path) -> None:
    async with supervised(tmp_path, environment={}) as on:
        pid = on.cluster.pid("broker-0")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        assert (await on.next_end()).name == "broker-0"
        await on.cluster.wait_ready()

        assert on.cluster.pid("broker-0") not in (None, pid)
        assert len(on.ends) == 1


async def test_a_service_that_cannot_start_takes_the_others_down(tmp_path: Path) -> None:
    settings = {Role.BROKER: {"message_max_bytes": -1}}
    cluster = ProcessCluster(tmp_path, settings=settings)
    with pytest.raises(ServiceFailedError, match=r"broker-0 ended \(exit status 2\).*"):
        await cluster.open()
    assert cluster.pids() == {}


async def test_a_process_that_ignores_being_asked_is_killed(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
    process = ManagedProcess("deaf", _endless(tmp_path, before=deaf), tmp_path / "log")
    await process.spawn()
    async with asyncio.timeout(50):
        while "deaf" not in process.log_path.read_text():  # noqa: ASYNC110 - only its log says it
            await asyncio.sleep(0)
    assert await process.stop(grace_s=0.01) == -signal.SIGKILL


async def test_a_cluster_that_is_not_started_has_no_address(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match="not started"):
        _ = ProcessCluster(tmp_path).bootstrap


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="cannot write to"), FolderLock(tmp_path / "file"):
        pass


def _endless(folder: Path, *, before: str = "") -> list[str]:
    return [
        sys.executable,
        "-c",
        f"{before}\nimport threading; threading.Event().wait()",
        str(folder),
    ]


async def test_a_service_gets_options_of_its_own_at_each_start(tmp_path: Path) -> None:
    starts: list[str] = []

    def options(name: ServiceName) -> StartOptions:
        if name.role is not Role.BROKER:
            return StartOptions()
        starts.append(f"start {len(starts)}")
        return StartOptions(settings={"log_format": "json"}, environment={"PS1": "x"})

    async with ProcessCluster(tmp_path, start_options=options) as cluster:
        before = len(starts)
        await cluster.restart("broker-0")
        assert len(starts) == before + 1
        if sys.platform == "linux":
            assert b"PS1=x" in _environment(cluster.pid("broker-0"))
        assert '"event": "service ready"' in cluster.log_path("broker-0").read_text()
        assert '"event"' not in cluster.log_path("coordinator-0").read_text()


def _environment(pid: int | None) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


async def test_all_files_of_a_cluster_are_its_users_alone_whatever_the_umask(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "cluster"
    before = os.umask(0)
    try:
        async with ProcessCluster(folder, tls=True):
            pass
    finally:
        os.umask(before)
    open_to_others = {
        str(path.relative_to(tmp_path))
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o077
    }
    assert open_to_others == set()


async def test_others_are_shut_out_of_a_clusters_folder_that_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    async with ProcessCluster(folder):
        pass
    change_mode(folder, 0o755)
    async with ProcessCluster(folder) as cluster:
        assert cluster.mode_before == 0o755
        assert folder.stat().st_mode & 0o007 == 0


def change_mode(path: Path, mode: int) -> None:
    path.chmod(mode)
