"""Back-ups: a whole cluster goes back to one point in time; one older volume alone does not."""

import shutil
from pathlib import Path

import pytest

from aiosemel import ConsumerOptions, OffsetReset, SemelClient
from semel_local import ProcessCluster
from semel_local.errors import LocalClusterError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


async def store(cluster: ProcessCluster, value: bytes) -> None:
    """Store a record, in a transaction of a producer that is always the same."""
    async with SemelClient(cluster.bootstrap) as client:
        await client.admin().create_topic("kept", partitions=1, exist_ok=True)
        async with client.transactional_producer("keeper") as producer:
            await producer.init_transactions()
            async with producer.transaction(wait_until_visible=True):
                await producer.send("kept", value)


async def stored(cluster: ProcessCluster, count: int) -> list[bytes | None]:
    """Return the first records."""
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with SemelClient(cluster.bootstrap) as client, client.consumer(options=options) as reader:
        reader.assign([("kept", 0)])
        found: list[bytes | None] = []
        while len(found) < count:
            polled = await reader.poll()
            found += [record.value for records in polled.values() for record in records]
        return found


def put_back(backup: Path, folder: Path) -> None:
    """Restore a folder as it was."""
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)


async def test_a_whole_cluster_goes_back_to_one_point_in_time(tmp_path: Path) -> None:
    folder, backup = tmp_path / "cluster", tmp_path / "backup"
    async with ProcessCluster(folder) as cluster:
        await store(cluster, b"before")
    shutil.copytree(folder, backup)
    async with ProcessCluster(folder) as cluster:
        await store(cluster, b"lost")
    put_back(backup, folder)
    async with ProcessCluster(folder) as cluster:
        await store(cluster, b"after")
        assert await stored(cluster, 2) == [b"before", b"after"]


async def test_one_older_volume_is_refused_however_often_it_is_started(tmp_path: Path) -> None:
    """A supervisor starts again what ends; each start raises the claim epoch of a journal."""
    folder, backup = tmp_path / "cluster", tmp_path / "backup"
    async with ProcessCluster(folder) as cluster:
        await store(cluster, b"before")
    shutil.copytree(folder / "broker-0", backup)
    async with ProcessCluster(folder) as cluster:
        await store(cluster, b"acknowledged")
    put_back(backup, folder / "broker-0")
    for _ in range(3):
        with pytest.raises(LocalClusterError, match=r"old backup|copy"):
            async with ProcessCluster(folder):
                pass
