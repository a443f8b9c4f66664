"""Transactions from end to end: real services over gRPC, the SDK, several instances of each."""

import asyncio

import pytest

from aiosemel import (
    ConsumerOptions,
    IllegalStateError,
    IsolationLevel,
    OffsetAndMetadata,
    OffsetReset,
    ProducerFencedError,
    ProducerOptions,
    RequestTimedOutError,
    SemelClient,
    SemelError,
    TopicPartition,
    TransactionAbortedError,
    TransactionalProducer,
)
from aiosemel.errors import AbortableTransactionError, ApplicationRecoverableError
from semel_local import LocalCluster

pytestmark = pytest.mark.asyncio(loop_scope="session")

COMMITTED = IsolationLevel.READ_COMMITTED
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED
PARTITIONS = range(4)


async def read(
    client: SemelClient, topic: str, count: int, isolation: IsolationLevel = COMMITTED
) -> list[bytes | None]:
    """Read that many records from the beginning of all partitions; waits until they are there."""
    options = ConsumerOptions(
        isolation_level=isolation, auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50
    )
    async with client.consumer(options=options) as consumer:
        consumer.assign((topic, partition) for partition in PARTITIONS)
        values: list[bytes | None] = []
        async with asyncio.timeout(20):
            while len(values) < count:
                polled = await consumer.poll(timeout_ms=1_000)
                values += [record.value for records in polled.values() for record in records]
        # One more look: nothing else may be there.
        polled = await consumer.poll(timeout_ms=150)
        return values + [record.value for records in polled.values() for record in records]


async def started(client: SemelClient, transactional_id: str) -> TransactionalProducer:
    """Make a producer and take over its id."""
    producer = client.transactional_producer(transactional_id)
    await producer.init_transactions()
    return producer


async def send_to_all(producer: TransactionalProducer, topic: str, value: bytes) -> None:
    """Send a record to every partition."""
    for partition in PARTITIONS:
        await producer.send(topic, value, partition=partition)


async def test_only_committed_records_are_read(client: SemelClient, topic: str, name: str) -> None:
    """C-001."""
    producer = await started(client, name)
    await producer.begin_transaction()
    await send_to_all(producer, topic, b"aborted")
    await producer.flush()
    await producer.abort()
    async with producer.transaction():
        await send_to_all(producer, topic, b"committed")
    assert await read(client, topic, 4) == [b"committed"] * 4
    seen = await read(client, topic, 8, UNCOMMITTED)
    assert sorted(filter(None, seen)) == [b"aborted"] * 4 + [b"committed"] * 4


async def test_a_parked_read_gets_what_comes_after_an_abort(
    client: SemelClient, topic: str, name: str
) -> None:
    """C-002."""
    producer = await started(client, name)
    await producer.begin_transaction()
    await producer.send(topic, b"aborted", partition=0)
    await producer.flush()
    await client.producer().send_and_wait(topic, b"plain", partition=0)
    parked = asyncio.create_task(read(client, topic, 1))
    await producer.abort()
    assert await parked == [b"plain"]


async def test_nothing_behind_an_open_transaction_is_read(
    client: SemelClient, topic: str, name: str
) -> None:
    """C-004."""
    producer = await started(client, name)
    plain = client.producer()
    await plain.send_and_wait(topic, b"before", partition=0)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"open", partition=0)
    await plain.send_and_wait(topic, b"behind", partition=0)
    assert await read(client, topic, 1) == [b"before"]
    async with client.consumer() as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_end((topic, 0))
        assert await consumer.position((topic, 0)) == 1
    await producer.commit(wait_until_visible=True)
    assert await read(client, topic, 3) == [b"before", b"open", b"behind"]


async def test_an_older_producer_cannot_commit(client: SemelClient, topic: str, name: str) -> None:
    """C-005."""
    older = await started(client, name)
    await older.begin_transaction()
    await send_to_all(older, topic, b"older")
    await older.flush()
    newer = await started(client, name)
    with pytest.raises(TransactionAbortedError):
        await older.commit()
    async with newer.transaction(wait_until_visible=True):
        await send_to_all(newer, topic, b"newer")
    assert await read(client, topic, 4) == [b"newer"] * 4


