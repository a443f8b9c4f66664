"""A cluster on a disk below its reserve, with default settings: its calls and its errors.

The disk is one of 110 MB in memory, which only root can mount.
"""

import asyncio
import contextlib
import logging
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from aiosemel import ConsumerOptions, OffsetReset, ProducerOptions, SemelClient
from aiosemel.errors import RequestTimedOutError
from semel_local import ProcessCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

DISK_BYTES = 110 << 20
RESERVE_BYTES = 64 << 20
IMPATIENT = ProducerOptions(delivery_timeout_ms=1_000, request_timeout_ms=1_000, max_block_ms=1_000)
FROM_START = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)


class Stage:
    """A cluster, and a file that fills its disk."""

    def __init__(self, cluster: ProcessCluster, disk: Path) -> None:
        """Take both as they are."""
        self.cluster = cluster
        self._filler = disk / "filler"

    def fill(self, *, above_bytes: int) -> None:
        """Leave so many bytes above the reserve; below it, if the number is negative."""
        free_bytes = shutil.disk_usage(self._filler.parent).free
        with self._filler.open("ab") as file:
            file.write(bytes(max(0, free_bytes - RESERVE_BYTES - above_bytes)))

    def give_back(self) -> None:
        """Free the space that the test has filled."""
        self._filler.unlink()

    def cause(self, name: str) -> re.Pattern[str]:
        """Match the sentence about the disk of an instance."""
        role, _, number = name.rpartition("-")
        instance = f"{role.replace('-', '.')}.{number} at {self.cluster.address(name)}"
        folder = re.escape(str(self.cluster.folder / name))
        return re.compile(
            rf"the disk of {instance} is below its reserve.* [\d,]+ bytes are free.* in {folder},"
            rf" and disk_reserve_bytes is {RESERVE_BYTES:,}"
        )


@contextlib.asynccontextmanager
async def started(disk: Path) -> AsyncIterator[Stage]:
    """Run a cluster with a topic on a disk."""
    async with ProcessCluster(disk / "cluster") as cluster:
        async with SemelClient(cluster.bootstrap) as client:
            await client.admin().create_topic("t")
        yield Stage(cluster, disk)


async def semel(
    stage: Stage, *words: str, stdin: bytes | None = None
) -> asyncio.subprocess.Process:
    """Start a command; its input is closed after the given text."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "semel_cli", *words, "--bootstrap", stage.cluster.bootstrap),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    if stdin is not None:
        process.stdin.write(stdin)
        process.stdin.close()
    return process


async def test_producers_doctor_and_logs_name_the_disk(mount_disk: Callable[[int], Path]) -> None:
    async with started(mount_disk(DISK_BYTES)) as stage:
        stage.fill(above_bytes=2 << 20)
        lines = b"".join(b"%d\n" % number for number in range(900_000))
        producing = await semel(stage, "produce", "t", stdin=lines)
        assert producing.stderr is not None
        cause = stage.cause("broker-0")
        async for line in producing.stderr:  # It still waits then.
            assert b"TLS" not in line
            if cause.search(line.decode()):
                break
        assert producing.returncode is None
        producing.kill()
        await producing.communicate()

        for name in ("coordinator-0", "broker-0", "group-coordinator-0"):
            await _line_in_log(stage, name)
        found, status = b"", None
        while b"broker-0" not in found:
            doctor = await semel(stage, "doctor", stdin=b"")
            found, _ = await doctor.communicate()
            status = doctor.returncode
        assert status == 3
        assert f"bytes are free in {stage.cluster.folder / 'broker-0'}, and".encode() in found
        assert f"disk_reserve_bytes is {RESERVE_BYTES:,}".encode() in found


async def _line_in_log(stage: Stage, name: str) -> None:
    folder = stage.cluster.folder / name
    wanted = re.compile(
        rf"\[error *\] disk is nearly full.* disk_reserve_bytes={RESERVE_BYTES} folder={folder}"
        r" free_bytes=\d+ "
    )
    while not wanted.search(stage.cluster.log_path(name).read_text()):  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)


async def test_transactions_end_readers_read_and_all_start_below_the_reserve(
    mount_disk: Callable[[int], Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="aiosemel")
    async with started(mount_disk(DISK_BYTES)) as stage, contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(SemelClient(stage.cluster.bootstrap))
        opened = [
            await stack.enter_async_context(client.transactional_producer(name, IMPATIENT))
            for name in ("commits", "aborts")
        ]
        for producer in opened:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_and_wait("t", producer.transactional_id.encode())
        stage.fill(above_bytes=-(1 << 20))
        commits, aborts = opened
        await commits.commit(wait_until_visible=True)
        await aborts.abort()
        stage.fill(above_bytes=-(1 << 20))  # The tables may have given space back.

        with pytest.raises(RequestTimedOutError):
            async with client.producer(IMPATIENT) as plain:
                await plain.send_and_wait("t", b"refused")
        await commits.begin_transaction()
        with pytest.raises(Exception, match="not acknowledged"):
            await commits.send_and_wait("t", b"refused")
        await commits.abort()
        assert stage.cause("broker-0").search(caplog.text)

        for name in stage.cluster.names:
            await stage.cluster.restart(name)
        assert await _read_as_group(stage) == [b"commits"]
        stage.give_back()
        async with client.producer() as plain:
            await plain.send_and_wait("t", b"after")
        assert await _read_as_group(stage) == [b"after"]


@pytest.mark.slow
async def test_records_are_taken_again_once_a_topic_is_deleted(
    mount_disk: Callable[[int], Path],
) -> None:
    """The remedy that errors and doctor name, on a cluster that writes nothing meanwhile."""
    async with (
        started(mount_disk(DISK_BYTES)) as stage,
        SemelClient(stage.cluster.bootstrap) as client,
    ):
        with pytest.raises(RequestTimedOutError, match="is below its reserve"):
            await _send_until_refused(client)
        await client.admin().delete_topic("t")
        await client.admin().create_topic("after")
        async with client.producer() as producer:
            await producer.send_and_wait("after", b"taken")


async def _send_until_refused(client: SemelClient) -> None:
    async with client.producer(IMPATIENT) as producer:
        for _ in range(100):
            await producer.send_and_wait("t", bytes(800_000))


async def _read_as_group(stage: Stage) -> list[bytes | None]:
    """Read one record as a member of a group that commits where it stands."""
    async with (
        SemelClient(stage.cluster.bootstrap) as client,
        client.consumer("g", FROM_START) as reader,
    ):
        reader.subscribe(["t"])
        while not (found := await reader.poll()):
            pass
        await reader.commit()
        return [record.value for records in found.values() for record in records]
