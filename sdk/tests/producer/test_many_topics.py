"""A client that uses many topics: all are asked for together, and in pieces that are taken."""

import asyncio
from random import Random

import pytest
from producer_harness import BOOTSTRAP, FakeCluster, elapse, open_client

from aiosemel import ClientOptions, SemelClient
from aiosemel._cluster.metadata_cache import TOPICS_IN_REQUEST
from aiosemel._cluster.retry import Deadline
from aiosemel._cluster.routes import Cluster
from aiosemel._shared.name_checks import parse_bootstrap
from aiosemel.errors import InvalidTopicError, UnknownTopicOrPartitionError
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.coordinator.v1.cluster_pb2 import MetadataRequest

NAMES = ["a", "b", "c", "d"]
MAX_AGE_MS = 60_000


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    for name in NAMES:
        cluster.create_topic(name)
    return cluster


@pytest.fixture
def cluster(fake: FakeCluster) -> Cluster:
    options = ClientOptions(metadata_max_age_ms=MAX_AGE_MS)
    return Cluster(parse_bootstrap(BOOTSTRAP), fake, options, Random(7))


def deadline() -> Deadline:
    return Deadline.after_ms(1_000)


def asked(fake: FakeCluster) -> list[list[str]]:
    return [list(request.topics) for request in fake.asked(MetadataRequest)]


async def test_topics_are_asked_for_together(fake: FakeCluster, cluster: Cluster) -> None:
    await cluster.cache.topics(NAMES, deadline())
    assert asked(fake) == [NAMES]
    assert all(cluster.cache.cached_topic(name) is not None for name in NAMES)


async def test_one_more_topic_is_asked_for_alone(fake: FakeCluster, cluster: Cluster) -> None:
    await cluster.cache.topics(NAMES, deadline())
    fake.create_topic("one-more")
    await cluster.cache.topic("one-more", deadline())
    assert asked(fake)[1:] == [["one-more"]]
    assert cluster.cache.cached_topic("a") is not None


async def test_one_more_topic_makes_the_others_no_younger(
    fake: FakeCluster, cluster: Cluster
) -> None:
    await cluster.cache.topic("a", deadline())
    await elapse(MAX_AGE_MS / 2 / 1000)
    await cluster.cache.topic("b", deadline())
    await elapse(MAX_AGE_MS / 2 / 1000 + 1)
    assert cluster.cache.cached_topic("a") is None
    await cluster.cache.topic("c", deadline())
    assert asked(fake)[2:] == [["a", "b", "c"]]


async def test_more_topics_than_one_request_may_name_are_refreshed_in_pieces(
    fake: FakeCluster, cluster: Cluster
) -> None:
    names = [f"topic-{number}" for number in range(TOPICS_IN_REQUEST + 1)]
    for name in names:
        fake.create_topic(name)
    await cluster.cache.topics(names, deadline())
    await cluster.cache.refresh(deadline())
    assert [len(question) for question in asked(fake)] == [
        TOPICS_IN_REQUEST,
        1,
        TOPICS_IN_REQUEST,
        1,
    ]
    assert len(cluster.cache.metadata.topics) == len(names)


async def test_a_refresh_of_all_does_not_share_the_answer_about_a_new_topic(
    fake: FakeCluster, cluster: Cluster
) -> None:
    await cluster.cache.topic("a", deadline())
    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.cache.topic("b", deadline()))
        await asyncio.sleep(0)
        group.create_task(cluster.cache.refresh(deadline()))
    assert asked(fake)[1:] == [["b"], ["a", "b"]]


async def test_of_topics_that_are_not_there_none_is_asked_for_any_longer(
    fake: FakeCluster, cluster: Cluster
) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        await cluster.cache.topics(["no-such", "a", "nor-this"], deadline())
    await cluster.cache.refresh(deadline())
    assert asked(fake)[-1] == ["a"]


async def test_a_name_that_no_topic_can_have_is_refused_before_any_is_asked_for(
    fake: FakeCluster, cluster: Cluster
) -> None:
    with pytest.raises(InvalidTopicError):
        await cluster.cache.topics(["a", "no/name"], deadline())
    assert asked(fake) == []


async def test_more_topics_than_one_request_may_name_are_described_in_pieces(
    fake: FakeCluster,
) -> None:
    names = [f"topic-{number}" for number in range(TOPICS_IN_REQUEST + 1)]
    for name in names:
        fake.create_topic(name)
    async with SemelClient(BOOTSTRAP, connector=fake) as client:
        described = await client.admin().describe_topics([*names, "no-such"])
    assert list(described.topics) == names


async def test_a_transaction_in_more_topics_than_fit_into_a_question_is_described(
    fake: FakeCluster,
) -> None:
    for number in range(TOPICS_IN_REQUEST):
        fake.create_topic(f"t{number}")
    named = participants.Participants(
        topics=[
            participants.TopicPartitions(topic_id=topic_id, partitions=[0])
            for topic_id in fake.topics.values()
        ]
    )
    description = transactions.TransactionalIdDescription(
        transactional_id="orders",
        transactions=[transactions.TransactionDescription(participants=named)],
    )
    fake.canned[BOOTSTRAP, "DescribeTransactions"] = transactions.DescribeTransactionsResponse(
        descriptions=[description]
    )
    async with open_client(fake) as client:
        (described,) = (await client.admin().describe_transactions("orders")).transactions
    assert {partition.topic for partition in described.participants.partitions} == set(fake.topics)
