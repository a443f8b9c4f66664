"""The example of a web service: real requests at the same time, and `kill -9` in the middle."""

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from committed_records import decided_records

from aiosemel import SemelClient
from semel_local import LocalCluster
from semel_local.layout import Role
from semel_runtime.testing.default_signals import default_signals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "web_service.py"
CALLERS = 24
"""Three for each producer of the pool."""
ORDERS_OF_EACH = 10
KILLS = 2
PARTITIONS = 2
QUICK = {"transaction_inquiry_interval_ms": 500}


class Service:
    """The web service, which may be killed and started again."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._process: Process | None = None
        self._log: asyncio.Task[None] | None = None
        self.lines: list[str] = []
        self.port = 0

    async def start(self, *options: str, reading: asyncio.Event | None = None) -> None:
        """Start it, and wait until it serves; ``reading`` is set when it reads the receipts."""
        with default_signals():
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(EXAMPLE), "--bootstrap", self._bootstrap, "--port", "0"),
                *options,
                stdin=DEVNULL,
                stderr=PIPE,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        stderr = self._process.stderr
        assert stderr is not None
        while not (
            found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line := await said(stderr))
        ):
            if reading and line.startswith("reading the receipts"):
                reading.set()
        self.port = int(found[1])
        self._log = asyncio.create_task(self._keep(stderr))

    async def end(self, number: signal.Signals) -> int:
        """End it with a signal, unless it has ended; returns the status."""
        assert self._process is not None
        assert self._log is not None
        if self._process.returncode is None:
            self._process.send_signal(number)
        await self._log
        return await self._process.wait()

    async def _keep(self, stderr: asyncio.StreamReader) -> None:
        """Read all that it writes, or it would wait for that."""
        while line := await stderr.readline():
            self.lines.append(line.decode())

    async def ask(
        self, path: str, *, key: str = "", body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Make one request; returns status and body. Raises OSError if there is no answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: semel\r\n"
            head += f"Connection: close\r\nContent-Length: {len(body or b'')}\r\n"
            head += f"Idempotency-Key: {key}\r\n\r\n"
            writer.write(head.encode() + (body or b""))
            answer = await reader.read()
        finally:
            writer.close()
        first, _, rest = answer.partition(b"\r\n")
        if b" " not in first:
            raise ConnectionResetError("the service went away before it answered")
        return int(first.split()[1]), rest.partition(b"\r\n\r\n")[2]


async def said(stream: asyncio.StreamReader) -> str:
    """Return the next line. Raises AssertionError at the end."""
    line = (await stream.readline()).decode()
    assert line, "the service has ended"
    return line


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own_cluster() -> AsyncIterator[LocalCluster]:
    """A cluster that soon ends the transactions of a killed process."""
    settings = {Role.BROKER: QUICK}
    async with LocalCluster(brokers=2, settings=settings) as cluster, cluster.client() as client:
        admin = client.admin()
        await admin.create_topic("orders", partitions=PARTITIONS)
        config = {"cleanup.policy": "compact"}
        await admin.create_topic("receipts", partitions=PARTITIONS, configs=config)
        yield cluster


@asynccontextmanager
async def serving(cluster: LocalCluster, *options: str) -> AsyncIterator[Service]:
    service = Service(cluster.bootstrap)
    await service.start(*options)
    try:
        yield service
    finally:
        await service.end(signal.SIGKILL)


async def read(client: SemelClient, topic: str) -> list[tuple[str, bytes]]:
    """Return keys and values of all that is committed in a topic, when readers see it."""
    places = [(topic, number) for number in range(PARTITIONS)]
    records = await decided_records(client, places)
    return [((record.key or b"").decode(), record.value or b"") for record in records]


async def order(service: Service, key: str) -> bytes:
    """Send an order until it has a receipt, as a caller does that never gives up."""
    while True:
        try:
            status, answer = await service.ask("/orders", key=key, body=b'{"pizza": "napoli"}')
        except OSError:
            await asyncio.sleep(0.05)
            continue
        assert status in (201, 503), (status, answer)
        if status == 201:
            return answer


async def test_every_order_is_taken_once_whenever_the_service_is_killed(
    own_cluster: LocalCluster,
) -> None:
    receipts: dict[str, bytes] = {}
    answered: asyncio.Queue[str] = asyncio.Queue()
    async with serving(own_cluster) as service, own_cluster.client() as client:

        async def call(caller: int) -> None:
            for number in range(ORDERS_OF_EACH):
                key = f"{caller}-{number}"
                receipts[key] = await order(service, key)
                answered.put_nowait(key)

        async with asyncio.TaskGroup() as callers:
            for caller in range(CALLERS):
                callers.create_task(call(caller))
            for _ in range(KILLS):
                for _ in range(CALLERS * ORDERS_OF_EACH // (KILLS + 1)):
                    await answered.get()
                await service.end(signal.SIGKILL)
                await service.start()
        assert len(receipts) == CALLERS * ORDERS_OF_EACH
        some = list(receipts)[::7]
        assert [await order(service, key) for key in some] == [receipts[key] for key in some]
        taken = await read(client, "orders")
        stored = await read(client, "receipts")
    assert sorted(key for key, _ in taken if key[0].isdigit()) == sorted(receipts)
    assert sorted(each for each in stored if each[0][0].isdigit()) == sorted(receipts.items())


async def test_a_receipt_that_readers_do_not_see_yet_is_waited_for(
    own_cluster: LocalCluster,
) -> None:
    reading = asyncio.Event()
    async with serving(own_cluster) as service, own_cluster.client() as client:
        other = client.transactional_producer("of another program")
        await other.init_transactions()
        async with other.transaction():
            for partition in range(PARTITIONS):
                await other.send_and_wait("receipts", b"{}", key=b"other", partition=partition)
            receipt = await order(service, "hidden")
            await service.end(signal.SIGKILL)
            starting = asyncio.create_task(service.start(reading=reading))
            await reading.wait()
        await starting
        assert await order(service, "hidden") == receipt
        taken = [key for key, _ in await read(client, "orders")]
    assert taken.count("hidden") == 1


async def test_one_order_in_many_requests_at_once_is_one_order(own_cluster: LocalCluster) -> None:
    async with serving(own_cluster) as service, own_cluster.client() as client:
        answers = await asyncio.gather(*(order(service, "eager") for _ in range(CALLERS)))
        taken = [key for key, _ in await read(client, "orders")]
    assert len(set(answers)) == 1
    assert taken.count("eager") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_the_service_ends_in_order(own_cluster: LocalCluster, number: signal.Signals) -> None:
    async with serving(own_cluster) as service:
        assert await order(service, f"before {number.name}")
        assert await service.end(number) == 0
    assert "Traceback" not in "".join(service.lines)


async def test_two_services_of_one_name_say_so_and_two_instances_work(
    own_cluster: LocalCluster,
) -> None:
    async with serving(own_cluster) as older, serving(own_cluster) as newer:
        status, answer = await older.ask("/orders", key="zombie", body=b"{}")
        assert status == 503
        assert "the pool 'orders' has ended" in json.loads(answer)["error"]
        assert (await older.ask("/health"))[0] == 503
        assert (await newer.ask("/health"))[0] == 200
        assert await order(newer, "of the newer one")
        async with serving(own_cluster, "--instance", "web-1") as another:
            assert await order(another, "of another one")
            assert await order(newer, "of the newer one, again")
