"""A cluster of real processes that serve their metrics, in a known state."""

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from aiosemel import (
    ProducerDescription,
    ProducerOptions,
    SemelClient,
    ToOffset,
    TopicPartition,
)
from aiosemel.errors import InvalidTransactionTimeoutError
from semel_local import ProcessCluster
from semel_local.layout import Role
from semel_local.metrics import MetricsPorts

TOPIC = TopicPartition("orders", 0)
LAG_INTERVAL_MS = 100

Families = dict[str, Metric]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A cluster, and the ids that a scrape of it shows."""

    cluster: ProcessCluster
    ports: MetricsPorts
    open_producer: tuple[int, int | None]
    """Id and epoch of the producer whose transaction stays open."""

    async def scrape(self, service: str) -> Families:
        """Ask as Prometheus does."""
        text = await asyncio.to_thread(_get, self.ports.url(service))
        return {family.name: family for family in text_string_to_metric_families(text)}

    async def scrape_until(self, service: str, shows: Callable[[Families], bool]) -> Families:
        """Ask until a figure that is looked up from time to time is there."""
        async with asyncio.timeout(20):
            while True:
                found = await self.scrape(service)
                if shows(found):
                    return found
                await asyncio.sleep(LAG_INTERVAL_MS / 1000)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    """Three commits, an abort, a prepared transaction, and one that stays open."""
    folder: Path = tmp_path_factory.mktemp("watched")
    ports = MetricsPorts()
    settings = {Role.GROUP_COORDINATOR: {"group_lag_interval_ms": LAG_INTERVAL_MS}}
    async with (
        ProcessCluster(folder, settings=settings, start_options=ports.start_options) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        yield Watched(cluster=cluster, ports=ports, open_producer=await _work(client))


async def _work(client: SemelClient) -> tuple[int, int | None]:
    topic, partition = TOPIC
    await client.admin().create_topic(topic, partitions=1)
    await client.admin().groups.reset_offsets("readers", ToOffset(0), partitions=[TOPIC])
    writer = client.transactional_producer("writer")
    await writer.init_transactions()
    for _ in range(3):
        await writer.begin_transaction()
        await writer.send(topic, b"committed", partition=partition)
        await writer.commit()
    await writer.begin_transaction()
    await writer.send(topic, b"aborted", partition=partition)
    await writer.flush()
    await writer.abort()
    while await _open_producers(client):
        pass  # A marker comes after the answer: behind a record that stays open, it counts as lag.
    greedy = client.transactional_producer(
        "greedy", ProducerOptions(transaction_timeout_ms=(1 << 31) - 1)
    )
    with pytest.raises(InvalidTransactionTimeoutError):
        await greedy.init_transactions()
    holder = client.transactional_producer("holder")
    await holder.init_transactions()
    await holder.begin_transaction()
    await holder.send(topic, b"open", partition=partition)
    await holder.flush()
    (open_one,) = await _open_producers(client)
    return open_one.producer_id, open_one.producer_epoch


async def _open_producers(client: SemelClient) -> list[ProducerDescription]:
    described = await client.admin().operators.describe_producers(TOPIC)
    return [producer for producer in described.producers if producer.open_transactions]


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - of our own service
        return str(answer.read().decode())
