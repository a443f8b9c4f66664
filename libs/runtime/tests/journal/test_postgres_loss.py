"""A connection to PostgreSQL that is lost while nothing is written: noticed, and told."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from journal_harness import Admin, PostgresEngine
from runner_harness import Counters, CounterSerde

from semel_common.errors import KafkaStorageError
from semel_runtime.journal import JournalUnknownError
from semel_runtime.journal.postgres.connections import connect
from semel_runtime.journal.postgres.journal_url import place_of
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.journal.postgres.writer import Handle, Writer
from semel_runtime.runner import Runner
from semel_runtime.testing.postgres import PostgresCluster

pytestmark = pytest.mark.timeout(180)  # The first test makes the servers.


APPENDS, UPKEEP = 0, 1
"""The connections of a handle that write, in the order in which they are made."""


@pytest.fixture
async def own(postgres: PostgresCluster) -> AsyncIterator[PostgresEngine]:
    engine = PostgresEngine(postgres.primary)
    yield engine
    await engine.close()


async def end(admin: Admin, engine: PostgresEngine, which: int) -> None:
    """Let the server end one of the journal's connections."""
    pids = await admin.fetch(
        "SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY backend_start",
        f"semel {engine.schema}",
    )
    assert await admin.fetchval("SELECT pg_terminate_backend($1)", pids[which][0])


@pytest.mark.parametrize("which", [APPENDS, UPKEEP])
async def test_a_lost_connection_is_noticed_without_a_write(
    own: PostgresEngine, admin: Admin, which: int
) -> None:
    journal = await own.open()
    await journal.claim("a")
    heard: asyncio.Queue[JournalUnknownError] = asyncio.Queue()
    journal.on_death(heard.put_nowait)

    await end(admin, own, which)

    assert str(await heard.get()) == "the connection to PostgreSQL was lost"
    with pytest.raises(JournalUnknownError, match="the handle is dead: the connection to"):
        await journal.append(0, [b"zero"])
    assert heard.empty()


async def test_an_instance_that_only_reads_stops_when_its_connection_is_lost(
    own: PostgresEngine, admin: Admin
) -> None:
    counters = Counters()
    async with await Runner.open(await own.open(), counters, CounterSerde()) as runner:
        assert await runner.run(lambda: counters.read("one")) == 0

        await end(admin, own, APPENDS)
        await runner.failed.wait()

        with pytest.raises(KafkaStorageError, match="the connection to PostgreSQL was lost"):
            await runner.run(lambda: counters.read("one"))


async def test_a_death_that_is_past_is_told_at_once(own: PostgresEngine, admin: Admin) -> None:
    journal = await own.open()
    await journal.claim("a")
    await end(admin, own, APPENDS)
    with pytest.raises(JournalUnknownError):
        await journal.append(0, [b"zero"])

    heard: list[JournalUnknownError] = []
    journal.on_death(heard.append)

    assert len(heard) == 1


async def test_of_a_write_that_is_under_way_the_server_s_reason_is_told(
    own: PostgresEngine, admin: Admin
) -> None:
    journal = await own.open()
    await journal.claim("a")
    heard: asyncio.Queue[JournalUnknownError] = asyncio.Queue()
    journal.on_death(heard.put_nowait)

    async with admin.transaction():
        await admin.execute(f"LOCK TABLE {own.schema}.tail")
        append = asyncio.ensure_future(journal.append(0, [b"zero"]))
        await waiting_for_lock(admin, own)
        await end(admin, own, APPENDS)

        with pytest.raises(JournalUnknownError, match="due to administrator command"):
            await append
    assert "due to administrator command" in str(await heard.get())
    assert heard.empty()


async def test_a_loss_beside_a_write_that_succeeds_is_noticed_after_it(
    own: PostgresEngine, admin: Admin
) -> None:
    connection = await connect(place_of(own.url, service="test"), PostgresOptions())
    lost, written = asyncio.Event(), asyncio.Event()
    heard: asyncio.Queue[JournalUnknownError] = asyncio.Queue()
    handle = Handle()
    handle.on_death(heard.put_nowait)
    writer = Writer(connection, handle, timeout_ms=60_000)
    connection.add_termination_listener(lambda _: lost.set())
    write = asyncio.ensure_future(writer.run(lambda _: written.wait()))

    await end(admin, own, APPENDS)
    await lost.wait()
    assert heard.empty()
    written.set()

    assert await write
    assert str(await heard.get()) == "the connection to PostgreSQL was lost"


async def waiting_for_lock(admin: Admin, engine: PostgresEngine) -> None:
    """Wait until a write of the journal waits for a lock."""
    blocked = """
        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE application_name = $1 AND NOT granted
    """
    while not await admin.fetchval(blocked, f"semel {engine.schema}"):
        pass


async def test_closing_in_order_is_no_loss(own: PostgresEngine) -> None:
    journal = await own.open()
    counters = Counters()
    async with await Runner.open(journal, counters, CounterSerde()) as runner:
        await runner.run(lambda: counters.add("one"))
        await journal.close()
        await asyncio.sleep(0)

        assert not runner.failed.is_set()


async def test_both_ends_of_a_connection_ask_whether_the_other_is_there(
    own: PostgresEngine,
) -> None:
    connection = await connect(place_of(own.url, service="test"), PostgresOptions())
    peer = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]

    assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    for ours, theirs, expected in (
        (socket.TCP_KEEPIDLE, "tcp_keepalives_idle", 5),
        (socket.TCP_KEEPINTVL, "tcp_keepalives_interval", 5),
        (socket.TCP_KEEPCNT, "tcp_keepalives_count", 3),
    ):
        assert peer.getsockopt(socket.IPPROTO_TCP, ours) == expected
        assert await connection.fetchval(f"SHOW {theirs}") == str(expected)
    await connection.close()


async def test_a_server_that_ends_idle_sessions_does_not_end_writing_ones(
    own: PostgresEngine, admin: Admin
) -> None:
    user = f"{own.schema}_sleeper"
    await admin.execute(f"CREATE USER {user} PASSWORD 'asleep'")
    await admin.execute(f"ALTER USER {user} SET idle_session_timeout = '1h'")
    url = own.url.replace(own.url[len("postgresql://") : own.url.index("@")], f"{user}:asleep")

    connection = await connect(place_of(url, service="test"), PostgresOptions())

    assert await connection.fetchval("SHOW idle_session_timeout") == "0"
    await connection.close()
