"""Journals and logs on one disk that is full: calls fail at once, services end, nothing is lost.

A service cannot write its log then, either. It still has to end with its exit status. Once there is
room again, a start goes on with everything that was acknowledged.

The disk is full in two ways: a small one in memory is filled, which only root can mount; and a
limit on the size of files is put on a process while it runs, which Linux lets everybody do.
"""

import asyncio
import contextlib
import os
import re
import resource
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Literal, Protocol

import pytest

from aiosemel import ConsumerOptions, OffsetReset, SemelClient
from aiosemel.errors import (
    KafkaStorageError,
    NetworkExceptionError,
    ThrottlingQuotaExceededError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1 import broker_pb2
from semel.common.v1 import errors_pb2, records_pb2
from semel.coordinator.v1 import transactions_pb2
from semel.group.v1 import group_pb2
from semel_cli.local import up
from semel_common.wire.connection import Connection
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import COMMIT_OFFSETS, INIT_PRODUCER_ID, PRODUCE
from semel_common.wire.status import from_value
from semel_local import ProcessCluster
from semel_local.layout import Role
from semel_local.process import Ended
from semel_runtime.journal.witness import read_witness

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

DISK_BYTES = 48 << 20
PAGE_BYTES = 4_096
TIMEOUT_MS = 600_000
"""Of each call: longer than the test takes, so an answer in time is an answer at once."""
SERVICES = ("coordinator-0", "broker-0", "group-coordinator-0")

PARTITION = ("t", 0)


class WithError(Protocol):
    """A part of an answer."""

    @property
    def error(self) -> errors_pb2.Error:
        """The fault of the disk."""
        ...

    def HasField(self, name: Literal["error"]) -> bool:  # noqa: N802 - protobuf's
        """Whether anything is."""
        ...


@pytest.fixture
def small_disk(mount_disk: Callable[[int], Path]) -> Path:
    return mount_disk(DISK_BYTES)


class Cluster:
    """A cluster whose disk is going to be full, and calls of its services without retries."""

    def __init__(self, processes: ProcessCluster, ended: asyncio.Queue[Ended]) -> None:
        """Take a cluster that is started, and the exit statuses of its services."""
        self.processes = processes
        self.ended = ended
        self._ends: dict[str, Ended] = {}
        self._connector = GrpcConnector()
        self._offsets: list[int] = []
        self._producer_ids: list[int] = []
        self._commits = count(1)
        self._committed = 0

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connector.close()

    def has_ended(self, name: str) -> bool:
        """Whether a service has ended. A full disk may end others first, by work of their own."""
        while not self.ended.empty():
            self._note(self.ended.get_nowait())
        return name in self._ends

    async def end_of(self, name: str) -> Ended:
        """Wait until a service has ended."""
        while not self.has_ended(name):
            self._note(await self.ended.get())
        return self._ends[name]

    def _note(self, end: Ended) -> None:
        self._ends[end.name] = end

    async def work(self, name: str) -> None:
        """Have one service store a record, and note the records that it has acknowledged."""
        connection = self._connector.connect(self.processes.address(name))
        works = {
            "coordinator-0": self._init_producer_id,
            "broker-0": self._produce,
            "group-coordinator-0": self._commit_offsets,
        }
        await works[name](connection)

    async def check(self) -> None:
        """Assert that all that was acknowledged is there, and that work goes on from it."""
        async with SemelClient(self.processes.bootstrap) as client:
            (committed,) = (await client.admin().list_consumer_group_offsets("g")).values()
        assert committed is not None
        assert committed.offset >= self._committed  # One that was not answered may have counted.
        await self._connector.close()  # It waits before it connects again to a service that ended.
        self._connector = GrpcConnector()
        offset, producer_id = self._offsets[-1], self._producer_ids[-1]
        for name in SERVICES:
            await self.work(name)
        assert self._offsets[-1] > offset
        assert self._producer_ids[-1] > producer_id
        assert await self._missing() == set()

    async def _missing(self) -> set[bytes]:
        """Return the records that were acknowledged and are not there."""
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        missing = {b"%d" % offset for offset in self._offsets}
        async with (
            SemelClient(self.processes.bootstrap) as client,
            client.consumer(options=options) as reader,
        ):
            reader.assign([PARTITION])
            position = 0
            while position <= self._offsets[-1]:
                for records in (await reader.poll()).values():
                    missing -= {
                        b"%d" % record.offset for record in records if record.value == b"stored"
                    }
                    position = records[-1].offset + 1
        return missing

    async def _init_producer_id(self, connection: Connection) -> None:
        request = transactions_pb2.InitProducerIdRequest()
        answer = await connection.call(INIT_PRODUCER_ID, request, timeout_ms=TIMEOUT_MS)
        self._producer_ids.append(answer.producer_id)

    async def _produce(self, connection: Connection) -> None:
        records = broker_pb2.PlainRecords(records=[records_pb2.Record(value=b"stored")])
        part = broker_pb2.ProducePartition(topic="t", records=records)
        request = broker_pb2.ProduceRequest(partitions=[part])
        answer = await connection.call(PRODUCE, request, timeout_ms=TIMEOUT_MS)
        (result,) = answer.partitions
        _raise_any([result])
        self._offsets.append(result.base_offset)

    async def _commit_offsets(self, connection: Connection) -> None:
        number = next(self._commits)
        offset = group_pb2.OffsetCommitPartition(committed_offset=number)
        topic = group_pb2.OffsetCommitTopic(topic="t", partitions=[offset])
        request = group_pb2.CommitOffsetsRequest(group_id="g", member_epoch=-1, topics=[topic])
        answer = await connection.call(COMMIT_OFFSETS, request, timeout_ms=TIMEOUT_MS)
        _raise_any(answer.errors)
        self._committed = number


def _raise_any(results: Iterable[WithError]) -> None:
    for result in results:
        if result.HasField("error"):
            raise from_value(result.error)


@contextlib.asynccontextmanager
async def started(folder: Path, *, reserve_bytes: int = 0) -> AsyncIterator[Cluster]:
    """Run a cluster that has worked once; without a reserve, it writes as long as it can."""
    ended: asyncio.Queue[Ended] = asyncio.Queue()
    settings = {role: {"disk_reserve_bytes": reserve_bytes} for role in Role}
    async with ProcessCluster(folder, settings=settings, on_ended=ended.put_nowait) as processes:
        async with SemelClient(processes.bootstrap) as client:
            await client.admin().create_topic("t")
        cluster = Cluster(processes, ended)
        async with contextlib.aclosing(cluster):
            for name in SERVICES:
                await work_once_known(cluster, name)
            yield cluster


async def work_once_known(cluster: Cluster, name: str) -> None:
    """Work when a service has heard of the topic."""
    while True:
        with contextlib.suppress(UnknownTopicOrPartitionError):
            return await cluster.work(name)


async def fails_and_ends(
    cluster: Cluster, name: str, on_refusal: Callable[[], None] = lambda: None
) -> None:
    """Let a service work until it fails: at once for all who wait, and with its exit status.

    `on_refusal` is called when it sees that its disk is full, refuses, and serves on.
    """
    failed: list[BaseException] = []
    while not (
        cluster.has_ended(name) or any(isinstance(each, KafkaStorageError) for each in failed)
    ):
        calls = [cluster.work(name) for _ in range(3)]
        errors = [each for each in await asyncio.gather(*calls, return_exceptions=True) if each]
        failed = [error for error in errors if not isinstance(error, ThrottlingQuotaExceededError)]
        assert {type(each) for each in failed} <= {KafkaStorageError, NetworkExceptionError}
        if len(failed) < len(errors):
            on_refusal()
    assert (await cluster.end_of(name)).exit_status == 1


@pytest.mark.parametrize("name", SERVICES)
async def test_a_service_whose_files_cannot_grow_fails_at_once_and_ends(
    tmp_path: Path, name: str
) -> None:
    """Neither its journal nor its log can be written any more."""
    async with started(tmp_path / "cluster") as cluster:
        pid = cluster.processes.pid(name)
        assert pid is not None
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        await fails_and_ends(cluster, name)
        await cluster.processes.start(name)
        await cluster.check()


async def test_services_on_a_full_disk_refuse_or_fail_at_once_and_lose_nothing(
    small_disk: Path,
) -> None:
    """All three, with their journals and their logs on it."""
    filler = small_disk / "filler"
    async with started(small_disk / "cluster") as cluster:
        await tables_have_all(small_disk / "cluster")  # Else any of them may be the first to end.
        fill(filler)

        def give_a_page() -> None:
            """Leave less than a commit takes: of a disk without a byte, services notice it."""
            os.truncate(filler, filler.stat().st_size - PAGE_BYTES)

        for name in SERVICES:
            await fails_and_ends(cluster, name, give_a_page)
        filler.unlink()
        for name in SERVICES:
            await cluster.processes.start(name)
        await cluster.check()


async def test_a_service_says_in_its_log_when_its_disk_is_nearly_full_and_when_no_longer(
    small_disk: Path,
) -> None:
    """Of a disk that nothing is written to meanwhile, too."""
    filler = small_disk / "filler"
    async with started(small_disk / "cluster", reserve_bytes=DISK_BYTES // 2) as cluster:
        filler.write_bytes(bytes(DISK_BYTES // 2))
        full = await line_with(cluster, "disk is nearly full")
        filler.unlink()
        await line_with(cluster, "disk has room again")
    assert re.search(r"free_bytes=\d+", full)
    assert f"reserve_bytes={DISK_BYTES // 2}" in full
    assert f"folder={small_disk / 'cluster' / 'broker-0'}" in full


async def line_with(cluster: Cluster, event: str) -> str:
    """Wait until the log of the broker has a line about this."""
    path = cluster.processes.log_path("broker-0")
    while True:
        for line in path.read_text().splitlines():
            if event in line:
                return line
        await asyncio.sleep(0.01)


async def tables_have_all(folder: Path) -> None:
    """Wait until the tables of each service have all records of the log in front of them."""
    for name in SERVICES:
        while not _have_all(folder / name):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)


def _have_all(folder: Path) -> bool:
    witness = read_witness(folder)
    uri = f"file:{folder / 'journal.db'}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        ((end,),) = connection.execute("SELECT next_offset FROM positions")
    return witness is not None and end >= witness.next_offset


def fill(filler: Path) -> None:
    """Leave not a single page."""
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(PAGE_BYTES))


async def test_a_supervisor_on_a_full_disk_starts_a_service_again_and_stops_no_other(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot note the number of the new process, which runs."""
    monkeypatch.setattr(up, "RESTART_PAUSE_S", 0)
    filler = small_disk / "filler"
    async with started(small_disk / "cluster") as cluster:
        supervisor = asyncio.create_task(
            up._supervise(cluster.processes, cluster.ended, restart=True)
        )
        fill(filler)
        before = cluster.processes.pids()
        cluster.processes.signal("broker-0", signal.SIGKILL)
        while cluster.processes.pid("broker-0") in (None, before["broker-0"]):
            assert not supervisor.done()
            await asyncio.sleep(0.01)
        filler.unlink()
        supervisor.cancel()
        assert {"coordinator-0", "group-coordinator-0"} <= cluster.processes.pids().keys()
