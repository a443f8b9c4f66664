"""Quotas over the whole way: stored in the controller, kept by services, honoured by the SDK."""

import asyncio
import contextlib

from access.cluster import ADMIN, COORDINATOR, OTHER_COORDINATOR, Cluster
from semel.coordinator.v1 import cluster_pb2
from semel_common.errors import ThrottlingQuotaExceededError
from semel_common.wire import methods
from semel_runtime.authentication.principal import Principal
from semel_runtime.testing.virtual_time import in_virtual_time

GREEDY, POLITE = Principal(name="greedy"), Principal(name="polite")
SETTINGS = {"super_users": "User:admin;User:greedy;User:polite"}


@in_virtual_time
async def test_a_client_of_the_sdk_goes_as_fast_as_its_quota_and_is_never_refused() -> None:
    async with Cluster(SETTINGS).started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await admin.admin().access.alter_client_quotas(
            "greedy", set_limits={"producer_byte_rate": 10_000}
        )
        await cluster.settled()
        async with cluster.client(GREEDY) as client, cluster.client(POLITE) as other:
            begun = cluster.time()
            for _ in range(20):
                await client.producer().send_and_wait("orders", b"x" * 5_000)
            greedy_s = cluster.time() - begun
            begun = cluster.time()
            for _ in range(20):
                await other.producer().send_and_wait("orders", b"x" * 5_000)
            polite_s = cluster.time() - begun
        assert 7 < greedy_s < 14
        assert polite_s < 1


@in_virtual_time
async def test_many_that_send_at_once_share_the_quota_of_their_user() -> None:
    async with Cluster(SETTINGS).started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().access.alter_client_quotas(None, set_limits={"request_rate": 20})
        await cluster.settled()
        clients = [cluster.client(GREEDY) for _ in range(3)]
        begun = cluster.time()

        async def work(client: object) -> None:
            async with client as opened:  # type: ignore[attr-defined]
                for _ in range(50):
                    await opened.admin().list_topics()

        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(work(client))
        # Each of two coordinators lets 20 pass in a second.
        assert 2.5 < cluster.time() - begun < 6


@in_virtual_time
async def test_only_a_caller_that_does_not_wait_is_refused() -> None:
    async with Cluster(SETTINGS).started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().access.alter_client_quotas("greedy", set_limits={"request_rate": 1})
        await cluster.settled()
        request = cluster_pb2.DescribeClusterRequest()
        told: list[int] = []
        for _ in range(30):
            try:
                answer = await cluster.ask(GREEDY, COORDINATOR, methods.DESCRIBE_CLUSTER, request)
            except ThrottlingQuotaExceededError as error:
                told.append(int(error.details["throttle_time_ms"]))
            else:
                told.append(answer.throttle_time_ms)
        assert told[0] == 0
        assert told == sorted(told)
        assert max(told) < 12_000
        answer = await cluster.ask(POLITE, COORDINATOR, methods.DESCRIBE_CLUSTER, request)
        assert answer.throttle_time_ms == 0


@in_virtual_time
async def test_a_user_that_is_over_its_quota_ends_its_transaction_and_takes_the_quota_away() -> (
    None
):
    async with Cluster(SETTINGS).started() as cluster, cluster.client(GREEDY) as client:
        await client.admin().create_topic("orders")
        producer = client.transactional_producer("app")
        await producer.init_transactions()
        async with producer.transaction() as transaction:
            await transaction.send("orders", b"x")
            await client.admin().access.alter_client_quotas(None, set_limits={"request_rate": 1})
            await cluster.settled()
            for address in (COORDINATOR, OTHER_COORDINATOR) * 30:
                with contextlib.suppress(ThrottlingQuotaExceededError):
                    request = cluster_pb2.DescribeClusterRequest()
                    await cluster.ask(GREEDY, address, methods.DESCRIBE_CLUSTER, request)
            begun = cluster.time()
        assert cluster.time() - begun < 1
        await client.admin().access.alter_client_quotas(None, remove=["request_rate"])
        await cluster.settled()
        assert cluster.time() - begun < 5
