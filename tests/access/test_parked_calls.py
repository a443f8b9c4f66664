"""A call that waits is answered by the rules that hold when its answer leaves."""

import asyncio

import pytest

from access.cluster import ADMIN, BROKER, COORDINATOR, OTHER_BROKER, Cluster
from aiosemel import AclBinding, AclBindingFilter, AclOperation, AclPermission, ResourceType
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.errors_pb2 import ErrorCode
from semel.coordinator.v1 import cluster_pb2
from semel_common.errors import NotLeaderOrFollowerError
from semel_common.wire import methods
from semel_runtime.authentication.principal import Principal
from semel_runtime.testing.virtual_time import after, in_virtual_time

ALICE = Principal(name="alice")
REFUSED = ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED
WAIT_MS = 4_000
ORDERS = broker.FetchPartition(topic="orders")


def reading(topic: str) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        principal="User:alice",
        operation=AclOperation.READ,
        permission=AclPermission.ALLOW,
    )


async def leader_of(cluster: Cluster, request: broker.FetchRequest) -> str:
    for address in (BROKER, OTHER_BROKER):
        answer = await cluster.ask(ADMIN, address, methods.FETCH, request)
        if answer.partitions[0].error.code != NotLeaderOrFollowerError.code.value:
            return address
    raise AssertionError("no broker leads the partition")


@pytest.mark.parametrize("framed", [False, True], ids=["unary", "framed"])
@in_virtual_time
async def test_a_fetch_that_waits_while_its_rule_is_removed_is_refused(framed: bool) -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await admin.admin().create_topic("others")
        access = admin.admin().access
        await access.create_acls([reading("orders"), reading("others")])
        await cluster.settled()
        at = broker.FetchRequest(partitions=[ORDERS])
        address = await leader_of(cluster, at)
        request = broker.FetchRequest(partitions=[ORDERS], max_wait_ms=WAIT_MS, min_bytes=1 << 20)
        ask = cluster.ask_framed if framed else cluster.ask
        waiting = asyncio.create_task(ask(ALICE, address, methods.FETCH, request))
        await after(100)
        assert not waiting.done()
        await access.delete_acls([AclBindingFilter(resource_name="orders")])
        await cluster.settled()
        await admin.producer().send_and_wait("orders", b"a secret of later")
        answer = await waiting
        assert isinstance(answer, broker.FetchResponse)
        assert [partition.error.code for partition in answer.partitions] == [REFUSED]
        assert b"secret" not in answer.SerializeToString()


@in_virtual_time
async def test_a_rule_that_is_removed_for_another_caller_ends_no_fetch_in_an_error() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        access = admin.admin().access
        await access.create_acls([reading("orders"), reading("others")])
        await cluster.settled()
        address = await leader_of(cluster, broker.FetchRequest(partitions=[ORDERS]))
        request = broker.FetchRequest(partitions=[ORDERS], max_wait_ms=WAIT_MS)
        waiting = asyncio.create_task(cluster.ask(ALICE, address, methods.FETCH, request))
        await after(100)
        await access.delete_acls([AclBindingFilter(resource_name="others")])
        await cluster.settled()
        await admin.producer().send_and_wait("orders", b"a record")
        answer = await waiting
        assert [partition.error.code for partition in answer.partitions] == [0]
        assert len(answer.partitions[0].batches) == 1


@in_virtual_time
async def test_metadata_that_waits_tells_of_no_topic_whose_rule_was_removed() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        access = admin.admin().access
        await access.create_acls([reading("orders")])
        await cluster.settled()
        known = cluster_pb2.MetadataRequest(topics=["orders"])
        before = await cluster.ask(ALICE, COORDINATOR, methods.METADATA, known)
        assert before.topics[0].error.code == 0
        request = cluster_pb2.MetadataRequest(
            topics=["orders"], known_version=before.version, max_wait_ms=WAIT_MS
        )
        waiting = asyncio.create_task(cluster.ask(ALICE, COORDINATOR, methods.METADATA, request))
        await after(100)
        assert not waiting.done()
        await access.delete_acls([AclBindingFilter(resource_name="orders")])
        answer = await waiting
        assert [topic.error.code for topic in answer.topics] == [REFUSED]
        assert not answer.topics[0].topic_id
