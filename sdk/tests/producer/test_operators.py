"""The questions and decisions of operators, and the answers."""

import asyncio

import pytest
from network_faults import Refuse
from producer_harness import FakeCluster, open_client

from aiosemel import (
    AbortedByOperator,
    FencedByOperator,
    KnownOutcome,
    OpenEpoch,
    ProducerDescription,
    TopicPartition,
)
from aiosemel.errors import InvalidRequestError, NetworkExceptionError, NotLeaderOrFollowerError
from semel.broker.v1 import producers_pb2 as producers
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import cluster_pb2 as cluster
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel_common.wire import status

BROKER_0, BROKER_1, GROUP = "broker0:1", "broker1:1", "group:1"


@pytest.fixture
def fake() -> FakeCluster:
    """Transaction (7, 2) is open in one partition and in a group, and (7, 1) in the other one."""
    fake = FakeCluster(brokers=2)
    fake.create_topic("t", partitions=2)
    opened = {
        BROKER_0: (open_in(fake, 0, epoch=2, start_time_ms=300),),
        BROKER_1: (open_in(fake, 1, epoch=1, start_time_ms=100),),
        GROUP: (
            participants.OpenTransaction(
                participant=participants.Participant(group_id="g"),
                producer_id=7,
                producer_epoch=2,
                start_time_ms=200,
                age_ms=50,
            ),
        ),
    }
    for address, those in opened.items():
        answer = participants.ListOpenTransactionsResponse(transactions=those)
        fake.canned[address, "ListOpenTransactions"] = answer
    fake.canned["coordinator:1", "GetTransactionOutcome"] = outcomes.GetTransactionOutcomeResponse(
        outcome=outcomes.TRANSACTION_OUTCOME_ONGOING, transactional_id="orders", producer_id=7
    )
    return fake


def open_in(
    fake: FakeCluster, partition: int, *, epoch: int, start_time_ms: int
) -> participants.OpenTransaction:
    place = participants.TopicPartition(topic_id=fake.topics["t"], partition=partition)
    return participants.OpenTransaction(
        participant=participants.Participant(topic_partition=place),
        producer_id=7,
        producer_epoch=epoch,
        start_time_ms=start_time_ms,
        age_ms=10,
        first_offset=5,
    )


# -- open transactions -----------------------------------------------------------------------------


