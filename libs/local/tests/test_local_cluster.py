"""A cluster in this process: transactions, services that stop and come back, data in a folder."""

import asyncio
from pathlib import Path

import pytest
import structlog

from aiosemel import ConsumerOptions, OffsetReset, SemelClient
from semel_local import LocalCluster
from semel_local.errors import LocalClusterError, ServiceFailedError
from semel_local.layout import Role


@pytest.fixture(autouse=True)
def _logs_that_nobody_has_configured() -> None:
    structlog.reset_defaults()


async def commit(client: SemelClient, *values: bytes) -> None:
    """Send values in one transaction, and wait until they can be read."""
    async with client.transactional_producer("test") as producer:
        await producer.init_transactions()
        async with producer.transaction(wait_until_visible=True) as transaction:
            for value in values:
                await transaction.send("topic", value)


async def read(client: SemelClient, partitions: int, count: int) -> set[bytes | None]:
    """Read so many committed records from the beginning."""
    values: set[bytes | None] = set()
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with asyncio.timeout(20), client.consumer(options=options) as consumer:
        consumer.assign([("topic", number) for number in range(partitions)])
        while len(values) < count:
            for records in (await consumer.poll()).values():
                values |= {record.value for record in records}
    return values


async def test_a_committed_transaction_is_read_back() -> None:
    async with LocalCluster(brokers=2) as cluster, cluster.client() as client:
        await client.admin().create_topic("topic", partitions=4)
        await commit(client, b"1", b"2", b"3")
        assert await read(client, 4, 3) == {b"1", b"2", b"3"}


async def test_all_roles_can_have_several_instances() -> None:
    async with LocalCluster(brokers=3, coordinators=2, group_coordinators=2) as cluster:
        async with cluster.client() as client:
            described = await client.admin().describe_cluster()
        assert len(cluster.names) == 7
        assert {f"{instance.role}-{instance.instance_id}" for instance in described.instances} == {
            *cluster.names
        }


async def test_a_service_comes_back_with_its_data_at_its_address() -> None:
    async with LocalCluster() as cluster, cluster.client() as client:
        await client.admin().create_topic("topic", partitions=1)
        await commit(client, b"kept")
        for name in cluster.names:
            address = cluster.address(name)
            await cluster.stop_service(name)
            await cluster.start_service(name)
            assert cluster.address(name) == address
        assert await read(client, 1, 1) == {b"kept"}


async def test_a_folder_keeps_the_data_for_the_next_cluster(tmp_path: Path) -> None:
    async with LocalCluster(folder=tmp_path) as cluster, cluster.client() as client:
        await client.admin().create_topic("topic", partitions=1)
        await commit(client, b"kept")
    async with LocalCluster(folder=tmp_path) as cluster, cluster.client() as client:
        assert await read(client, 1, 1) == {b"kept"}


async def test_settings_reach_the_services_of_their_role() -> None:
    settings = {Role.COORDINATOR: {"num_partitions": 7}}
    async with LocalCluster(settings=settings) as cluster, cluster.client() as client:
        topic = await client.admin().create_topic("topic")
    assert len(topic.partitions) == 7


async def test_a_service_that_cannot_start_fails_the_cluster(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ServiceFailedError, match=r"(?s)broker-0 failed: .*message_max_bytes"):
        async with LocalCluster(settings={Role.BROKER: {"message_max_bytes": -1}}):
            pass
    assert "service failed" in caplog.text


async def test_two_clusters_of_one_process_know_nothing_of_each_other() -> None:
    async with LocalCluster() as one, LocalCluster() as two:
        async with one.client() as client:
            await client.admin().create_topic("topic")
        async with two.client() as client:
            assert await client.admin().list_topics() == ()


async def test_a_cluster_that_is_not_started_has_no_address() -> None:
    with pytest.raises(LocalClusterError, match="not started"):
        _ = LocalCluster().bootstrap
