"""When a write to PostgreSQL may be believed: standbys that stop, cancellation, lost connections.

Each test has servers of its own, because it stops them.
"""

import asyncio
from collections.abc import Iterator, Sequence

import asyncpg
import pytest
from journal_harness import TOKEN, batch, read_all
from structlog.testing import capture_logs

from semel_runtime.journal import (
    Journal,
    JournalFencedError,
    JournalOpenError,
    JournalUnknownError,
    StoredBatch,
)
from semel_runtime.journal.postgres.journal import PostgresJournal
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.testing.postgres import PostgresCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

QUICK = PostgresOptions(write_timeout_ms=500, open_timeout_ms=0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresCluster]:
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def servers(cluster: PostgresCluster) -> Iterator[PostgresCluster]:
    """The servers, which all run again afterwards."""
    yield cluster
    for server in (cluster.primary, *cluster.standbys):
        server.start_if_stopped()


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    """A schema of the test's own."""
    return f"s{abs(hash(request.node.name))}"


async def opened(
    servers: PostgresCluster, schema: str, options: PostgresOptions | None = None
) -> Journal:
    url = f"{servers.primary.url()}?schema={schema}"
    return await PostgresJournal.open(url, service="test", options=options)


async def waiting_for_standbys(servers: PostgresCluster) -> int:
    """Wait until a commit waits for a standby; answer the number of its process."""
    admin = await asyncpg.connect(servers.primary.url())
    try:
        while True:
            pid = await admin.fetchval(
                "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' LIMIT 1"
            )
            if pid is not None:
                return int(pid)
    finally:
        await admin.close()


def stop_standbys(servers: PostgresCluster) -> None:
    for standby in servers.standbys:
        standby.stop()


def start_standbys(servers: PostgresCluster) -> None:
    for standby in servers.standbys:
        standby.start()


async def test_one_standby_is_enough(servers: PostgresCluster, schema: str) -> None:
    async with await opened(servers, schema) as journal:
        await journal.claim(TOKEN)
        servers.standbys[0].stop()

        await journal.append(0, [b"zero"], [batch()])


async def test_an_append_that_no_standby_confirms_is_never_acknowledged(
    servers: PostgresCluster, schema: str
) -> None:
    async with await opened(servers, schema, QUICK) as journal:
        await journal.claim(TOKEN)
        stop_standbys(servers)

        with pytest.raises(JournalUnknownError, match="no answer within 500 ms"):
            await journal.append(0, [b"zero"])
        with pytest.raises(JournalUnknownError, match="the handle is dead"):
            await journal.append(0, [b"zero"])

    # What the connection has left behind is not to be read before a standby has it.
    with pytest.raises(JournalOpenError, match="did not confirm a write"):
        await opened(servers, schema, QUICK)

    start_standbys(servers)
    async with await opened(servers, schema) as journal:
        assert (await journal.claim("another")).next_offset == 1
        assert await read_all(journal) == [b"zero"]


async def test_a_claim_that_no_standby_confirms_is_none(
    servers: PostgresCluster, schema: str
) -> None:
    async with await opened(servers, schema, QUICK) as journal:
        stop_standbys(servers)

        with pytest.raises(JournalUnknownError):
            await journal.claim(TOKEN)
        start_standbys(servers)

    async with await opened(servers, schema) as journal:
        assert (await journal.claim(TOKEN)).epoch == 1


async def test_a_repeated_claim_waits_for_a_standby_too(
    servers: PostgresCluster, schema: str
) -> None:
    async with await opened(servers, schema, QUICK) as journal:
        await journal.claim(TOKEN)
        stop_standbys(servers)

        with pytest.raises(JournalUnknownError):
            await journal.claim(TOKEN)


async def test_a_commit_whose_wait_the_server_cancels_is_unknown(
    servers: PostgresCluster, schema: str
) -> None:
    """As an operator does it: the statement succeeds, with a warning."""
    async with await opened(servers, schema) as journal:
        await journal.claim(TOKEN)
        stop_standbys(servers)
        append = asyncio.ensure_future(journal.append(0, [b"zero"]))
        admin = await asyncpg.connect(servers.primary.url())

        pid = await waiting_for_standbys(servers)
        assert await admin.fetchval("SELECT pg_cancel_backend($1)", pid)

        with pytest.raises(JournalUnknownError, match="the server warns: canceling wait"):
            await append
        with pytest.raises(JournalUnknownError, match="the handle is dead"):
            await journal.append(1, [b"one"])
        await admin.close()


