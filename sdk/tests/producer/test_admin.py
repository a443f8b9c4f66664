"""The admin client: its requests, their targets, and its view of the answers."""

import pytest
from network_faults import LoseReply, Refuse
from producer_harness import FakeCluster, open_client

from aiosemel import (
    AbortReason,
    ClientOptions,
    GroupDescription,
    GroupListing,
    GroupState,
    InstanceDescription,
    MemberDescription,
    Participants,
    PartitionDescription,
    PendingOffsets,
    ServiceRole,
    TopicDescription,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from aiosemel.errors import (
    BrokerNotAvailableError,
    GroupIdNotFoundError,
    InvalidRequestError,
    InvalidTopicError,
    RequestTimedOutError,
    SemelError,
    TopicAlreadyExistsError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire import status


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(coordinators=2)


def refused_topic(error: SemelError) -> cluster.CreateTopicsResponse:
    return cluster.CreateTopicsResponse(
        topics=[cluster.CreateTopicResult(name="t", error=status.to_value(error))]
    )


def can(fake: FakeCluster, name: str, **answers: object) -> None:
    """Keep answers ready, by host."""
    for host, answer in answers.items():
        fake.canned[f"{host}:1", name] = answer  # type: ignore[assignment]  # a message


# -- topics ---------------------------------------------------------------------------------------


async def test_a_topic_created_again_by_the_same_client_is_the_new_one(
    fake: FakeCluster,
) -> None:
    gone = cluster.DeleteTopicsResponse(topics=[cluster.DeleteTopicResult(name="t")])
    can(fake, "DeleteTopics", coordinator=gone, coordinator1=gone)
    async with open_client(fake) as client:
        old = await client.admin().create_topic("t")
        await client.admin().delete_topic("t")
        fake.create_topic("t")
        new = await client.admin().create_topic("t", exist_ok=True)
    assert new.topic_id == fake.topics["t"] != old.topic_id


async def test_a_topic_that_was_created_can_be_used(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        topic = await client.admin().create_topic("t", partitions=2)
    assert topic == TopicDescription(
        name="t",
        topic_id=fake.topics["t"],
        partitions=(
            PartitionDescription(partition=0, leader_id=0, leader_epoch=0),
            PartitionDescription(partition=1, leader_id=0, leader_epoch=0),
        ),
    )


async def test_a_topic_that_exists_is_refused_unless_that_is_right(fake: FakeCluster) -> None:
    fake.create_topic("t")
    async with open_client(fake) as client:
        with pytest.raises(TopicAlreadyExistsError):
            await client.admin().create_topic("t")
        topic = await client.admin().create_topic("t", exist_ok=True)
    assert topic.topic_id == fake.topics["t"]


async def test_a_lost_answer_may_make_ones_own_topic_exist(fake: FakeCluster) -> None:
    fake.then("CreateTopics", LoseReply())
    async with open_client(fake) as client:
        with pytest.raises(TopicAlreadyExistsError):
            await client.admin().create_topic("t")


async def test_a_cluster_without_brokers_is_waited_for(fake: FakeCluster) -> None:
    later = refused_topic(BrokerNotAvailableError("no brokers"))
    can(fake, "CreateTopics", coordinator=later, coordinator1=later)
    async with open_client(fake, ClientOptions(default_api_timeout_ms=2_000)) as client:
        with pytest.raises(RequestTimedOutError, match="no brokers"):
            await client.admin().create_topic("t")
        fake.canned.clear()
        fake.canned["coordinator:1", "CreateTopics"] = later
        await client.admin().create_topic("t")


async def test_an_illegal_name_is_refused_at_once(fake: FakeCluster) -> None:
    no = refused_topic(InvalidTopicError("bad name"))
    can(fake, "CreateTopics", coordinator=no, coordinator1=no)
    async with open_client(fake) as client:
        with pytest.raises(InvalidTopicError, match="bad name"):
            await client.admin().create_topic("t")


async def test_topics_are_listed_by_name(fake: FakeCluster) -> None:
    for name in ("b", "a"):
        fake.create_topic(name)
    async with open_client(fake) as client:
        assert [topic.name for topic in await client.admin().list_topics()] == ["a", "b"]


async def test_one_topic_is_described_or_unknown(fake: FakeCluster) -> None:
    fake.create_topic("t", partitions=3)
    async with open_client(fake) as client:
        assert len((await client.admin().describe_topic("t")).partitions) == 3
        with pytest.raises(UnknownTopicOrPartitionError):
            await client.admin().describe_topic("u")


async def test_a_topic_is_deleted_or_missing(fake: FakeCluster) -> None:
    missing = status.to_value(UnknownTopicOrPartitionError("no topic t"))
    gone = cluster.DeleteTopicsResponse(topics=[cluster.DeleteTopicResult(name="t")])
    unknown = cluster.DeleteTopicsResponse(
        topics=[cluster.DeleteTopicResult(name="t", error=missing)]
    )
    async with open_client(fake) as client:
        can(fake, "DeleteTopics", coordinator=gone, coordinator1=gone)
        await client.admin().delete_topic("t")
        can(fake, "DeleteTopics", coordinator=unknown, coordinator1=unknown)
        await client.admin().delete_topic("t", missing_ok=True)
        with pytest.raises(UnknownTopicOrPartitionError):
            await client.admin().delete_topic("t")
    assert [list(r.topics) for r in fake.asked(cluster.DeleteTopicsRequest)] == [["t"]] * 3


# -- the cluster ----------------------------------------------------------------------------------


async def test_the_cluster_is_described(fake: FakeCluster) -> None:
    answer = cluster.DescribeClusterResponse(
        cluster_id="c",
        version=9,
        layout=cluster.ClusterLayout(
            transaction_log_partitions=50,
            coordinators=1,
            group_partitions=40,
            group_coordinators=1,
        ),
        topic_count=2,
        partition_count=8,
        instances=[
            cluster.InstanceDescription(
                instance=cluster.Instance(
                    role=cluster.SERVICE_ROLE_BROKER, instance_id=1, host="h", port=5
                ),
                claim_epoch=3,
                leader_partitions=8,
            ),
            cluster.InstanceDescription(
                instance=cluster.Instance(role=cluster.SERVICE_ROLE_COORDINATOR, host="h", port=6),
                last_registered_ms=77,
                controller=True,
            ),
        ],
    )
    can(fake, "DescribeCluster", coordinator=answer, coordinator1=answer)
    async with open_client(fake) as client:
        described = await client.admin().describe_cluster()
    assert (described.cluster_id, described.version) == ("c", 9)
    assert (described.transaction_log_partitions, described.group_partitions) == (50, 40)
    assert (described.topic_count, described.partition_count) == (2, 8)
    assert described.instances[0] == InstanceDescription(
        role=ServiceRole.BROKER,
        instance_id=1,
        host="h",
        port=5,
        claim_epoch=3,
        last_registered_ms=None,
        leader_partitions=8,
        is_controller=False,
    )
    assert (described.instances[1].last_registered_ms, described.instances[1].is_controller) == (
        77,
        True,
    )


# -- groups ---------------------------------------------------------------------------------------


async def test_groups_are_listed_by_id_and_filtered_by_state(fake: FakeCluster) -> None:
    answer = group.ListGroupsResponse(
        groups=[
            group.GroupListing(group_id="b", state=group.GROUP_STATE_STABLE, member_count=2),
            group.GroupListing(group_id="a", state=group.GROUP_STATE_EMPTY),
        ]
    )
    can(fake, "ListGroups", group=answer)
    async with open_client(fake) as client:
        listed = await client.admin().list_groups(states=[GroupState.STABLE, GroupState.EMPTY])
    assert listed == (
        GroupListing(group_id="a", state=GroupState.EMPTY, member_count=0),
        GroupListing(group_id="b", state=GroupState.STABLE, member_count=2),
    )
    (request,) = fake.asked(group.ListGroupsRequest)
    assert list(request.states) == [group.GROUP_STATE_STABLE, group.GROUP_STATE_EMPTY]


async def test_a_group_is_described_or_unknown(fake: FakeCluster) -> None:
    topic = group.AssignedTopic(topic_id="id", topic="t", partitions=[0, 2])
    offsets = group.OffsetCommitTopic(
        topic="t", partitions=[group.OffsetCommitPartition(partition=1, committed_offset=5)]
    )
    answer = group.GroupDescription(
        group_id="g",
        state=group.GROUP_STATE_RECONCILING,
        group_epoch=4,
        assignor="range",
        members=[
            group.MemberDescription(
                member_id="m",
                member_epoch=3,
                subscribed_topics=["t"],
                assignment=[topic],
                target=[topic],
            )
        ],
        pending=[
            group.PendingTransaction(
                producer_id=1, producer_epoch=2, start_time_ms=3, topics=[offsets]
            )
        ],
    )
    missing = status.to_value(GroupIdNotFoundError("no group"))
    unknown = group.GroupDescription(group_id="h", error=missing)
    async with open_client(fake) as client:
        can(fake, "DescribeGroups", group=group.DescribeGroupsResponse(groups=[answer]))
        described = await client.admin().describe_group("g")
        can(fake, "DescribeGroups", group=group.DescribeGroupsResponse(groups=[unknown]))
        with pytest.raises(GroupIdNotFoundError):
            await client.admin().describe_group("h")
    held = (TopicPartition("t", 0), TopicPartition("t", 2))
    assert described == GroupDescription(
        group_id="g",
        state=GroupState.RECONCILING,
        group_epoch=4,
        assignor="range",
        members=(
            MemberDescription(
                member_id="m",
                group_instance_id="",
                member_epoch=3,
                subscribed_topics=("t",),
                assignment=held,
                target=held,
            ),
        ),
        pending=(
            PendingOffsets(
                producer_id=1,
                producer_epoch=2,
                start_time_ms=3,
                offsets={TopicPartition("t", 1): 5},
            ),
        ),
    )


# -- transactions ---------------------------------------------------------------------------------


async def test_transactions_of_all_coordinators_are_listed_by_id(fake: FakeCluster) -> None:
    def listing(name: str, start: int) -> transactions.ListTransactionsResponse:
        return transactions.ListTransactionsResponse(
            transactions=[
                transactions.TransactionListing(
                    transactional_id=name,
                    producer_id=1,
                    producer_epoch=2,
                    state=transactions.TRANSACTION_STATE_ONGOING,
                    start_time_ms=start,
                    incomplete_transactions=3,
                    transaction_timeout_ms=4,
                    last_update_time_ms=5,
                    fenced_transactions=6,
                )
            ]
        )

    can(fake, "ListTransactions", coordinator=listing("b", 0), coordinator1=listing("a", 9))
    async with open_client(fake) as client:
        listed = await client.admin().list_transactions(
            states=[TransactionState.ONGOING],
            producer_ids=[1],
            running_longer_than_ms=0,
            transactional_id_pattern=".*",
        )
    assert [(entry.transactional_id, entry.start_time_ms) for entry in listed] == [
        ("a", 9),
        ("b", None),
    ]
    assert listed[0] == TransactionListing(
        transactional_id="a",
        producer_id=1,
        producer_epoch=2,
        state=TransactionState.ONGOING,
        start_time_ms=9,
        incomplete_transactions=3,
        transaction_timeout_ms=4,
        last_update_time_ms=5,
        fenced_transactions=6,
    )
    first, second = fake.asked(transactions.ListTransactionsRequest)
    assert first == second
    assert first.HasField("running_longer_than_ms")
    assert list(first.states) == [transactions.TRANSACTION_STATE_ONGOING]


async def test_every_filter_may_be_left_out(fake: FakeCluster) -> None:
    nothing = transactions.ListTransactionsResponse()
    can(fake, "ListTransactions", coordinator=nothing, coordinator1=nothing)
    async with open_client(fake) as client:
        assert await client.admin().list_transactions() == ()
    assert not fake.asked(transactions.ListTransactionsRequest)[0].HasField(
        "running_longer_than_ms"
    )


async def test_a_state_of_a_newer_cluster_is_unknown(fake: FakeCluster) -> None:
    newer = transactions.TransactionListing(transactional_id="a")
    newer.state = 99  # type: ignore[assignment]  # a server that knows more
    nothing = transactions.ListTransactionsResponse()
    listed = transactions.ListTransactionsResponse(transactions=[newer])
    can(fake, "ListTransactions", coordinator=listed, coordinator1=nothing)
    async with open_client(fake) as client:
        (found,) = await client.admin().list_transactions()
        assert found.state is TransactionState.UNKNOWN
        with pytest.raises(InvalidRequestError, match="cannot filter by state Unknown"):
            await client.admin().list_transactions(states=[TransactionState.UNKNOWN])


async def test_a_transactional_id_is_described_with_names_of_topics(fake: FakeCluster) -> None:
    fake.create_topic("t")
    named = participants.Participants(
        topics=[
            participants.TopicPartitions(topic_id=fake.topics["t"], partitions=[0, 1]),
            participants.TopicPartitions(topic_id="gone", partitions=[2]),
        ],
        group_ids=["g"],
    )
    description = transactions.TransactionalIdDescription(
        transactional_id="orders",
        producer_id=1,
        producer_epoch=5,
        transaction_timeout_ms=60_000,
        transactions=[
            transactions.TransactionDescription(
                producer_epoch=4,
                state=transactions.TRANSACTION_STATE_PREPARE_ABORT,
                start_time_ms=9,
                participants=named,
                abort_reason="TIMED_OUT",
                traceparent="00-x",
            )
        ],
    )
    answer = transactions.DescribeTransactionsResponse(descriptions=[description])
    can(fake, "DescribeTransactions", coordinator=answer, coordinator1=answer)
    async with open_client(fake) as client:
        described = await client.admin().describe_transactions("orders")
    assert (described.transactional_id, described.producer_id) == ("orders", 1)
    assert (described.producer_epoch, described.transaction_timeout_ms) == (5, 60_000)
    assert described.transactions == (
        TransactionDescription(
            producer_epoch=4,
            state=TransactionState.PREPARE_ABORT,
            start_time_ms=9,
            participants=Participants(
                partitions=(
                    TopicPartition("t", 0),
                    TopicPartition("t", 1),
                    TopicPartition("gone", 2),
                ),
                group_ids=("g",),
            ),
            missing_markers=Participants(partitions=(), group_ids=()),
            abort_reason=AbortReason.TIMED_OUT,
            traceparent="00-x",
        ),
    )


async def test_an_idle_transactional_id_needs_no_names(fake: FakeCluster) -> None:
    answer = transactions.DescribeTransactionsResponse(
        descriptions=[transactions.TransactionalIdDescription(transactional_id="orders")]
    )
    can(fake, "DescribeTransactions", coordinator=answer, coordinator1=answer)
    async with open_client(fake) as client:
        assert (await client.admin().describe_transactions("orders")).transactions == ()


async def test_an_unknown_transactional_id_is_an_error(fake: FakeCluster) -> None:
    unknown = transactions.TransactionalIdDescription(
        transactional_id="orders",
        error=status.to_value(TransactionalIdNotFoundError("no such id")),
    )
    answer = transactions.DescribeTransactionsResponse(descriptions=[unknown])
    can(fake, "DescribeTransactions", coordinator=answer, coordinator1=answer)
    async with open_client(fake) as client:
        with pytest.raises(TransactionalIdNotFoundError):
            await client.admin().describe_transactions("orders")


async def test_a_coordinator_that_is_away_for_a_while_is_asked_again(fake: FakeCluster) -> None:
    nothing = transactions.ListTransactionsResponse()
    can(fake, "ListTransactions", coordinator=nothing, coordinator1=nothing)
    fake.then("ListTransactions", Refuse(BrokerNotAvailableError("x")))
    async with open_client(fake) as client:
        assert await client.admin().list_transactions() == ()