async def test_an_older_producer_cannot_send(client: SemelClient, topic: str, name: str) -> None:
    """C-007. A transaction that the coordinator knows is closed where it wrote; see also C-005."""
    older = client.transactional_producer(name, ProducerOptions(registration_delay_ms=0))
    await older.init_transactions()
    await older.begin_transaction()
    await older.send_and_wait(topic, b"older", partition=0)
    while not (await client.admin().describe_transactions(name)).transactions:
        pass  # Until the partition is registered: the send does not wait for that.
    newer = await started(client, name)
    with pytest.raises((AbortableTransactionError, ApplicationRecoverableError)):
        await older.send_and_wait(topic, b"older", partition=0)
    with pytest.raises(TransactionAbortedError):
        await older.commit()
    async with newer.transaction(wait_until_visible=True):
        await newer.send(topic, b"newer", partition=1)
    assert await read(client, topic, 1) == [b"newer"]


async def test_what_a_zombie_stores_after_its_successor_has_begun_is_never_visible(
    client: SemelClient, topic: str, name: str
) -> None:
    """A partition learns of the successor with its first send: until then, it stores."""
    early, late, successor = [await started(client, name) for _ in range(3)]
    await early.begin_transaction()
    assert (await early.send_and_wait(topic, b"early zombie", partition=0)).offset == 0
    with pytest.raises(TransactionAbortedError) as refused:
        await early.commit()
    assert isinstance(refused.value.__cause__, ProducerFencedError)
    async with successor.transaction(wait_until_visible=True) as transaction:
        await transaction.send(topic, b"successor", partition=0)
    await late.begin_transaction()
    with pytest.raises((AbortableTransactionError, ApplicationRecoverableError)):
        await late.send_and_wait(topic, b"late zombie", partition=0)
    assert await read(client, topic, 1) == [b"successor"]


async def test_offsets_of_a_transaction_keep_their_metadata(
    client: SemelClient, topic: str, name: str
) -> None:
    """C-010."""
    producer = await started(client, name)
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with client.consumer(name, options) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            await consumer.poll(timeout_ms=50)
        async with producer.transaction(wait_until_visible=True) as txn:
            offsets = {TopicPartition(topic, 1): OffsetAndMetadata(17, "somebody's note")}
            await txn.send_offsets(offsets, consumer.group_metadata())
        committed = await consumer.committed([(topic, 1)])
    assert committed[TopicPartition(topic, 1)] == OffsetAndMetadata(17, "somebody's note")


async def test_offsets_of_an_aborted_transaction_do_not_count(
    client: SemelClient, topic: str, name: str
) -> None:
    producer = await started(client, name)
    async with client.consumer(name) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            await consumer.poll(timeout_ms=50)
        await producer.begin_transaction()
        await producer.send_offsets({TopicPartition(topic, 1): 17}, consumer.group_metadata())
        await producer.abort()
        committed = await consumer.committed([(topic, 1)])
    assert committed.get(TopicPartition(topic, 1)) is None


async def test_a_producer_is_initialised_once(client: SemelClient, name: str) -> None:
    """C-013."""
    producer = await started(client, name)
    with pytest.raises(IllegalStateError, match=r"READY|ready"):
        await producer.init_transactions()


async def test_every_transaction_has_an_epoch_of_its_own(
    client: SemelClient, topic: str, name: str
) -> None:
    """C-016."""
    producer = await started(client, name)
    epochs = []
    for _ in range(3):
        async with producer.transaction(wait_until_visible=True):
            await send_to_all(producer, topic, b"x")
        description = await client.admin().describe_transactions(name)
        epochs.append(description.producer_epoch)
    assert epochs == [epochs[0], epochs[0] + 1, epochs[0] + 2]


