"""A stopped instance's volume is recovered; with the cluster stopped, folders tell what it was."""

import shutil
from pathlib import Path

import pytest

from aiosemel import SemelClient
from semel_local import LocalCluster, ProcessCluster
from semel_local.errors import LocalClusterError
from semel_local.layout import CONTROLLER, Role, ServiceName
from semel_local.recovery import Recovery, Sources, ask_for_image, recover

pytestmark = pytest.mark.slow

BROKER = ServiceName(Role.BROKER, 0)
OTHER = ServiceName(Role.BROKER, 1)
LOST = Recovery(instance_id=0, operator="ann", reason="disk", now_ms=1_700_000_000_000, lost=True)


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """The folder of a cluster that is stopped, and whose first broker has lost its volume."""
    async with (
        ProcessCluster(tmp_path, brokers=2) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        await client.admin().create_topic("orders", partitions=2)
        for partition in range(2):
            await client.producer().send_and_wait("orders", b"one", partition=partition)
    shutil.rmtree(tmp_path / str(BROKER))
    return tmp_path


def told_by(folder: Path, *names: ServiceName, partial: bool = False) -> Sources:
    return Sources(folders={name: folder / str(name) for name in names}, partial=partial)


async def test_the_controllers_folder_tells_of_a_cluster_that_is_stopped(folder: Path) -> None:
    await recover(BROKER, folder / str(BROKER), LOST, told_by(folder, CONTROLLER))
    async with ProcessCluster(folder) as cluster, SemelClient(cluster.bootstrap) as client:
        for partition in range(2):
            await client.producer().send_and_wait("orders", b"two", partition=partition)
        consumer = client.consumer()
        ends = await consumer.end_offsets([("orders", 0), ("orders", 1)])
        assert sorted(ends.values()) == [2, LOST.floor + 1]


async def test_others_tell_of_it_only_if_the_controllers_folder_is_lost(folder: Path) -> None:
    with pytest.raises(LocalClusterError, match="--metadata-from coordinator-0=FOLDER"):
        await recover(BROKER, folder / str(BROKER), LOST, Sources(bootstrap="127.0.0.1:1"))
    with pytest.raises(LocalClusterError, match="folders of coordinator 0 are missing"):
        await recover(BROKER, folder / str(BROKER), LOST, told_by(folder, OTHER))
    await recover(BROKER, folder / str(BROKER), LOST, told_by(folder, OTHER, partial=True))


async def test_bootstrap_address_that_answers_tells_what_the_cluster_is() -> None:
    async with LocalCluster(brokers=2) as cluster:
        image = await ask_for_image(Sources(bootstrap=f"127.0.0.1:1, {cluster.bootstrap}"))
    assert len(image.instances) == 4
