"""A cluster is replaced by another one at the same addresses: what each object of a client says."""

import pytest
from cluster_calls import now
from producer_harness import GROUP, OFFSETS, FakeCluster, begun, open_client

from aiosemel._cluster.retry import Deadline
from aiosemel.errors import (
    InconsistentClusterIdError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)

ANOTHER = "this client belongs to cluster c, but .* belongs to cluster other; make a new client"


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("t")
    return cluster


async def test_a_producer_ends_and_loses_nothing_silently(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"a")
        fake.cluster_id = "other"
        before = now()
        sent = [await producer.send("t", b"b"), await producer.send("t", b"c", partition=0)]
        for delivery in sent:
            with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
                await delivery
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await producer.send("t", b"d")
        assert now() - before < 2
        assert fake.stored("t") == [b"a"]


async def test_a_producer_whose_leader_is_unknown_ends_too(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"a")
        fake.brokers = 0
        await client._cluster.cache.refresh(Deadline.after_ms(1_000))
        fake.cluster_id = "other"
        before = now()
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await producer.send_and_wait("t", b"b")
        assert now() - before < 2


async def test_a_transaction_is_not_committed_and_the_next_does_not_begin(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"a")
        fake.cluster_id = "other"
        before = now()
        with pytest.raises(TransactionOutcomeUnknownError) as raised:
            await producer.commit()
        assert isinstance(raised.value.__cause__, InconsistentClusterIdError)
        assert not raised.value.can_ask_again
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await raised.value.resolve()
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await producer.begin_transaction()
        assert now() - before < 2


async def test_a_commit_that_was_never_sent_is_not_unknown(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"a")
        fake.cluster_id = "other"
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await client.admin().create_topic("u")
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await producer.commit()
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await producer.abort()


async def test_sends_of_a_transaction_fail_with_it(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"x")
        fake.cluster_id = "other"
        before = now()
        sent = await producer.send("t", b"a")
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await sent
        with pytest.raises(TransactionAbortedError) as raised:
            await producer.commit()
        assert isinstance(raised.value.__cause__, InconsistentClusterIdError)
        assert now() - before < 2


async def test_offsets_of_a_transaction_are_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        fake.cluster_id = "other"
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await producer.send_offsets(OFFSETS, GROUP)


async def test_the_admin_and_new_objects_of_the_client_end_too(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await client.producer().send_and_wait("t", b"a")
        fake.cluster_id = "other"
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await client.admin().describe_cluster()
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await client.producer().send_and_wait("t", b"b")
        with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
            await client.transactional_producer("orders").init_transactions()


async def test_a_new_client_works_beside_it(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await client.producer().send_and_wait("t", b"a")
        fake.cluster_id = "other"
        fake.recreate_topic("t")
        async with open_client(fake) as newer:
            await newer.producer().send_and_wait("t", b"b")
            with pytest.raises(InconsistentClusterIdError, match=ANOTHER):
                await client.admin().describe_cluster()
        assert fake.stored("t") == [b"b"]
