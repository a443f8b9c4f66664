"""One cluster of several instances of each service, shared by the tests of this folder."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from aiosemel import ClientOptions, SemelClient
from semel_local import LocalCluster

_names = count(1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster() -> AsyncIterator[LocalCluster]:
    """Three brokers, two coordinators, two group coordinators."""
    async with LocalCluster(brokers=3, coordinators=2, group_coordinators=2) as cluster:
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
