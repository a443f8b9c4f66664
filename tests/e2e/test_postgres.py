"""A cluster whose journals are on PostgreSQL: moved, fenced, and left by its primary."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest

from aiosemel import (
    ConsumerOptions,
    IsolationLevel,
    OffsetReset,
    ProducerOptions,
    SemelClient,
    TransactionAbortedError,
)
from semel_local import ProcessCluster
from semel_local.errors import ServiceFailedError
from semel_local.layout import Role, ServiceName, service_settings
from semel_local.process import ManagedProcess
from semel_local.processes import StartOptions
from semel_local.supervised import Supervised, supervised
from semel_runtime.testing.postgres import PASSWORD, PostgresCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TOPIC = "kept"
IMPATIENT = ProducerOptions(request_timeout_ms=2_000)
"""If a process is stopped and does not answer, its callers soon ask another one."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresCluster]:
    with PostgresCluster() as cluster:
        yield cluster


def cluster_on(url: str, folder: Path) -> AbstractAsyncContextManager[Supervised]:
    """A cluster that keeps nothing in its folder but its logs and addresses."""
    return supervised(folder, environment={"SEMEL_JOURNAL_URL": url})


async def transact(client: SemelClient, *, commit: bool, value: bytes) -> None:
    """Store a record in a transaction of a producer that is always the same."""
    async with client.transactional_producer("keeper", options=IMPATIENT) as producer:
        await producer.init_transactions()
        while True:
            await producer.begin_transaction()
            try:
                await producer.send(TOPIC, value)
                await producer.flush()
                return await (producer.commit() if commit else producer.abort())
            except TransactionAbortedError:  # it was cut off for so long that it has timed out
                await producer.abort()


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
    url = f"{postgres.url()}?schema_prefix=moved"
    async with cluster_on(url, tmp_path) as on, SemelClient(on.cluster.bootstrap) as client:
        cluster = on.cluster
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


async def test_a_standby_that_is_promoted_has_all_that_was_acknowledged(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    url = f"{postgres.url()}?schema_prefix=promoted"
    async with cluster_on(url, tmp_path) as on, SemelClient(on.cluster.bootstrap) as client:
        await client.admin().create_topic(TOPIC, partitions=1)
        await transact(client, commit=True, value=b"first")

        killed = await asyncio.to_thread(postgres.fail_over)
        await transact(client, commit=True, value=b"second")
        await asyncio.to_thread(postgres.restore, killed)
        await asyncio.to_thread(postgres.fail_over)
        await transact(client, commit=True, value=b"third")

        assert await committed(client, 3) == [b"first", b"second", b"third"]
        assert {"broker-0", "coordinator-0"} <= {ended.name for ended in on.ends}
        assert all("Traceback" not in ended.log_tail for ended in on.ends)


async def test_services_that_have_nothing_to_write_end_when_their_connections_do(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    url = f"{postgres.url()}?schema_prefix=idle"
    async with cluster_on(url, tmp_path) as on, SemelClient(on.cluster.bootstrap) as client:
        await client.admin().create_topic(TOPIC, partitions=1)
        await transact(client, commit=True, value=b"first")

        await end_sessions(postgres, "semel idle_semel_group_0")
        ended = await on.next_end()

        assert (ended.name, ended.exit_status) == ("group-coordinator-0", 1)
        assert "the connection to PostgreSQL was lost" in ended.log_tail
        assert "Traceback" not in ended.log_tail
        await on.cluster.wait_ready()
        assert await committed(client, 1) == [b"first"]
        assert [end.name for end in on.ends] == ["group-coordinator-0"]


async def end_sessions(postgres: PostgresCluster, application_name: str) -> None:
    """Let the server end the sessions of one instance."""
    admin = await asyncpg.connect(postgres.primary.url())
    ended = await admin.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
        application_name,
    )
    assert ended
    await admin.close()


async def test_of_two_with_one_number_the_older_ends_and_says_why(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    url = f"{postgres.url()}?schema_prefix=twins"
    async with (
        cluster_on(url, tmp_path / "one") as on,
        SemelClient(on.cluster.bootstrap) as client,
    ):
        await client.admin().create_topic(TOPIC, partitions=1)
        await transact(client, commit=True, value=b"first")
        on.cluster.signal("broker-0", signal.SIGSTOP)
        twin = twin_of(on.cluster, url, tmp_path)
        await twin.spawn()
        try:
            await transact(client, commit=True, value=b"second")
            on.cluster.signal("broker-0", signal.SIGCONT)
            older = await on.next_end()
        finally:
            await twin.kill()

        assert (older.name, older.exit_status) == ("broker-0", 1)
        assert "another process with the number of this one" in older.log_tail
        await transact(client, commit=True, value=b"third")  # to the one that was started again
        assert await committed(client, 3) == [b"first", b"second", b"third"]


def twin_of(cluster: ProcessCluster, url: str, folder: Path) -> ManagedProcess:
    """Another process with the number of the broker."""
    settings = {
        **service_settings(ServiceName(Role.BROKER, 0), dict.fromkeys(Role, 1)),
        "data_dir": folder / "twin",
        "controller": cluster.bootstrap,
    }
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    command = (sys.executable, "-m", "semel_broker", *arguments)
    environment = {"SEMEL_JOURNAL_URL": url}
    return ManagedProcess("twin", command, folder / "twin.log", environment=environment)


async def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://postgres:{quote(PASSWORD, safe='')}@127.0.0.1:1/postgres"
    environment = {"SEMEL_JOURNAL_URL": url, "SEMEL_JOURNAL_OPEN_TIMEOUT_MS": "500"}
    cluster = ProcessCluster(
        tmp_path, start_options=lambda _: StartOptions(environment=environment)
    )

    with pytest.raises(ServiceFailedError) as caught:
        await cluster.open()

    logged = "".join(log.read_text() for log in (tmp_path / "logs").iterdir())
    assert "PostgreSQL at 127.0.0.1:1/postgres cannot be reached" in logged
    for shown in (logged, str(caught.value)):
        assert "only" not in shown
        assert "Traceback" not in shown
