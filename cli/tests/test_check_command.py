"""`semel check`: what it says of sound, damaged, running and missing volumes."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from command_line import CommandLine

from semel_local.cluster import LocalCluster
from semel_runtime.journal.sqlite import SqliteJournal
from semel_runtime.journal.sqlite.schema import APPLICATION_ID, MIGRATIONS

semel = CommandLine({})


@pytest.fixture(scope="module", name="cluster")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder of a cluster that has run, as `semel up` makes it: one of each service."""
    folder = tmp_path_factory.mktemp("cluster")

    async def run() -> None:
        async with LocalCluster(folder=folder) as cluster, cluster.client() as client:
            await client.admin().create_topic("orders", partitions=2)
            async with client.producer() as producer:
                await producer.send_and_wait("orders", b"a value" * 4_000)

    asyncio.run(run())
    return folder


def test_a_whole_cluster_is_checked_and_is_clean(cluster: Path) -> None:
    found = json.loads(semel("check", str(cluster), "--format", "json", status=0).out)
    services = [each["service"] for each in found]
    assert services == ["semel-broker-0", "semel-coordinator-0", "semel-group-coordinator-0"]
    assert [each["damage"] for each in found] == [[], [], []]
    assert all(each["entries"] > 0 for each in found)


def test_damage_is_named_with_its_place_and_ends_in_status_1(cluster: Path) -> None:
    file = cluster / "broker-0" / "journal.db"
    sound = file.read_bytes()
    at = sound.index(b"a value" * 8)
    file.write_bytes(sound[:at] + b"A" + sound[at + 1 :])
    ran = semel("check", str(cluster), "--format", "json", status=1)
    file.write_bytes(sound)
    (broker, *others) = json.loads(ran.out)
    (damage,) = broker["damage"]
    assert damage["file"] == str(file)
    assert damage["place"].startswith("topic 'orders', partition ")
    assert "has CRC-32C" in damage["problem"]
    assert [other["damage"] for other in others] == [[], []]
    assert "docs/run/recovery.md (A damaged volume)" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda end: end.write_bytes(bytes(8_192)), "neither of its two copies can be read"),
        (Path.unlink, "journal.end is missing"),
    ],
)
def test_a_journal_without_its_end_is_named(
    cluster: Path, damage: Callable[[Path], None], problem: str
) -> None:
    end = cluster / "broker-0" / "journal.end"
    sound = end.read_bytes()
    damage(end)
    ran = semel("check", str(cluster / "broker-0"), "--format", "json", status=1)
    end.write_bytes(sound)
    (found,) = json.loads(ran.out)[0]["damage"]
    assert found["place"] == "the end of the journal"
    assert problem in found["problem"]


def test_an_older_journal_beside_a_newer_end_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        for _ in range(2):
            async with LocalCluster(folder=tmp_path) as cluster, cluster.client() as client:
                await client.admin().create_topic(uuid4().hex, partitions=1)

    asyncio.run(run())
    older = {path: path.read_bytes() for path in tmp_path.glob("*/journal.db")}
    asyncio.run(run())
    for file, data in older.items():
        file.write_bytes(data)
    ran = semel("check", str(tmp_path), "--format", "json", status=1)
    for volume in json.loads(ran.out):
        (found,) = volume["damage"]
        assert found["place"] == "the end of the journal"
        assert "acknowledged records are lost" in found["problem"]


def _leave_an_empty_file(file: Path) -> None:
    file.touch()


def _leave_a_begun_transaction(file: Path) -> None:
    file.write_bytes(bytes(4_096))
    file.with_name("journal.db-journal").write_bytes(bytes(512))


def _leave_tables(file: Path) -> None:
    """As of a service that has not written its name yet."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("\n".join(MIGRATIONS))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


@pytest.mark.parametrize("leave", [_leave_an_empty_file, _leave_a_begun_transaction, _leave_tables])
def test_a_first_start_that_ended_too_early_is_no_damage(
    leave: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "journal.lock").touch()
    leave(tmp_path / "journal.db")
    ran = semel("check", str(tmp_path), "--format", "json", status=0)
    (found,) = json.loads(ran.out)
    assert (found["damage"], found["is_unfinished"]) == ([], True)
    assert "holds nothing yet" in " ".join(ran.err.split())
    (tmp_path / "journal.end").write_bytes(bytes(8_192))
    assert json.loads(semel("check", str(tmp_path), "--format", "json", status=1).out)[0]["damage"]


async def test_a_running_service_is_refused(tmp_path: Path) -> None:
    async with await SqliteJournal.open(tmp_path, service="semel-broker 0"):
        ran = await asyncio.to_thread(lambda: semel("check", str(tmp_path), status=1))
    assert "a service is running on" in ran.err


def test_a_folder_without_a_journal_and_a_wrong_command_line_are_refused(tmp_path: Path) -> None:
    assert "has no journal.db" in semel("check", str(tmp_path), status=1).err
    assert semel("check", status=2).err
