"""Metadata of all topics: in the caller's turn, and without work for a caller that may see none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from access.cluster import ADMIN, COORDINATOR, Cluster
from aiosemel import AclBinding, AclOperation, ResourceType
from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel_common.wire.methods import METADATA
from semel_runtime.authentication.principal import Origin, Principal
from semel_runtime.server.limits.list_turns import ListTurns
from semel_runtime.testing.virtual_time import after, in_virtual_time

ALICE, STRANGER = Principal(name="alice"), Principal(name="stranger")
WAIT_MS = 4_000
ALL = MetadataRequest(all_topics=True)
OF_ALICE = AclBinding(
    resource_type=ResourceType.TOPIC,
    resource_name="orders",
    principal="User:alice",
    operation=AclOperation.DESCRIBE,
)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the callers that have had a turn, which grows."""
    had: list[str] = []
    turn = ListTurns.turn

    @asynccontextmanager
    async def noted(self: ListTurns, origin: Origin) -> AsyncIterator[None]:
        async with turn(self, origin):
            had.append(origin.principal.name)
            yield

    monkeypatch.setattr(ListTurns, "turn", noted)
    return had


@in_virtual_time
async def test_a_caller_that_may_see_no_topic_costs_no_list(turns: list[str]) -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().create_topic("orders")
        await admin.admin().access.create_acls([OF_ALICE])
        await cluster.settled()
        turns.clear()
        for request in (ALL, MetadataRequest(all_topics=True, limit=1)):
            answer = await cluster.ask(STRANGER, COORDINATOR, METADATA, request)
            assert not answer.topics
            assert answer.instances
        assert turns == []
        answer = await cluster.ask(ALICE, COORDINATOR, METADATA, ALL)
        assert [topic.name for topic in answer.topics] == ["orders"]
        assert turns == ["alice"]


@in_virtual_time
async def test_a_long_poll_waits_before_its_turn_and_lists_what_is_new() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as admin:
        await admin.admin().access.create_acls([OF_ALICE])
        await cluster.settled()
        known = (await cluster.ask(ALICE, COORDINATOR, METADATA, ALL)).version
        parked = MetadataRequest(all_topics=True, known_version=known, max_wait_ms=WAIT_MS)
        waiting = asyncio.create_task(cluster.ask(ALICE, COORDINATOR, METADATA, parked))
        await after(100)
        assert not (await cluster.ask(ALICE, COORDINATOR, METADATA, ALL)).topics
        assert not waiting.done()
        await admin.admin().create_topic("orders")
        answer = await waiting
        assert answer.version > known
        assert [topic.name for topic in answer.topics] == ["orders"]
