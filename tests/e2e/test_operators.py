"""Operators' queries and commands on real services: open transactions, aborts, fences, outcomes."""

import asyncio
import time

import pytest

from aiosemel import (
    AbortReason,
    ConsumerGroupMetadata,
    KnownOutcome,
    NextStep,
    OpenTransactions,
    PartitionWrites,
    ProducerFencedError,
    ProducerOptions,
    SemelClient,
    TopicPartition,
    TransactionAbortedError,
    TransactionalProducer,
    TransactionOutcomeUnknownError,
)
from aiosemel.errors import InvalidTxnStateError
from semel_local import LocalCluster

pytestmark = pytest.mark.asyncio(loop_scope="session")

WHO = "the test"


async def opened(
    client: SemelClient, topic: str, name: str, options: ProducerOptions | None = None
) -> TransactionalProducer:
    """A producer with an open transaction in partition 1."""
    producer = client.transactional_producer(name, options)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"x", partition=1)
    return producer


async def open_at(client: SemelClient, name: str) -> OpenTransactions:
    """Return the open transactions of one transactional id."""
    found = await client.admin().operators.list_open_transactions()
    mine = [
        transaction
        for transaction in found.transactions
        if transaction.known and transaction.known.transactional_id == name
    ]
    return OpenTransactions(
        transactions=tuple(mine), truncated=found.truncated, unreachable=found.unreachable
    )


async def test_an_open_transaction_is_found_with_the_knowledge_of_its_coordinator(
    client: SemelClient, topic: str, name: str
) -> None:
    """C-164, C-220."""
    producer = await opened(client, topic, name)
    found = await open_at(client, name)
    (transaction,) = found.transactions
    assert (transaction.partition, transaction.group_id) == (TopicPartition(topic, 1), None)
    assert transaction.first_offset == 0
    assert transaction.known is not None
    assert transaction.known.outcome is KnownOutcome.ONGOING
    assert found.unreachable == ()
    described = await client.admin().operators.describe_producers((topic, 1))
    assert (described.last_stable_offset, described.high_watermark) == (0, 1)
    holder = described.producers[0]
    assert holder.producer_id == transaction.producer_id
    assert holder.open_transactions[0].start_time_ms == transaction.start_time_ms
    await producer.abort()
    async with asyncio.timeout(50):
        while found.transactions:
            found = await open_at(client, name)
    assert (await client.admin().operators.describe_producers((topic, 1))).last_stable_offset == 2


async def test_an_open_transaction_with_offsets_of_a_group_is_found_there_too(
    client: SemelClient, topic: str, name: str
) -> None:
    producer = await opened(client, topic, name)
    await producer.send_offsets({(topic, 0): 1}, ConsumerGroupMetadata(group_id=name))
    found = await open_at(client, name)
    assert found.unreachable == ()
    places = {(each.partition, each.group_id, each.first_offset) for each in found.transactions}
    assert places == {(TopicPartition(topic, 1), None, 0), (None, name, None)}
    await producer.abort()


@pytest.mark.parametrize("commits", [True, False])
async def test_the_writes_of_a_transaction_are_found_after_it_has_ended(
    client: SemelClient, topic: str, name: str, *, commits: bool
) -> None:
    operators, before_ms = client.admin().operators, int(time.time() * 1000)
    async with client.producer() as other:
        await other.send_and_wait(topic, b"of no transaction", partition=1)
    producer = await opened(client, topic, name)
    await producer.send_and_wait(topic, b"y", partition=1)
    (transaction,) = (await open_at(client, name)).transactions
    await (producer.commit() if commits else producer.abort())
    async with asyncio.timeout(50):
        while (await open_at(client, name)).transactions:
            pass
    found = await operators.describe_writes(
        [(topic, 1), (topic, 2)],
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        from_time_ms=before_ms,
    )
    written, untouched = found[TopicPartition(topic, 1)], found[TopicPartition(topic, 2)]
    assert (written.first_offset, written.last_offset, written.record_count) == (1, 2, 2)
    assert written.marker_offset == 3
    assert (written.first_timestamp_ms or 0) >= before_ms
    assert untouched == PartitionWrites(partition=TopicPartition(topic, 2))


async def test_an_operator_aborts_and_the_producer_goes_on(
    client: SemelClient, topic: str, name: str
) -> None:
    """C-221."""
    producer = await opened(client, topic, name)
    (transaction,) = (await open_at(client, name)).transactions
    key = (transaction.producer_id, transaction.producer_epoch)
    admin = client.admin()
    tried = await admin.operators.abort_transaction(
        name, *key, operator=WHO, reason="see", dry_run=True
    )
    assert (tried.already_aborted, tried.dry_run) == (False, True)
    assert len((await open_at(client, name)).transactions) == 1
    await admin.operators.abort_transaction(name, *key, operator=WHO, reason="it is in the way")
    assert (
        await admin.operators.abort_transaction(name, *key, operator=WHO, reason="x")
    ).already_aborted
    with pytest.raises(TransactionAbortedError, match="OPERATOR"):
        await producer.commit()
    await producer.abort()
    async with producer.transaction():
        await producer.send(topic, b"y", partition=1)
    known = await admin.get_transaction_outcome(name, key[1])
    assert (known.outcome, known.abort_reason) == (KnownOutcome.ABORTED, AbortReason.OPERATOR)
    with pytest.raises(InvalidTxnStateError, match="is committed"):
        await admin.operators.abort_transaction(
            name, key[0], key[1] + 1, operator=WHO, reason="late"
        )


async def test_a_fenced_producer_is_done_and_the_next_one_goes_on(
    client: SemelClient, topic: str, name: str
) -> None:
    producer = await opened(client, topic, name)
    fenced = await client.admin().operators.fence_producer(name, operator=WHO, reason="runs twice")
    assert fenced.fenced_epoch == 0
    with pytest.raises(TransactionAbortedError) as raised:
        await producer.commit()
    assert isinstance(raised.value.__cause__, ProducerFencedError)
    successor = await opened(client, topic, name)
    await successor.commit()


@pytest.mark.slow
async def test_a_commit_that_no_coordinator_answered_is_resolved(
    cluster: LocalCluster, topic: str, name: str
) -> None:
    async with cluster.client() as client:
        options = ProducerOptions(max_block_ms=300, request_timeout_ms=100, delivery_timeout_ms=300)
        producer = await opened(client, topic, name, options)
        for number in range(2):
            await cluster.stop_service(f"coordinator-{number}")
        try:
            with pytest.raises(TransactionOutcomeUnknownError) as raised:
                await producer.commit()
        finally:
            for number in range(2):
                await cluster.start_service(f"coordinator-{number}")
        resolution = await raised.value.resolve(timeout_ms=20_000)
        assert resolution.outcome is KnownOutcome.COMMITTED
        assert resolution.next_step is NextStep.BEGIN
        await producer.begin_transaction()


async def test_an_instance_that_is_away_is_named(
    cluster: LocalCluster, client: SemelClient
) -> None:
    await cluster.stop_service("broker-2")
    try:
        found = await client.admin().operators.list_open_transactions()
    finally:
        await cluster.start_service("broker-2")
    assert [each.partition(":")[0] for each in found.unreachable] == ["broker-2"]
