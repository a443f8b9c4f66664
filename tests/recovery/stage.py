"""A cluster of real processes, with volumes to copy, put back, lose, and recover."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from signal import Signals
from typing import Any

import pytest

from aiosemel import ClientOptions, ConsumerOptions, OffsetReset, SemelClient, TransactionalProducer
from semel_common.ids import owner_of, partition_for_id
from semel_local import ProcessCluster
from semel_local.errors import ServiceFailedError
from semel_local.layout import Role

SEMEL = Path(sys.executable).parent / "semel"
COORDINATORS = 2
REFUSED = "see `semel recover`"
_TRANSACTION_LOG_PARTITIONS = 50


class Stage:
    """The cluster, with a client."""

    def __init__(self, folder: Path, cluster: ProcessCluster, client: SemelClient) -> None:
        self.cluster = cluster
        self.client = client
        self._folder = folder
        self.given: list[tuple[int, int]] = []
        """(producer id, epoch) of every transaction, in order."""

    # -- volumes -----------------------------------------------------------------------------------

    async def copy(self, name: str) -> None:
        """Copy a volume, as a backup does: the service is stopped meanwhile."""
        await self.cluster.stop_service(name)
        shutil.copytree(self.data(name), self._folder / "copies" / name)
        await self.cluster.start(name)

    async def copy_running(self, name: str) -> None:
        """Copy a volume at one point in time, while its service stands still and runs."""
        self.cluster.signal(name, Signals.SIGSTOP)
        shutil.copytree(self.data(name), self._folder / "copies" / name)
        self.cluster.signal(name, Signals.SIGCONT)

    async def kill_and_put_back(self, name: str) -> None:
        """Kill a service, and put the older copy in the place of its volume."""
        await self.cluster.kill(name)
        shutil.rmtree(self.data(name))
        shutil.copytree(self._folder / "copies" / name, self.data(name))

    async def put_back(self, name: str) -> None:
        """Stop a service, and put the older copy in the place of its volume."""
        await self.lose(name)
        shutil.copytree(self._folder / "copies" / name, self.data(name))

    async def lose(self, name: str) -> None:
        """Stop a service, and remove its volume."""
        await self.cluster.stop_service(name)
        shutil.rmtree(self.data(name))

    def data(self, name: str) -> Path:
        """Return the data folder of a service."""
        return self.cluster.folder / name

    async def recover(
        self, name: str, *options: str, status: int = 0, security: Sequence[str | Path] = ()
    ) -> dict[str, Any]:
        """Run `semel recover` for a service, and return its output; on failure, the error."""
        process = await asyncio.create_subprocess_exec(
            *(
                str(SEMEL),
                *map(str, security),
                "recover",
                name,
                "--data",
                str(self.data(name)),
                "--yes",
            ),
            *("--reason", "a test", "--format", "json", *options),
            env={**os.environ, "SEMEL_BOOTSTRAP": self.cluster.bootstrap},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, told = await process.communicate()
        assert process.returncode == status, told.decode()
        return {"sentence": told.decode()} if status else json.loads(output)

    # -- work --------------------------------------------------------------------------------------

    async def producer(self, transactional_id: str) -> TransactionalProducer:
        """Make a producer and take over its id."""
        producer = self.client.transactional_producer(transactional_id)
        await producer.init_transactions()
        return producer

    async def write(self, producer: TransactionalProducer, topic: str, *values: str) -> None:
        """Write records in one transaction, and note which one it was."""
        described = await self.client.admin().describe_transactions(producer.transactional_id)
        self.given.append((described.producer_id, described.producer_epoch))
        async with producer.transaction(wait_until_visible=True):
            for value in values:
                await producer.send_and_wait(topic, value.encode(), partition=0)

    async def topic_on(self, broker: int) -> str:
        """Make a topic of one partition that a broker leads."""
        admin = self.client.admin()
        for number in range(10):
            topic = f"topic-{number}"
            await admin.create_topic(topic, partitions=1, exist_ok=True)
            described = await admin.describe_topic(topic)
            if described.partitions[0].leader_id == broker:
                return topic
        raise AssertionError(f"broker {broker} leads nothing")

    async def heard(self) -> None:
        """Wait until every instance has registered after all that was done before."""
        seen = await self._registrations()
        late = list(seen)
        try:
            async with asyncio.timeout(60):
                while late:
                    now = await self._registrations()
                    late = [name for name, at_ms in seen.items() if now[name] <= at_ms]
        except TimeoutError:
            raise AssertionError(f"{late} did not register again in 60 s") from None

    async def _registrations(self) -> dict[tuple[str, int], int]:
        """Return when each instance has registered last; the controller alone knows."""
        while True:
            described = await self.client.admin().describe_cluster()
            times = {
                (str(instance.role), instance.instance_id): instance.last_registered_ms
                for instance in described.instances
            }
            known = {name: at_ms for name, at_ms in times.items() if at_ms is not None}
            if len(known) == len(times):
                return known

    async def spread(self, topic: str) -> None:
        """Make a topic with a record at every broker: all of them have taken the metadata then."""
        await self.client.admin().create_topic(topic, partitions=2)
        async with self.client.producer() as producer:
            for partition in range(2):
                await producer.send_and_wait(topic, b"", partition=partition)

    async def read(self, topic: str) -> list[tuple[int, str]]:
        """Return all records of a topic of one partition that committed readers see."""
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50)
        found: list[tuple[int, str]] = []
        async with self.client.consumer(options=options) as consumer:
            consumer.assign([(topic, 0)])
            ends = await consumer.end_offsets([(topic, 0)])
            (end,) = ends.values()
            async with asyncio.timeout(20):
                while await consumer.position((topic, 0)) < end:
                    polled = await consumer.poll(timeout_ms=500)
                    for records in polled.values():
                        found += [
                            (record.offset, (record.value or b"").decode()) for record in records
                        ]
        return found


@asynccontextmanager
async def stage(folder: Path, *, tls: bool = False) -> AsyncIterator[Stage]:
    """Start a cluster with two coordinators, two brokers and one group coordinator."""
    cluster = ProcessCluster(
        folder / "cluster",
        brokers=2,
        coordinators=COORDINATORS,
        tls=tls,
        settings={role: {"registration_interval_ms": 300} for role in Role},
    )
    options = ClientOptions(retry_backoff_ms=20)
    async with (
        cluster,
        SemelClient(cluster.bootstrap, options=options, security=cluster.security) as client,
    ):
        yield Stage(folder, cluster, client)


def id_of(coordinator: int, number: int = 0) -> str:
    """Return a transactional id that a coordinator is in charge of."""
    names = (f"app-{number}-{each}" for each in range(1_000))
    return next(
        name
        for name in names
        if owner_of(partition_for_id(name, _TRANSACTION_LOG_PARTITIONS), COORDINATORS)
        == coordinator
    )


async def stops(on: Stage, name: str) -> str:
    """Start a service that other instances refuse once it runs; return the end of its log."""
    await on.cluster.start(name, wait=False)
    return await ended(on, name)


async def ended(on: Stage, name: str) -> str:
    """Wait until a service has ended; return its log."""
    try:
        async with asyncio.timeout(60):
            while on.cluster.pid(name) is not None:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        log = on.cluster.log_path(name).read_text()
        raise AssertionError(f"{name} did not end in 60 s: {log[-2000:]}") from None
    return on.cluster.log_path(name).read_text()


async def refused(on: Stage, name: str) -> str:
    """Start a service that must not serve; return the end of its log."""
    with pytest.raises(ServiceFailedError) as failed:
        await on.cluster.start(name)
    return str(failed.value)
