"""Clients reach live services: past dead addresses, lost coordinators, and a useless proxy."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path

import pytest

from aiosemel import ClientOptions, Consumer, ConsumerOptions, OffsetReset, SemelClient
from aiosemel.errors import InvalidResponseError
from semel_local import LocalCluster, ProcessCluster

pytestmark = pytest.mark.slow

DEAD = "127.0.0.1:1"
"""No process listens there: the port is reserved."""
UNRESOLVED = "nosuch.invalid:9092"
OPTIONS = ClientOptions(default_api_timeout_ms=20_000)
SEMEL = (sys.executable, "-c", "from semel_cli.main import main; main()")


Call = Callable[[SemelClient, str], Awaitable[object]]


async def _poll(consumer: Consumer) -> None:
    await consumer.poll(timeout_ms=60_000)


async def _poll_alone(client: SemelClient, topic: str) -> None:
    consumer = client.consumer()
    consumer.assign([(topic, 0)])
    await _poll(consumer)


async def _poll_in_group(client: SemelClient, topic: str) -> None:
    consumer = client.consumer("g")
    consumer.subscribe([topic])
    await _poll(consumer)


CALLS: tuple[Call, ...] = (
    lambda client, _: client.admin().list_topics(),
    lambda client, topic: client.producer().send_and_wait(topic, b"hello"),
    lambda client, _: client.transactional_producer("t").init_transactions(),
    _poll_alone,
    _poll_in_group,
)
"""The first calls that a new client may make."""


@asynccontextmanager
async def connected(bootstrap: str) -> AsyncIterator[SemelClient]:
    """Open a client of its own: it knows no more than these addresses."""
    async with SemelClient(bootstrap, options=OPTIONS) as client:
        yield client


async def use(bootstrap: str, topic: str) -> None:
    """Make each kind of call of a new client."""
    async with connected(bootstrap) as client:
        for _ in range(2):
            assert topic in [each.name for each in await client.admin().list_topics()]
            await client.producer().send_and_wait(topic, b"hello")
        assert await client.admin().list_groups() is not None
        options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        async with client.consumer(options=options) as consumer:
            consumer.assign([(topic, 0)])
            assert await consumer.poll(timeout_ms=20_000)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.asyncio(loop_scope="session")
async def test_bootstrap_address_that_lives_is_found_among_dead_ones(
    cluster: LocalCluster, topic: str, order: tuple[int, ...]
) -> None:
    addresses = (DEAD, UNRESOLVED, cluster.bootstrap)
    bootstrap = ",".join(addresses[each] for each in order)
    async with connected(bootstrap) as client:
        assert topic in [each.name for each in await client.admin().list_topics()]
        await client.producer().send_and_wait(topic, b"hello", partition=0)
        async with client.transactional_producer(f"order-{order}") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send(topic, b"hello", partition=0)
            await producer.commit()


@pytest.mark.asyncio(loop_scope="session")
async def test_port_of_another_service_ends_every_call_at_once(
    cluster: LocalCluster, topic: str
) -> None:
    others = [each for each in cluster.names if not each.startswith("coordinator")]
    addresses = [cluster.address(name) for name in others]
    for address in addresses:
        for call in CALLS:
            async with connected(address) as client, asyncio.timeout(30):
                with pytest.raises(InvalidResponseError, match=f"{address} is the address of a"):
                    await call(client, topic)
    async with connected(f"{addresses[0]},{cluster.bootstrap}") as client:
        assert topic in [each.name for each in await client.admin().list_topics()]


async def test_cluster_behind_a_useless_proxy_is_used_with_one_coordinator_of_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://{DEAD}")
    async with ProcessCluster(tmp_path, coordinators=4) as cluster:
        bootstrap = ",".join(cluster.address(f"coordinator-{each}") for each in range(4))
        async with connected(cluster.bootstrap) as known:
            await known.admin().create_topic("t")
            for away in (1, 2, 3):
                await cluster.kill(f"coordinator-{away}")
            await use(bootstrap, "t")
            assert [topic.name for topic in await known.admin().list_topics()] == ["t"]
            await known.producer().send_and_wait("t", b"hello")
        listing = await asyncio.create_subprocess_exec(
            *SEMEL, "topics", "list", "-b", f"{DEAD},{bootstrap}", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await listing.communicate()
        assert listing.returncode == 0
        assert b"t\t1\t" in out