async def test_what_is_open_is_told_with_the_oldest_first(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        found = await client.admin().operators.list_open_transactions(open_longer_than_ms=9)
    assert [
        (transaction.partition, transaction.group_id) for transaction in found.transactions
    ] == [
        (TopicPartition("t", 1), None),
        (None, "g"),
        (TopicPartition("t", 0), None),
    ]
    assert [transaction.first_offset for transaction in found.transactions] == [5, None, 5]
    assert not found.truncated
    known = found.transactions[0].known
    assert known is not None
    assert known.outcome is KnownOutcome.ONGOING
    asked = fake.asked(participants.ListOpenTransactionsRequest)
    assert {(question.open_longer_than_ms, question.limit) for question in asked} == {(9, 1_000)}
    assert len(fake.asked(outcomes.GetTransactionOutcomeRequest)) == 2, "one for each transaction"


async def test_the_limit_holds_for_all_instances_together(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        found = await client.admin().operators.list_open_transactions(limit=2)
    assert [transaction.start_time_ms for transaction in found.transactions] == [100, 200]
    assert found.truncated


async def test_one_instance_with_more_than_it_tells_is_enough(fake: FakeCluster) -> None:
    fake.canned[BROKER_0, "ListOpenTransactions"] = participants.ListOpenTransactionsResponse(
        truncated=True
    )
    async with open_client(fake) as client:
        found = await client.admin().operators.list_open_transactions()
    assert len(found.transactions) == 2
    assert found.truncated


async def test_an_instance_that_is_away_is_named_and_asked_once(fake: FakeCluster) -> None:
    fake.then("ListOpenTransactions", Refuse(NetworkExceptionError("no service answers")))
    async with open_client(fake) as client:
        found = await client.admin().operators.list_open_transactions()
    assert found.unreachable == ("broker-0: no service answers",)
    assert len(found.transactions) == 2
    assert len(fake.asked(participants.ListOpenTransactionsRequest)) == 3


async def test_an_instance_that_was_emptied_for_good_is_not_asked(fake: FakeCluster) -> None:
    kept, empty, left = (
        cluster.InstanceDescription(
            instance=cluster.Instance(
                role=cluster.SERVICE_ROLE_BROKER, instance_id=number, decommissioned=closed
            ),
            leader_partitions=partitions,
        )
        for number, closed, partitions in ((0, False, 0), (1, True, 0), (1, True, 2))
    )
    for last, asked in ((empty, [BROKER_0]), (left, [BROKER_0, BROKER_1])):
        fake.canned["coordinator:1", "DescribeCluster"] = fake.described([kept, last])
        before = len(fake.calls)
        async with open_client(fake) as client:
            await client.admin().operators.list_open_transactions()
        calls = zip(fake.addresses[before:], fake.calls[before:], strict=True)
        assert [to for to, (name, _) in calls if name == "ListOpenTransactions"] == asked


async def test_a_transaction_that_no_coordinator_knows_is_told_with_why(fake: FakeCluster) -> None:
    fake.then("GetTransactionOutcome", Refuse(InvalidRequestError("was never given out")))
    async with open_client(fake) as client:
        first, *others = (await client.admin().operators.list_open_transactions()).transactions
    assert (first.known, first.problem) == (None, "was never given out")
    assert first.coordinator_answered
    assert all(other.known and not other.problem for other in others)


# -- acting ---------------------------------------------------------------------------------------


async def test_an_abort_says_who_and_why(fake: FakeCluster) -> None:
    fake.canned["coordinator:1", "AbortTransaction"] = outcomes.AbortTransactionResponse(
        participants=3, already_aborted=True
    )
    async with open_client(fake) as client:
        done = await client.admin().operators.abort_transaction(
            "orders", 7, 2, operator="me", reason="stuck", dry_run=True
        )
    assert done == AbortedByOperator(participants=3, already_aborted=True, dry_run=True)
    (asked,) = fake.asked(outcomes.AbortTransactionRequest)
    assert asked == outcomes.AbortTransactionRequest(
        transactional_id="orders",
        producer_id=7,
        producer_epoch=2,
        operator=outcomes.Operator(name="me", reason="stuck"),
        dry_run=True,
    )


async def test_every_fence_is_one_of_its_own_and_its_repeats_are_the_same(
    fake: FakeCluster,
) -> None:
    """Else the coordinator would take a second one for a repeat of the first, and fence no
    producer.
    """
    fake.canned["coordinator:1", "FenceProducer"] = outcomes.FenceProducerResponse(
        producer_id=7, fenced_epoch=2, participants=1
    )
    fake.then("FenceProducer", Refuse(NetworkExceptionError("lost")))
    async with open_client(fake) as client:
        operators = client.admin().operators
        done = await operators.fence_producer("orders", operator="me", reason="runs twice")
        await operators.fence_producer("orders", operator="me", reason="again")
    assert done == FencedByOperator(producer_id=7, fenced_epoch=2, participants=1, dry_run=False)
    lost, repeated, another = fake.asked(outcomes.FenceProducerRequest)
    assert lost == repeated
    assert lost.instance_id != another.instance_id


# -- producers ------------------------------------------------------------------------------------


async def test_producers_of_a_partition_are_asked_for_until_it_is_found(fake: FakeCluster) -> None:
    place = participants.TopicPartition(topic_id=fake.topics["t"], partition=1)
    moved = producers.PartitionProducers(
        partition=place,
        error=status.to_value(NotLeaderOrFollowerError("it has moved")),
    )
    here = producers.PartitionProducers(
        partition=place,
        high_watermark=9,
        last_stable_offset=5,
        producer_count=2,
        producers=[
            producers.ProducerDescription(
                producer_id=7,
                producer_epoch=2,
                last_sequence=4,
                last_timestamp_ms=400,
                fence=1,
                open_transactions=[
                    producers.OpenTransactionOfProducer(
                        producer_epoch=2, first_offset=5, start_time_ms=300, age_ms=10
                    )
                ],
            ),
            producers.ProducerDescription(producer_id=8, producer_epoch=-1, last_sequence=-1),
        ],
    )
    key = (BROKER_1, "DescribeProducers")
    fake.canned[key] = producers.DescribeProducersResponse(partitions=[moved])
    found_again = producers.DescribeProducersResponse(partitions=[here])
    async with open_client(fake) as client:
        asyncio.get_running_loop().call_later(1, fake.canned.__setitem__, key, found_again)
        found = await client.admin().operators.describe_producers(("t", 1), limit=2)
    assert (found.partition, found.high_watermark) == (TopicPartition("t", 1), 9)
    assert (found.last_stable_offset, found.producer_count) == (5, 2)
    writer, unknown = found.producers
    assert writer == ProducerDescription(
        producer_id=7,
        producer_epoch=2,
        last_sequence=4,
        last_timestamp_ms=400,
        fence=1,
        open_transactions=(
            OpenEpoch(producer_epoch=2, first_offset=5, start_time_ms=300, age_ms=10),
        ),
    )
    assert (unknown.producer_epoch, unknown.last_sequence) == (None, None)


async def test_all_producers_are_described_page_by_page(fake: FakeCluster) -> None:
    key = (BROKER_1, "DescribeProducers")
    place = participants.TopicPartition(topic_id=fake.topics["t"], partition=1)

    def page(producer_id: int, token: str) -> producers.DescribeProducersResponse:
        described = producers.PartitionProducers(
            partition=place,
            producer_count=2,
            producers=[producers.ProducerDescription(producer_id=producer_id)],
        )
        return producers.DescribeProducersResponse(partitions=[described], next_page_token=token)

    fake.canned[key] = page(7, "7")
    fake.then("DescribeProducers", None, Refuse(NetworkExceptionError("no service answers")))
    async with open_client(fake) as client:
        # While the second question is repeated.
        asyncio.get_running_loop().call_later(0.01, fake.canned.__setitem__, key, page(8, ""))
        found = await client.admin().operators.describe_producers(("t", 1), limit=None)
    assert [producer.producer_id for producer in found.producers] == [7, 8]
    asked = fake.asked(producers.DescribeProducersRequest)
    assert [question.page_token for question in asked] == ["", "7", "7"]
    assert all(question.paged for question in asked)