async def test_a_transaction_spans_topics_brokers_and_a_group(
    client: SemelClient, name: str
) -> None:
    one, two = f"{name}-one", f"{name}-two"
    for topic in (one, two):
        await client.admin().create_topic(topic, partitions=4)
    producer = await started(client, name)
    async with client.consumer(name) as consumer:
        consumer.subscribe([one])
        while not consumer.assignment():
            await consumer.poll(timeout_ms=50)
        async with producer.transaction(wait_until_visible=True) as txn:
            await send_to_all(producer, one, b"1")
            await send_to_all(producer, two, b"2")
            await txn.send_offsets({TopicPartition(one, 0): 1}, consumer.group_metadata())
        committed = await consumer.committed([(one, 0)])
    assert committed[TopicPartition(one, 0)] == OffsetAndMetadata(1, "")
    assert await read(client, one, 4) == [b"1"] * 4
    assert await read(client, two, 4) == [b"2"] * 4


async def test_a_vanished_producers_transaction_times_out(
    client: SemelClient, topic: str, name: str
) -> None:
    options = ProducerOptions(transaction_timeout_ms=200)
    producer = client.transactional_producer(name, options)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"forgotten", partition=0)
    await client.producer().send_and_wait(topic, b"behind", partition=0)
    assert await read(client, topic, 1) == [b"behind"]
    with pytest.raises(TransactionAbortedError, match=r"timed out|TIMED_OUT"):
        await producer.commit()


@pytest.mark.slow
async def test_without_its_coordinator_a_producer_times_out_and_can_be_closed(
    cluster: LocalCluster, topic: str, name: str
) -> None:
    """C-011."""
    async with cluster.client() as client:
        options = ProducerOptions(max_block_ms=300, request_timeout_ms=100, delivery_timeout_ms=300)
        producer = client.transactional_producer(name, options)
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"x", partition=0)
        for number in range(2):
            await cluster.stop_service(f"coordinator-{number}")
        try:
            with pytest.raises((RequestTimedOutError, SemelError)):
                await producer.commit()
            await producer.close()
        finally:
            for number in range(2):
                await cluster.start_service(f"coordinator-{number}")


@pytest.mark.parametrize("service", ["coordinator-0", "coordinator-1", "broker-0", "broker-2"])
async def test_transactions_go_on_after_a_restart_of(
    cluster: LocalCluster, client: SemelClient, topic: str, name: str, service: str
) -> None:
    producer = await started(client, name)
    async with producer.transaction():
        await send_to_all(producer, topic, b"before")
    await cluster.stop_service(service)
    await cluster.start_service(service)
    while True:
        try:
            async with producer.transaction(wait_until_visible=True):
                await send_to_all(producer, topic, b"after")
            break
        except TransactionAbortedError:
            continue  # A definite abort may happen; the next transaction must commit.
    assert sorted(filter(None, await read(client, topic, 8))) == [b"after"] * 4 + [b"before"] * 4


async def fail_unanswered(
    cluster: LocalCluster, producer: TransactionalProducer, topic: str
) -> None:
    """Let a block fail while the coordinator is away."""
    async with producer.transaction() as transaction:
        await transaction.send_and_wait(topic, b"never", partition=0)
        await cluster.stop_service("coordinator-0")
        raise ZeroDivisionError


async def test_a_producer_goes_on_after_an_abort_that_no_coordinator_answered(name: str) -> None:
    """A block leaves nothing to be called, whatever becomes of its abort."""
    options = ProducerOptions(max_block_ms=300, request_timeout_ms=200)
    async with LocalCluster() as cluster, cluster.client() as client:
        await client.admin().create_topic(name, partitions=len(PARTITIONS))
        producer = client.transactional_producer(name, options)
        await producer.init_transactions()
        with pytest.raises(ZeroDivisionError):
            await fail_unanswered(cluster, producer, name)
        with pytest.raises(RequestTimedOutError):
            await producer.begin_transaction()
        await cluster.start_service("coordinator-0")
        while not await _begins(producer):
            pass
        await producer.send(name, b"again", partition=0)
        await producer.commit(wait_until_visible=True)
        assert await read(client, name, 1) == [b"again"]


async def _begins(producer: TransactionalProducer) -> bool:
    """Try to begin a transaction; False if the connection is not there again yet."""
    try:
        await producer.begin_transaction()
    except RequestTimedOutError:
        return False
    return True
