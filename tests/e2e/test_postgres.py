"""A cluster whose journals are on PostgreSQL: killed, and started again on empty disks."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiosemel import ConsumerOptions, IsolationLevel, OffsetReset, SemelClient
from semel_local import ProcessCluster
from semel_local.errors import ServiceFailedError
from semel_local.processes import StartOptions
from semel_runtime.testing.postgres import PASSWORD, PostgresCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TOPIC = "kept"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresCluster]:
    with PostgresCluster() as cluster:
        yield cluster


def cluster_on(url: str, folder: Path) -> ProcessCluster:
    """A cluster that keeps nothing in its folder but its logs and addresses."""
    environment = {"SEMEL_JOURNAL_URL": url, "SEMEL_JOURNAL_OPEN_TIMEOUT_MS": "1000"}
    options = StartOptions(environment=environment)
    return ProcessCluster(folder, start_options=lambda _: options)


async def transact(client: SemelClient, *, commit: bool, value: bytes) -> None:
    """Store a record in a transaction of a producer that is always the same."""
    async with client.transactional_producer("keeper") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(TOPIC, value)
        await producer.flush()
        await (producer.commit() if commit else producer.abort())


async def committed(client: SemelClient, count: int) -> list[bytes | None]:
    """Read the first committed records."""
    options = ConsumerOptions(
        isolation_level=IsolationLevel.READ_COMMITTED, auto_offset_reset=OffsetReset.EARLIEST
    )
    async with client.consumer(options=options) as reader:
        reader.assign([(TOPIC, 0)])
        found: list[bytes | None] = []
        while len(found) < count:
            polled = await reader.poll()
            found += [record.value for records in polled.values() for record in records]
        return found


async def test_services_that_are_killed_come_back_on_empty_disks(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    url = f"{postgres.primary.url()}?schema_prefix=moved"
    async with (
        cluster_on(url, tmp_path) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        await client.admin().create_topic(TOPIC, partitions=1)
        await transact(client, commit=True, value=b"first")
        await transact(client, commit=False, value=b"aborted")

        for name in cluster.names:
            await cluster.kill(name)
            shutil.rmtree(cluster.folder / name, ignore_errors=True)
        for name in cluster.names:
            await cluster.start(name, wait=False)
        await cluster.wait_ready()

        await transact(client, commit=True, value=b"second")
        assert await committed(client, 2) == [b"first", b"second"]
        assert not any((cluster.folder / name / "journal.db").exists() for name in cluster.names)


async def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://postgres:{PASSWORD.replace('/', '%2F')}@127.0.0.1:1/postgres"
    cluster = cluster_on(url.replace("only@@", "only%40@"), tmp_path)

    with pytest.raises(ServiceFailedError) as caught:
        await cluster.open()

    logged = "".join(log.read_text() for log in (tmp_path / "logs").iterdir())
    assert "PostgreSQL at 127.0.0.1:1/postgres cannot be reached" in logged
    for shown in (logged, str(caught.value)):
        assert "only" not in shown
        assert "Traceback" not in shown
