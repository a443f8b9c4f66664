"""What a journal on PostgreSQL says at opening: a sentence for each thing that can be wrong."""

import socket
from pathlib import Path

import pytest
from journal_harness import Admin, PostgresEngine
from structlog.testing import capture_logs

from semel_runtime.journal import JournalOpenError
from semel_runtime.journal.engine_choice import open_journal
from semel_runtime.journal.postgres.journal_url import place_of
from semel_runtime.journal.postgres.options import PostgresOptions
from semel_runtime.testing.postgres import PASSWORD, PostgresCluster, PostgresServer

pytestmark = pytest.mark.timeout(180)  # The first test makes the servers.


@pytest.fixture
def server(postgres: PostgresCluster) -> PostgresServer:
    return postgres.primary


AT_ONCE = PostgresOptions(open_timeout_ms=0)


async def refusal(url: str, options: PostgresOptions = AT_ONCE) -> str:
    """Try to open a journal; answer with what sentence it is refused."""
    with pytest.raises(JournalOpenError) as caught:
        await open_journal(url, service="test", postgres_options=options)
    sentence = str(caught.value)
    assert PASSWORD not in sentence
    assert "of%2Ftests" not in sentence
    assert sentence.endswith(".")
    return sentence


async def test_a_url_opens_a_journal_in_the_schema_of_its_service(
    server: PostgresServer, admin: Admin
) -> None:
    url = f"{server.url()}?schema_prefix=shop"
    async with await open_journal(url, service="semel-broker 3", cluster_id="one") as journal:
        assert journal.cluster_id == "one"

    assert await admin.fetchval("SELECT count(*) FROM shop_semel_broker_3.chunks") == 0


async def test_journals_of_other_schemas_in_one_database_are_strangers(
    server: PostgresServer,
) -> None:
    one, two = (f"{server.url()}?schema_prefix={prefix}" for prefix in ("one", "two"))
    async with (
        await open_journal(one, service="test", cluster_id="one") as first,
        await open_journal(two, service="test", cluster_id="two") as second,
    ):
        await first.claim("a")
        await first.append(0, [b"first"])
        assert (await second.claim("b")).next_offset == 0


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://host/name", "There is no engine for 'mysql'"),
        ("postgresql://host", "no host or no database. Write it as postgresql://"),
        ("postgresql:///database", "no host or no database"),
        ("postgresql://u:p/w@host/database", "%-encoded"),
        ("postgresql://u:p#w@host/database", "%-encoded"),
        ("postgresql://u:p?w@host/database", "%-encoded"),
        ("postgresql://u:pw@[::1/database", "cannot be read: its host has a bracket"),
        ("postgresql://u:pw@ho\u2100st/database", "or a character that no host has"),
        ("postgresql://host:port/database", "Correct what stands behind the question mark"),
        ("postgresql://host/database?sslmode=odd", "Correct what stands behind the question mark"),
        ("postgresql://host/database?schema=Odd", "'Odd' cannot be the name of a schema"),
        ("postgresql://host/database?schema=pg_x", "'pg_x' cannot be the name of a schema"),
        (f"postgresql://host/database?schema_prefix={'long' * 16}", "name may have 63 characters"),
        ("postgresql://nowhere.invalid/database", "nowhere.invalid/database cannot be reached"),
    ],
)
async def test_a_wrong_url_is_refused_and_not_shown(url: str, sentence: str) -> None:
    refused = await refusal(url)

    assert sentence in refused
    assert "p/w" not in refused
    assert "u:p" not in refused


@pytest.mark.parametrize("option", ["sslkey", "passfile"])
async def test_a_file_with_a_secret_that_others_may_read_is_refused(
    tmp_path: Path, option: str
) -> None:
    file = tmp_path / "secret"
    file.touch(mode=0o644)
    refused = await refusal(f"postgresql://host/database?{option}={file}")
    assert refused.startswith(f"{option} of the journal's URL, {file} can be read or changed by")
    assert f"chmod o-rwx {file}" in refused


async def test_a_server_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        options = PostgresOptions(connect_timeout_ms=200, open_timeout_ms=0)
        sentence = await refusal(f"postgresql://user@127.0.0.1:{port}/database", options)

    assert f"127.0.0.1:{port}/database cannot be reached: no answer in time" in sentence
    assert "cannot be reached" in await refusal(f"postgresql://user@127.0.0.1:{port}/database")


async def test_a_wrong_password_or_user_or_database_is_named(server: PostgresServer) -> None:
    url = f"postgresql://postgres:secret@127.0.0.1:{server.port}/postgres"
    sentence = await refusal(url)
    assert "does not let the user 'postgres' in" in sentence
    assert "secret" not in sentence

    assert "does not let the user 'nobody' in" in await refusal(server.url(user="nobody"))
    assert "There is no database 127.0.0.1:" in await refusal(server.url("missing"))


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("foo=bar", 'option that cannot be read: unrecognized configuration parameter "foo"'),
        ("work_mem=much", 'cannot be read: invalid value for parameter "work_mem"'),
        ("sslmode=require", "cannot be reached with TLS: PostgreSQL server at"),
        ("sslmode=verify-full&sslrootcert=/nowhere/ca.crt", "reached with TLS: [Errno 2] No such"),
    ],
)
async def test_an_option_that_the_server_or_the_files_do_not_allow_is_named(
    server: PostgresServer, option: str, sentence: str
) -> None:
    assert sentence in await refusal(f"{server.url()}?{option}")


