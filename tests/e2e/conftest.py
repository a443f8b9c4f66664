"""One cluster of several instances of each service, shared by the tests of this folder."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from aiosemel import ClientOptions, SemelClient
from semel_local import LocalCluster
from semel_local.layout import Role

_names = count(1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster() -> AsyncIterator[LocalCluster]:
    """Three brokers, two coordinators, two group coordinators; rebalances take half a second."""
    settings = {Role.GROUP_COORDINATOR: {"group_consumer_heartbeat_interval_ms": 500}}
    async with LocalCluster(
        brokers=3, coordinators=2, group_coordinators=2, settings=settings
    ) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def client(cluster: LocalCluster) -> AsyncIterator[SemelClient]:
    """A client of that cluster."""
    async with cluster.client(ClientOptions(retry_backoff_ms=10)) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def topic(client: SemelClient) -> str:
    """A new topic of four partitions, spread over the brokers."""
    topic = f"topic-{next(_names)}"
    await client.admin().create_topic(topic, partitions=4)
    return topic


@pytest.fixture
def name() -> str:
    """A name that no other test has used: for groups and transactional ids."""
    return f"name-{next(_names)}"


@pytest.fixture
def mount_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a disk in memory of so many bytes, which only root can; the test is skipped if not."""
    mount, umount = (shutil.which(name) or "/bin/false" for name in ("mount", "umount"))
    folder = tmp_path / "disk"

    def mounted(size_bytes: int) -> Path:
        folder.mkdir()
        command = (mount, "-t", "tmpfs", "-o", f"size={size_bytes}", "semel-test", str(folder))
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("only root can mount a small disk")
        return folder

    yield mounted
    if folder.is_mount():
        subprocess.run((umount, "--lazy", str(folder)), check=True)