async def test_cancelling_the_caller_cancels_nothing_on_the_server(
    servers: PostgresCluster, schema: str
) -> None:
    async with await opened(servers, schema) as journal:
        await journal.claim(TOKEN)
        stop_standbys(servers)
        append = asyncio.ensure_future(journal.append(0, [b"zero"]))
        pid = await waiting_for_standbys(servers)

        append.cancel()
        with pytest.raises(asyncio.CancelledError):
            await append
        assert await waiting_for_standbys(servers) == pid

        start_standbys(servers)
        await journal.append(1, [b"one"])
        assert await read_all(journal) == [b"zero", b"one"]


async def test_a_second_claim_waits_for_the_append_in_flight_and_finds_it(
    servers: PostgresCluster, schema: str
) -> None:
    elder, younger = await opened(servers, schema), await opened(servers, schema)
    await elder.claim("a")
    stop_standbys(servers)
    append = asyncio.ensure_future(elder.append(0, [b"zero"]))
    await waiting_for_standbys(servers)

    claim = asyncio.ensure_future(younger.claim("b"))
    start_standbys(servers)

    assert (await claim).next_offset == 1
    await append
    with pytest.raises(JournalFencedError):
        await elder.append(1, [b"one"])
    await elder.close()
    await younger.close()


async def test_a_primary_that_is_killed_leaves_the_outcome_unknown_until_the_next_claim(
    servers: PostgresCluster, schema: str
) -> None:
    async with await opened(servers, schema) as journal:
        await journal.claim(TOKEN)
        await journal.append(0, [b"acknowledged"])
        stop_standbys(servers)
        append = asyncio.ensure_future(journal.append(1, [b"in doubt"]))
        await waiting_for_standbys(servers)

        servers.primary.kill()

        with pytest.raises(JournalUnknownError):
            await append
    servers.primary.start_if_stopped()
    start_standbys(servers)
    async with await opened(servers, schema) as journal:
        claim = await journal.claim("another")
        records = await read_all(journal)
        assert records in ([b"acknowledged"], [b"acknowledged", b"in doubt"])
        await journal.append(claim.next_offset, [b"more"])


async def test_a_primary_that_is_away_is_waited_for(servers: PostgresCluster, schema: str) -> None:
    servers.primary.kill()
    with capture_logs() as logged:
        opening = asyncio.ensure_future(opened(servers, schema))
        while not logged:  # noqa: ASYNC110 - only the log tells
            await asyncio.sleep(0)
        servers.primary.start_if_stopped()

        async with await opening as journal:
            await journal.claim(TOKEN)
    assert "cannot be reached" in logged[0]["error"]


@pytest.mark.parametrize("batches", [(), (batch(),)])
async def test_replication_that_is_switched_off_is_noticed_by_the_next_append(
    servers: PostgresCluster, schema: str, batches: Sequence[StoredBatch]
) -> None:
    async with await opened(servers, schema) as journal:
        await journal.claim(TOKEN)
        await replicate_to(servers, "")
        try:
            with pytest.raises(JournalUnknownError, match="does not replicate each commit"):
                await journal.append(0, [b"zero"], batches)
        finally:
            await replicate_to(servers, None)


async def replicate_to(servers: PostgresCluster, names: str | None) -> None:
    """Change who confirms commits, or (None) change it back; returns when sessions know."""
    how = (
        "RESET synchronous_standby_names"
        if names is None
        else (f"SET synchronous_standby_names = '{names}'")
    )
    admin = await asyncpg.connect(servers.primary.url())
    await admin.execute(f"ALTER SYSTEM {how}")
    await admin.execute("SELECT pg_reload_conf()")
    shown = "SELECT current_setting('synchronous_standby_names')"
    while bool(await admin.fetchval(shown)) is (names == ""):
        pass
    await admin.close()


async def test_a_connection_that_the_server_ends_kills_the_handle(
    servers: PostgresCluster, schema: str
) -> None:
    async with await opened(servers, schema) as journal:
        await journal.claim(TOKEN)
        admin = await asyncpg.connect(servers.primary.url())
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
            f"semel {schema}",
        )
        await admin.close()

        with pytest.raises(JournalUnknownError):
            await journal.append(0, [b"zero"])
