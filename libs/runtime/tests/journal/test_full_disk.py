"""A disk that is really full: a small one, made in memory for the test."""

import contextlib
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_harness import PLENTY, batch
from runner_harness import Counted, Counters, CounterSerde

from semel_common.errors import KafkaStorageError, ThrottlingQuotaExceededError
from semel_runtime.journal import Journal, JournalOpenError
from semel_runtime.journal.contract import Reserve
from semel_runtime.journal.sqlite import SqliteJournal, SqliteOptions
from semel_runtime.journal.sqlite.opening import cause
from semel_runtime.machine import Result
from semel_runtime.runner import Runner

MEGABYTE = 1 << 20
DISK_BYTES = 32 * MEGABYTE
RESERVE_BYTES = 16 * MEGABYTE
NO_RESERVE = -(1 << 40)
"""Lets writes go on when not a single byte is left."""
LOG_BYTES = 1 << 18
PAYLOAD = bytes(16_000)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk with a ballast on it, which can be thrown off."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = (shutil.which(name) or "/bin/false" for name in ("mount", "umount"))
    size = f"size={DISK_BYTES}"
    command = (mount, "-t", "tmpfs", "-o", size, "semel-test", str(folder))
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here: that takes root on Linux")
    (folder / "ballast").write_bytes(bytes(8 * MEGABYTE))
    yield folder
    subprocess.run((umount, "--lazy", str(folder)), check=True)


async def open_journal(disk: Path, *, reserve_bytes: int) -> SqliteJournal:
    options = SqliteOptions(
        disk_reserve_bytes=reserve_bytes, wal_bytes=100 * 4_096, log_bytes=LOG_BYTES
    )
    return await SqliteJournal.open(disk / "data", service="test", options=options)


class Service:
    """Stores one batch at a time, and counts the acknowledged batches."""

    def __init__(self) -> None:
        self.machine = Counters()
        self.acknowledged = 0

    async def store(self, runner: Runner[Counted], *, may_use: Reserve = Reserve.NONE) -> None:
        """Store the next batch, with its number as the record."""
        number = self.acknowledged
        stored = batch(1, number, 1, payload=PAYLOAD)
        await runner.run(
            lambda: Result(None, [Counted("stored", number)], [stored]), may_use=may_use
        )
        self.acknowledged += 1

    async def store_until_refused(self, runner: Runner[Counted]) -> None:
        """Go on until there is an error, which is raised."""
        while True:
            await self.store(runner)

    async def check(self, journal: Journal) -> None:
        """Read every batch that was acknowledged; one may be there whose fate was unknown."""
        batches = await journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY)
        assert [each.base_offset for each in batches[: self.acknowledged]] == list(
            range(self.acknowledged)
        )
        assert all(each.payload == PAYLOAD for each in batches)
        assert len(batches) - self.acknowledged in (0, 1)


async def test_nearly_full_disk_refuses_in_a_sentence_and_serves_on(disk: Path) -> None:
    service = Service()
    async with (
        await open_journal(disk, reserve_bytes=RESERVE_BYTES) as journal,
        await Runner.open(journal, service.machine, CounterSerde()) as runner,
    ):
        with pytest.raises(
            ThrottlingQuotaExceededError, match=r"below its reserve.* bytes are free"
        ):
            await service.store_until_refused(runner)
        # The tables will take the rest of the log.
        assert 0 < journal.free_bytes() <= RESERVE_BYTES + LOG_BYTES

        await service.check(journal)
        last = await runner.run(lambda: service.machine.read("stored"))
        assert last == service.acknowledged - 1
        await service.store(runner, may_use=Reserve.ALL)

    (disk / "ballast").unlink()
    async with (
        await open_journal(disk, reserve_bytes=RESERVE_BYTES) as journal,
        await Runner.open(journal, Counters(), CounterSerde()) as runner,
    ):
        await service.store(runner)
        await service.check(journal)


async def test_full_disk_ends_the_service_and_loses_nothing_that_was_acknowledged(
    disk: Path,
) -> None:
    service = Service()
    async with (
        await open_journal(disk, reserve_bytes=NO_RESERVE) as journal,
        await Runner.open(journal, service.machine, CounterSerde()) as runner,
    ):
        with pytest.raises(KafkaStorageError, match="database or disk is full"):
            await service.store_until_refused(runner)
        assert runner.failed.is_set()
        with pytest.raises(KafkaStorageError, match="database or disk is full"):
            await runner.run(lambda: service.machine.read("stored"))

    (disk / "ballast").unlink()
    machine = Counters()
    async with (
        await open_journal(disk, reserve_bytes=NO_RESERVE) as journal,
        await Runner.open(journal, machine, CounterSerde()) as runner,
    ):
        assert machine.value("stored") in (service.acknowledged - 1, service.acknowledged)
        await service.check(journal)


async def test_start_on_a_full_disk_is_refused_in_a_sentence(disk: Path) -> None:
    fill(disk)

    with pytest.raises(JournalOpenError, match=r"is full\. Free some space, then start again"):
        await open_journal(disk, reserve_bytes=NO_RESERVE)


async def test_start_of_an_existing_journal_on_a_full_disk_is_refused_in_the_same_sentence(
    disk: Path,
) -> None:
    await (await open_journal(disk, reserve_bytes=NO_RESERVE)).close()
    fill(disk)

    with pytest.raises(JournalOpenError, match=r"is full\. Free some space, then start again"):
        await open_journal(disk, reserve_bytes=NO_RESERVE)


def test_an_io_error_on_a_full_disk_is_told_as_a_full_disk(disk: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    assert cause(disk / "journal.db", error) == "disk I/O error"
    fill(disk)
    assert cause(disk / "journal.db", error) == "database or disk is full"


def fill(disk: Path) -> None:
    """Leave not a single page."""
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
