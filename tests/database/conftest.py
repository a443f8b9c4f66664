"""One small cluster, one PostgreSQL and one MariaDB for all tests of this folder."""

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from aiosemel import ClientOptions, SemelClient
from database.layers import (
    DJANGO_ON_MARIADB,
    DJANGO_ON_POSTGRES,
    ON_MARIADB,
    ON_POSTGRES,
    ON_SQLITE,
    Layer,
    layer_named,
)
from semel_local import LocalCluster
from semel_local.layout import Role
from semel_runtime.testing.mariadb import MariadbServer, missing_program
from semel_runtime.testing.postgres import PostgresCluster

_names = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """A server without standbys, which no test may stop."""
    with PostgresCluster(standbys=0) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A server that a test which kills it starts again."""
    with MariadbServer() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster() -> AsyncIterator[LocalCluster]:
    """One service of each kind; rebalances take half a second."""
    settings = {Role.GROUP_COORDINATOR: {"group_consumer_heartbeat_interval_ms": 500}}
    async with LocalCluster(settings=settings) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def client(cluster: LocalCluster) -> AsyncIterator[SemelClient]:
    async with cluster.client(ClientOptions(retry_backoff_ms=10)) as client:
        yield client


@pytest.fixture
def name() -> str:
    """A name that no other test has used: for groups and transactional ids."""
    return f"application-{next(_names)}"


@pytest_asyncio.fixture(loop_scope="session")
async def topic(client: SemelClient) -> str:
    """A new topic of two partitions."""
    topic = f"orders-{next(_names)}"
    await client.admin().create_topic(topic, partitions=2)
    return topic


POSTGRES = (pytest.mark.postgres, pytest.mark.timeout(180))
MARIADB = (
    pytest.mark.mariadb,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        missing_program() is not None,
        reason=f"{missing_program()} is not installed (Debian: apt-get install mariadb-server)",
    ),
)
ONE_AT_A_TIME = [
    pytest.param(DJANGO_ON_POSTGRES, marks=POSTGRES),
    pytest.param(DJANGO_ON_MARIADB, marks=MARIADB),
]
MARIADBS = [pytest.param(each, marks=MARIADB) for each in ON_MARIADB]
SERVERS = [*(pytest.param(each, marks=POSTGRES) for each in ON_POSTGRES), *MARIADBS]


def server_url(layer: str, request: pytest.FixtureRequest) -> str:
    """Return where the server of a layer is; starts it for the first layer."""
    if layer in {*ON_MARIADB, DJANGO_ON_MARIADB}:
        mariadb: MariadbServer = request.getfixturevalue("mariadb")
        return mariadb.url("mysql")
    postgres: PostgresCluster = request.getfixturevalue("postgres")
    return postgres.primary.url()


@pytest_asyncio.fixture(
    params=[*ON_SQLITE, *SERVERS, *ONE_AT_A_TIME],
    loop_scope="session",
)
async def layer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Layer]:
    """Each layer, on a database of its own."""
    async with layer_named(
        request.param, tmp_path, lambda: server_url(request.param, request)
    ) as layer:
        yield layer


@pytest_asyncio.fixture(params=SERVERS, loop_scope="session")
async def server_layer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Layer]:
    """Each layer of a database that several transactions can write at a time."""
    async with layer_named(
        request.param, tmp_path, lambda: server_url(request.param, request)
    ) as layer:
        yield layer


@pytest_asyncio.fixture(params=[*MARIADBS, ONE_AT_A_TIME[-1]], loop_scope="session")
async def mariadb_layer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Layer]:
    """Each layer of MariaDB, whose server the test may kill and start."""
    async with layer_named(
        request.param, tmp_path, lambda: server_url(request.param, request)
    ) as layer:
        yield layer


@pytest_asyncio.fixture(params=ON_SQLITE, loop_scope="session")
async def sqlite_layer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Layer]:
    """Each layer of SQLite, on the file ``application.db`` of the test's folder."""
    async with layer_named(request.param, tmp_path, str) as layer:
        yield layer


@pytest_asyncio.fixture(loop_scope="session")
async def sqlite(tmp_path: Path) -> AsyncIterator[Layer]:
    """One layer, for tests whose subject is not the layer."""
    async with layer_named("sqlite", tmp_path, str) as layer:
        yield layer