async def test_a_user_who_may_not_connect_or_write_or_connect_so_often_is_told_why(
    server: PostgresServer, admin: Admin
) -> None:
    await admin.execute(f"CREATE USER narrow PASSWORD '{PASSWORD}'")
    await admin.execute("CREATE DATABASE locked")
    await admin.execute("REVOKE CONNECT ON DATABASE locked FROM PUBLIC")
    await admin.execute("CREATE SCHEMA narrow AUTHORIZATION narrow")
    url = f"{server.url(user='narrow')}?schema=narrow"

    sentence = await refusal(server.url("locked", user="narrow"))
    assert 'permission denied for database "locked". Grant it CONNECT and CREATE' in sentence

    await admin.execute("ALTER USER narrow SET default_transaction_read_only = on")
    assert "is read-only for the user 'narrow'" in await refusal(url)

    await admin.execute("ALTER USER narrow RESET default_transaction_read_only")
    await admin.execute("ALTER USER narrow CONNECTION LIMIT 1")
    assert "takes no more connections: too many connections for role" in await refusal(url)


async def test_tables_that_cannot_be_written_are_found_before_anything_is_served(
    server: PostgresServer, admin: Admin
) -> None:
    engine = PostgresEngine(server)
    await (await engine.open()).close()
    await admin.execute(f"CREATE USER partial PASSWORD '{PASSWORD}'")
    await admin.execute(f"GRANT USAGE ON SCHEMA {engine.schema} TO partial")
    await admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {engine.schema} TO partial")
    await admin.execute(f"REVOKE DELETE ON {engine.schema}.chunks FROM partial")

    sentence = await refusal(f"{server.url(user='partial')}?schema={engine.schema}")

    assert "permission denied for table chunks" in sentence


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("DELETE FROM meta WHERE key = 'schema_version'", "its schema_version is 'gone'"),
        ("UPDATE meta SET value = 'x' WHERE key = 'schema_version'", "its schema_version is 'x'"),
        ("DELETE FROM owner", "the row of its table owner is gone"),
        ("DELETE FROM tail", "the row of its table tail is gone"),
        ("DROP TABLE batches", "its table batches is gone"),
        ("ALTER TABLE meta RENAME value TO other", "is there already, but is not a journal"),
    ],
)
async def test_a_journal_of_which_a_part_is_gone_is_refused(
    server: PostgresServer, admin: Admin, damage: str, sentence: str
) -> None:
    engine = PostgresEngine(server)
    await (await engine.open()).close()
    await admin.execute(f"SET search_path TO {engine.schema}")
    await admin.execute(damage)

    assert sentence in await refusal(engine.url)


async def test_missing_rights_are_named(server: PostgresServer, admin: Admin) -> None:
    await admin.execute(f"CREATE USER guest PASSWORD '{PASSWORD}'")

    sentence = await refusal(server.url(user="guest"))
    assert "The user 'guest' lacks a right" in sentence
    assert "Grant it CONNECT and CREATE on the database" in sentence

    async with await open_journal(f"{server.url()}?schema=owned", service="test"):
        pass
    assert "lacks a right" in await refusal(f"{server.url(user='guest')}?schema=owned")

    await admin.execute("CREATE SCHEMA guests AUTHORIZATION guest")
    async with await open_journal(f"{server.url(user='guest')}?schema=guests", service="test"):
        pass


async def test_a_newer_schema_and_a_foreign_one_are_refused(
    server: PostgresServer, admin: Admin
) -> None:
    engine = PostgresEngine(server)
    await (await engine.open()).close()
    await admin.execute(f"SET search_path TO {engine.schema}")
    await admin.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")

    assert "has schema version 99, this program knows 1" in await refusal(engine.url)

    await admin.execute("CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.meta (a int)")
    sentence = await refusal(f"{server.url()}?schema=foreign_one")
    assert "is there already, but is not a journal of Semel" in sentence


async def test_a_standby_is_refused(postgres: PostgresCluster) -> None:
    sentence = await refusal(postgres.standbys[0].url())

    assert "is a standby, which cannot be written. Give the address of the primary" in sentence


async def test_of_several_servers_the_primary_is_taken(postgres: PostgresCluster) -> None:
    ports = [server.port for server in (*postgres.standbys, postgres.primary)]
    servers = ",".join(f"127.0.0.1:{port}" for port in ports)
    url = postgres.primary.url().replace(f"127.0.0.1:{postgres.primary.port}", servers)

    async with await open_journal(f"{url}?schema=several", service="test") as journal:
        assert (await journal.claim("a")).epoch == 1


async def test_a_server_that_does_not_replicate_is_refused_or_warned_of() -> None:
    with PostgresCluster(standbys=0) as alone:
        sentence = await refusal(alone.primary.url())
        assert "does not replicate each commit: synchronous_standby_names is empty" in sentence
        assert "set journal_replication to `wanted`" in sentence

        options = PostgresOptions(replication="wanted")
        with capture_logs() as logged:
            async with await open_journal(
                alone.primary.url(), service="test", postgres_options=options
            ) as journal:
                await journal.claim("a")

    assert [line["event"] for line in logged] == ["journal is not replicated"]


def test_a_place_never_shows_its_password() -> None:
    place = place_of("postgresql://user:secret@host:1/database", service="test")

    assert "secret" not in f"{place} {place!r}"
    assert str(place) == "host:1/database, schema test"
