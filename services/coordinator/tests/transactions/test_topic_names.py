"""Participants that are named by topic: with the ids that the controller gives them."""

import pytest
from transactions_harness import A0, A1, GROUP
from transactions_service_harness import CALL, CONTROLLER, Cluster, Coordinator, until

from semel.common.v1.participants_pb2 import (
    TRANSACTION_RESULT_ABORT,
    TRANSACTION_RESULT_COMMIT,
    Participants,
    TopicPartitions,
)
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InvalidRequestError, RetriableError, TopicNotFoundError
from semel_coordinator.transactions.machine import TransactionKey
from semel_coordinator.transactions.rpc.add_partitions_to_txn import PartitionAdder
from semel_coordinator.transactions.rpc.end_txn import TransactionEnder
from semel_coordinator.transactions.rpc.joint.end_joint_txn import JointEnder
from semel_coordinator.transactions.rpc.joint.join_txn import TransactionJoiner
from semel_coordinator.transactions.rpc.operators.describe_transactions import TransactionDescriber
from semel_coordinator.transactions.rpc.prepare_txn import TransactionPreparer

BY_NAME = TopicPartitions(topic="orders", partitions=[0, 1])


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.controller.names = {"orders": A0.topic_id}
    return made


async def end_named(
    coordinator: Coordinator, key: TransactionKey, *topics: TopicPartitions, commit: bool = True
) -> int:
    """End a transaction of these topics and a group; returns the next epoch."""
    request = wire.EndTxnRequest(
        transactional_id="app",
        producer_id=key.producer_id,
        producer_epoch=key.producer_epoch,
        result=TRANSACTION_RESULT_COMMIT if commit else TRANSACTION_RESULT_ABORT,
        participants=Participants(topics=topics, group_ids=[GROUP.group_id]),
    )
    return (await TransactionEnder(coordinator.parts).end_txn(request, CALL)).producer_epoch


async def test_commit_reaches_the_partitions_of_a_topic_that_is_named(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        assert await end_named(coordinator, key, BY_NAME) == key.producer_epoch + 1
        await until(lambda: coordinator.machine.markers.is_complete(key))
    assert cluster.broker_0.told == [f"{key.producer_epoch} commit {A0.topic_id}/0"]
    assert cluster.broker_1.told == [f"{key.producer_epoch} commit {A1.topic_id}/1"]
    assert len(cluster.groups.told) == 1


async def test_name_means_the_topic_that_the_controller_knows_not_an_older_copy(
    cluster: Cluster,
) -> None:
    """A topic was created again; this coordinator's copy does not know that yet."""
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        cluster.controller.names = {"topic-a": "created-again"}
        named = TopicPartitions(topic="topic-a", partitions=[0])
        await end_named(coordinator, key, named)
        request = wire.DescribeTransactionsRequest(transactional_ids=["app"])
        described = await TransactionDescriber(coordinator.parts).describe_transactions(
            request, CALL
        )
    topics = described.descriptions[0].transactions[0].participants.topics
    assert [topic.topic_id for topic in topics] == ["created-again"]


async def test_commit_at_a_topic_that_does_not_exist_is_refused_and_its_abort_is_not(
    cluster: Cluster,
) -> None:
    missing = TopicPartitions(topic="missing", partitions=[0])
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        with pytest.raises(TopicNotFoundError, match="missing"):
            await end_named(coordinator, key, BY_NAME, missing)
        assert await end_named(coordinator, key, BY_NAME, missing, commit=False) == 1


async def test_repeat_of_a_commit_is_answered_though_its_topic_is_gone(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        first = await end_named(coordinator, key, BY_NAME)
        cluster.controller.names.clear()
        assert await end_named(coordinator, key, BY_NAME) == first


async def test_name_and_id_must_agree(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        both = TopicPartitions(topic="orders", topic_id=A0.topic_id, partitions=[0])
        other = TopicPartitions(topic="orders", topic_id="topic-b", partitions=[0])
        with pytest.raises(InvalidRequestError, match="is not that of 'orders'"):
            await end_named(coordinator, key, other)
        assert await end_named(coordinator, key, both) == 1


async def test_names_wait_for_the_controller_and_ids_do_not(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        cluster.network.cut(CONTROLLER)
        with pytest.raises(RetriableError):
            await end_named(coordinator, key, BY_NAME)
        by_id = TopicPartitions(topic_id=A0.topic_id, partitions=[0])
        assert await end_named(coordinator, key, by_id) == 1


async def test_other_requests_take_names_too(cluster: Cluster) -> None:
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        fields = {
            "transactional_id": "app",
            "producer_id": key.producer_id,
            "producer_epoch": key.producer_epoch,
        }
        added = wire.AddPartitionsToTxnRequest(topics=[BY_NAME], **fields)  # type: ignore[arg-type]  # three fields
        await PartitionAdder(coordinator.parts).add_partitions_to_txn(added, CALL)
        prepared = wire.PrepareTxnRequest(
            participants=Participants(topics=[BY_NAME]),
            **fields,  # type: ignore[arg-type]  # three fields
        )
        await TransactionPreparer(coordinator.parts).prepare_txn(prepared, CALL)
        request = wire.DescribeTransactionsRequest(transactional_ids=["app"])
        (found,) = (
            await TransactionDescriber(coordinator.parts).describe_transactions(request, CALL)
        ).descriptions
        partitions = [
            (topic.topic_id, *topic.partitions)
            for topic in found.transactions[0].participants.topics
        ]
    assert partitions == [(A0.topic_id, 0, 1)]


async def test_writers_of_a_joint_transaction_are_named_in_one_question(cluster: Cluster) -> None:
    name = wire.JointTransaction(transactional_id="joint", txn_version=1, owner="o", run="r")
    async with cluster.coordinator(send=False) as coordinator:
        writers = []
        for writer in ("a", "b"):
            join = wire.JoinTxnRequest(
                transaction=name, writer=writer, transaction_timeout_ms=1_000
            )
            joined = await TransactionJoiner(coordinator.parts).join_txn(join, CALL)
            writers.append(
                wire.JointWriter(
                    producer_id=joined.producer_id,
                    producer_epoch=joined.producer_epoch,
                    participants=Participants(topics=[BY_NAME]),
                )
            )
        cluster.controller.asked.clear()
        ended = await JointEnder(coordinator.parts).end_joint_txn(
            wire.EndJointTxnRequest(
                transaction=name, result=TRANSACTION_RESULT_COMMIT, writers=writers, end_id="e"
            ),
            CALL,
        )
    assert ended.result == TRANSACTION_RESULT_COMMIT
    assert len(cluster.controller.asked) == 1
