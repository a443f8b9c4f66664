"""A real service on a disk that fails: its exit status, and its log."""

import asyncio
from pathlib import Path

import pytest

from aiosemel import SemelClient
from chaos.disk import Disk, compile_library
from semel_local import ProcessCluster
from semel_local.layout import Role, ServiceName
from semel_local.process import Ended
from semel_local.processes import StartOptions

pytestmark = pytest.mark.slow

BROKER = ServiceName(Role.BROKER, 0)


async def test_a_service_whose_fsync_fails_ends_in_one_line_and_comes_back(tmp_path: Path) -> None:
    library = compile_library(tmp_path)
    if library is None:
        pytest.skip("no C compiler, or no Linux: there are no faults of disks")
    disk = Disk(library, tmp_path / "control", tmp_path / "cluster")
    ended: asyncio.Queue[Ended] = asyncio.Queue()

    def options(name: ServiceName) -> StartOptions:
        return StartOptions(environment=disk.environment if name == BROKER else {})

    async with (
        asyncio.timeout(30),
        ProcessCluster(
            tmp_path / "cluster", on_ended=ended.put_nowait, start_options=options
        ) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        await client.admin().create_topic("t")
        producer = client.producer()
        await producer.send_and_wait("t", b"before")
        disk.fail_syncs()
        delivery = await producer.send("t", b"meanwhile")
        end = await ended.get()
        disk.mend()
        await cluster.start(end.name)
        # The SDK does not know whether the first attempt was stored. It sends again: one copy.
        assert (await delivery).offset == 1
    assert (end.name, end.exit_status) == ("broker-0", 1)
    assert "journal failed: the process must end" in end.log_tail
    assert "Traceback" not in end.log_tail
