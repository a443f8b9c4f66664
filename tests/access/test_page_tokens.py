"""Tokens of pages: an instance takes the ones that an answer gave, and refuses all others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from google.protobuf.message import Message

from access.cluster import ADMIN, BROKER, COORDINATOR, GROUP_COORDINATOR, OTHER_BROKER, Cluster
from aiosemel import AclBinding, AclOperation, ResourceType
from aiosemel.errors import InvalidRequestError
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import cluster_pb2 as metadata
from semel.coordinator.v1 import history_pb2 as history
from semel.coordinator.v1 import quotas_pb2 as quotas
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods
from semel_common.wire.methods import Method
from semel_runtime.testing.virtual_time import in_virtual_time

COUNT = 8
KEYS = ("x", "topic-3", "app-3", "group-3", "u3", "=u3", "zzz", "é", "9" * 20, "1:2", "1:2:3:g")
"""Texts that an answer could have given, and did not."""


class PagedCall(NamedTuple):
    """A request for one entry of a list that has several."""

    method: Method[Message, Message]
    address: str
    request: Message

    async def next_token(self, cluster: Cluster, token: str = "") -> str:
        request = type(self.request)()
        request.CopyFrom(self.request)
        request.page_token = token  # type: ignore[attr-defined]  # each of them has it
        answer = await cluster.ask(ADMIN, self.address, self.method, request)
        following: str = answer.next_page_token  # type: ignore[attr-defined]  # and this one
        return following


@asynccontextmanager
async def filled() -> AsyncIterator[tuple[Cluster, dict[str, PagedCall]]]:
    """Run a cluster with several entries in every list; the calls are by RPC."""
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        admin = client.admin()
        topic = await admin.create_topic("topic-0")
        for number in range(COUNT):
            await admin.create_topic(f"more-{number}")
            await admin.groups.alter_offsets(f"group-{number}", {("topic-0", 0): 0})
            await admin.access.alter_client_quotas(f"u{number}", set_limits={"request_rate": 9})
            await admin.access.create_acls([rule(f"topic-{number}")])
            producer = client.transactional_producer(f"app-{number}")
            await producer.init_transactions()
            for _ in range(2):
                await producer.begin_transaction()
                await producer.send_and_wait("topic-0", b"ended", partition=0)
                await producer.commit(wait_until_visible=True)
            await producer.begin_transaction()
            await producer.send("topic-0", b"v", partition=0)
            await producer.flush()
        offsets = {(f"more-{number}", 0): 0 for number in range(COUNT)}
        await admin.groups.alter_offsets("group-0", offsets)
        yield cluster, calls(await leader(cluster), topic.topic_id)


def rule(name: str) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        principal="User:alice",
        operation=AclOperation.DESCRIBE,
    )


async def leader(cluster: Cluster) -> str:
    """Return the address of the broker that has the open transactions."""
    asked = participants.ListOpenTransactionsRequest()
    for address in (BROKER, OTHER_BROKER):
        if (await cluster.ask(ADMIN, address, methods.LIST_OPEN_TRANSACTIONS, asked)).transactions:
            return address
    raise AssertionError("no broker has an open transaction")


def calls(broker: str, topic_id: str) -> dict[str, PagedCall]:
    partition = participants.TopicPartition(topic_id=topic_id, partition=0)
    found = (
        PagedCall(
            methods.LIST_TRANSACTIONS, COORDINATOR, transactions.ListTransactionsRequest(limit=1)
        ),
        PagedCall(
            methods.LIST_TRANSACTION_HISTORY,
            COORDINATOR,
            history.ListTransactionHistoryRequest(limit=1),
        ),
        PagedCall(methods.LIST_AUDIT, COORDINATOR, history.ListAuditRequest(limit=1)),
        PagedCall(
            methods.METADATA, COORDINATOR, metadata.MetadataRequest(all_topics=True, limit=1)
        ),
        PagedCall(methods.DESCRIBE_ACLS, COORDINATOR, acls.DescribeAclsRequest(limit=1)),
        PagedCall(
            methods.DESCRIBE_CLIENT_QUOTAS, COORDINATOR, quotas.DescribeClientQuotasRequest(limit=1)
        ),
        PagedCall(methods.LIST_GROUPS, GROUP_COORDINATOR, group.ListGroupsRequest(limit=1)),
        PagedCall(
            methods.FETCH_OFFSETS,
            GROUP_COORDINATOR,
            group.FetchOffsetsRequest(group_id="group-0", all_partitions=True, limit=1),
        ),
        PagedCall(
            methods.LIST_OPEN_TRANSACTIONS,
            broker,
            participants.ListOpenTransactionsRequest(limit=1),
        ),
        PagedCall(
            methods.DESCRIBE_PRODUCERS,
            broker,
            producers.DescribeProducersRequest(partitions=[partition], paged=True, limit=1),
        ),
    )
    return {call.method.name: call for call in found}


def test_every_request_with_a_page_token_is_here() -> None:
    paged = {
        method.name
        for method in vars(methods).values()
        if isinstance(method, Method) and "page_token" in method.request.DESCRIPTOR.fields_by_name
    }
    assert paged == calls(BROKER, "id").keys()


async def refused(cluster: Cluster, call: PagedCall, token: str) -> None:
    """Check that a token is refused by the name of its field."""
    with pytest.raises(InvalidRequestError, match="page_token is ") as caught:
        await call.next_token(cluster, token)
    assert caught.value.details == {"field": "page_token"}


@in_virtual_time
async def test_a_list_takes_the_tokens_of_its_answers_and_no_other_text() -> None:
    async with filled() as (cluster, paged):
        tokens = {name: await call.next_token(cluster) for name, call in paged.items()}
        assert all(tokens.values())
        for name, call in paged.items():
            given = tokens[name]
            assert await call.next_token(cluster, given) not in ("", given)
            foreign = [token for other, token in tokens.items() if other != name]
            changed = [given[:-1], given + "x", f"{given[:-1]}~", f"~{given[1:]}", given[8:]]
            for token in (*KEYS, *foreign, *changed):
                await refused(cluster, call, token)


@in_virtual_time
async def test_a_token_is_of_one_group_and_of_one_partition() -> None:
    async with filled() as (cluster, paged):
        offsets, described = paged["FetchOffsets"], paged["DescribeProducers"]
        of_other = group.FetchOffsetsRequest(group_id="group-1", all_partitions=True)
        token = await offsets.next_token(cluster)
        await refused(cluster, offsets._replace(request=of_other), token)
        beside = producers.DescribeProducersRequest.FromString(
            described.request.SerializeToString()
        )
        beside.partitions[0].partition = 1
        token = await described.next_token(cluster)
        await refused(cluster, described._replace(request=beside), token)


@in_virtual_time
async def test_a_request_for_no_pages_has_no_token() -> None:
    async with filled() as (cluster, paged):
        for name, fields in (
            ("Metadata", ("all_topics",)),
            ("Metadata", ("limit",)),
            ("FetchOffsets", ("all_partitions",)),
            ("DescribeProducers", ("paged",)),
        ):
            call = paged[name]
            token = await call.next_token(cluster)
            request = type(call.request)()
            request.CopyFrom(call.request)
            for field in fields:
                request.ClearField(field)
            await refused(cluster, call._replace(request=request), token)
