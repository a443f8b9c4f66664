"""A client belongs to one cluster: what its metadata cache and its calls say of others."""

import pytest
from cluster_calls import cluster_of, init, now
from producer_harness import FakeCluster

from aiosemel import ClientOptions
from aiosemel._cluster.retry import Deadline
from aiosemel.errors import InconsistentClusterIdError
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster(brokers=2)
    cluster.create_topic("t", partitions=2)
    return cluster


async def test_another_cluster_at_the_address_ends_the_client(fake: FakeCluster) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.topic("t", Deadline.after_ms(1_000))
    fake.cluster_id, fake.version = "other", 1
    with pytest.raises(InconsistentClusterIdError) as raised:
        await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert raised.value.message == (
        "this client belongs to cluster c, but coordinator:1 belongs to cluster other;"
        " make a new client"
    )
    assert cluster.cache.metadata.cluster_id == "c"
    calls = len(fake.calls)
    fake.cluster_id = "c"
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster other"):
        await init(cluster)
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster other"):
        await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert len(fake.calls) == calls


async def test_answers_of_another_cluster_to_a_call_without_a_name_end_the_client(
    fake: FakeCluster,
) -> None:
    fake.strangers["coordinator:1"] = "c"  # An older release: it does not look at the name.
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    fake.cluster_id = "other"
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster other"):
        await cluster.cache.refresh(Deadline.after_ms(1_000))


async def test_a_call_that_another_cluster_refuses_ends_the_client_at_once(
    fake: FakeCluster,
) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    fake.cluster_id = "other"
    before = now()
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster other"):
        await init(cluster, timeout_ms=60_000)
    assert now() - before < 1
    assert not fake.asked(InitProducerIdRequest)


async def test_an_address_that_another_cluster_was_given_is_found_again(
    fake: FakeCluster,
) -> None:
    cluster = cluster_of(fake)
    await cluster.cache.refresh(Deadline.after_ms(1_000))
    fake.coordinator_host = "elsewhere"
    fake.version += 1
    fake.strangers["coordinator:1"] = "other"
    cluster.cache.coordinators._bootstrap = ("elsewhere:1", "coordinator:1")
    assert (await init(cluster)).producer_id == 1
    assert fake.addresses[-1] == "elsewhere:1"


async def test_a_client_for_one_cluster_takes_no_other(fake: FakeCluster) -> None:
    cluster = cluster_of(fake, ClientOptions(cluster_id="mine"))
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster mine"):
        await cluster.cache.refresh(Deadline.after_ms(1_000))
    assert not fake.calls
