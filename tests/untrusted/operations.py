"""Every public operation of the SDK, by class and name, as its users call it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from aiosemel import (
    Consumer,
    ConsumerGroupMetadata,
    ConsumerRecord,
    JointReceipt,
    JointWriter,
    LogRange,
    Outputs,
    ProducerRecord,
    TransactionalProducer,
)
from aiosemel.errors import TransactionOutcomeUnknownError
from untrusted.admin_operations import ADMIN_OPERATIONS
from untrusted.client_options import CONSUMERS, POOLS, PRODUCERS, TRANSFORMS
from untrusted.database_operations import DATABASE_OPERATIONS
from untrusted.world import GROUP, MEMBERS, PARTITION, TOPIC, Operation, World

_POLL_MS = 250


OPERATIONS: dict[str, Operation] = {}
WITHIN: frozenset[str] = frozenset(
    {
        "Admin.complete_prepared",
        "Consumer.close",
        "DatabaseProducer.close",
        "JointTransaction.close",
        "JointTransaction.keep_alive",
        "JointWriter.append",
        "JointWriter.close",
        "JointWriter.finish",
        "JointWriter.join",
        "JointWriter.send",
        "JointWriter.send_all",
        "JointWriter.send_and_wait",
        "JointWriter.send_columns",
        "JointWriter.send_offsets",
        "Outputs.append",
        "Outputs.send",
        "Outputs.send_all",
        "Outputs.send_and_wait",
        "Outputs.send_columns",
        "Producer.close",
        "SemelClient.close",
        "SemelClient.open",
        "Transaction.append",
        "Transaction.send",
        "Transaction.send_all",
        "Transaction.send_and_wait",
        "TransactionPool.close",
        "Transaction.send_columns",
        "Transaction.send_offsets",
        "TransactionalProducer.begin_transaction",
        "TransactionalProducer.close",
        "TransactionalProducer.commit",
        "TransactionalProducer.init_transactions",
        "TransactionalProducer.prepare",
    }
)
"""Coroutines that other operations call."""


def _operation(name: str) -> Callable[[Operation], Operation]:
    def added(operation: Operation) -> Operation:
        OPERATIONS[name] = operation
        return operation

    return added


# -- producers -----------------------------------------------------------------------------------


@_operation("Producer.send")
async def _send(world: World) -> None:
    async with world.client.producer(PRODUCERS) as producer:
        delivery = await producer.send(TOPIC, b"v", key=b"k")
        await producer.flush()
        await delivery


@_operation("Producer.send_all")
async def _send_all(world: World) -> None:
    async with world.client.producer(PRODUCERS) as producer:
        await producer.send_all([ProducerRecord(topic=TOPIC, value=b"v")])


@_operation("Producer.send_and_wait")
async def _send_and_wait(world: World) -> object:
    async with world.client.producer(PRODUCERS) as producer:
        return await producer.send_and_wait(TOPIC, b"v", partition=1)


@_operation("Producer.send_columns")
async def _send_columns(world: World) -> object:
    async with world.client.producer(PRODUCERS) as producer:
        return await (await producer.send_columns(TOPIC, [b"v"] * 3, keys=[b"a", b"b", b"c"]))


@_operation("Producer.append")
async def _append(world: World) -> object:
    async with world.client.producer(PRODUCERS) as producer:
        return await producer.append(TOPIC, [b"v"], partition=2, expected_base_offset=0)


@_operation("Producer.flush")
async def _flush(world: World) -> None:
    async with world.client.producer(PRODUCERS) as producer:
        for _ in range(5):
            await producer.send(TOPIC, b"v")
        await producer.flush()


async def _begun(world: World) -> TransactionalProducer:
    producer = world.client.transactional_producer(f"txn-{world.number % 7}", PRODUCERS)
    await producer.init_transactions()
    await producer.begin_transaction()
    return producer


async def _settle(error: TransactionOutcomeUnknownError) -> None:
    await error.resolve(timeout_ms=1_000)


def _transactional(
    name: str,
) -> Callable[[Callable[[TransactionalProducer], Awaitable[object]]], object]:
    """Run something within a transaction, which is committed."""

    def added(run: Callable[[TransactionalProducer], Awaitable[object]]) -> object:
        async def whole(world: World) -> None:
            producer = await _begun(world)
            try:
                await run(producer)
                await producer.commit()
            except TransactionOutcomeUnknownError as error:
                await _settle(error)
            finally:
                await producer.close()

        OPERATIONS[name] = whole
        return run

    return added


@_transactional("TransactionalProducer.send")
async def _txn_send(producer: TransactionalProducer) -> None:
    await producer.send(TOPIC, b"v", key=b"k")


@_transactional("TransactionalProducer.send_all")
async def _txn_send_all(producer: TransactionalProducer) -> None:
    await producer.send_all([ProducerRecord(topic=TOPIC, value=b"v")])


@_transactional("TransactionalProducer.send_and_wait")
async def _txn_send_and_wait(producer: TransactionalProducer) -> None:
    await producer.send_and_wait(TOPIC, b"v", partition=1)
    await asyncio.sleep(0.01)  # so that the participants are registered


@_transactional("TransactionalProducer.send_columns")
async def _txn_send_columns(producer: TransactionalProducer) -> None:
    await producer.send_columns(TOPIC, [b"v"] * 2)


@_transactional("TransactionalProducer.append")
async def _txn_append(producer: TransactionalProducer) -> None:
    await producer.append(TOPIC, [b"v"], partition=2, expected_base_offset=0)


@_transactional("TransactionalProducer.send_offsets")
async def _txn_send_offsets(producer: TransactionalProducer) -> None:
    await producer.send_offsets({PARTITION: 3}, ConsumerGroupMetadata(group_id=GROUP))


@_transactional("TransactionalProducer.flush")
async def _txn_flush(producer: TransactionalProducer) -> None:
    await producer.send(TOPIC, b"v")
    await producer.flush()


@_transactional("TransactionOutcomeUnknownError.resolve")
async def _txn_resolve(producer: TransactionalProducer) -> None:
    await producer.send(TOPIC, b"v")
    await producer.commit(wait_until_visible=True)
    await producer.begin_transaction()


@_transactional("TransactionalProducer.abort")
async def _txn_abort(producer: TransactionalProducer) -> None:
    await producer.send_and_wait(TOPIC, b"v")
    await producer.abort()
    await producer.begin_transaction()


@_transactional("TransactionalProducer.complete_prepared")
async def _txn_prepare(producer: TransactionalProducer) -> None:
    await producer.send(TOPIC, b"v")
    prepared = await producer.prepare()
    await producer.complete_prepared(prepared, commit=True)
    await producer.begin_transaction()


@_operation("TransactionalProducer.transaction")
async def _transaction(world: World) -> None:
    producer = world.client.transactional_producer(f"txn-{world.number % 7}", PRODUCERS)
    await producer.init_transactions(keep_prepared=True)
    async with producer.transaction() as transaction:
        await transaction.send(TOPIC, b"v")
        await transaction.send_and_wait(TOPIC, b"v")
        await transaction.send_all([ProducerRecord(topic=TOPIC, value=b"v")])
        await (await transaction.send_columns(TOPIC, [b"v"]))
        await transaction.send_offsets({PARTITION: 3}, ConsumerGroupMetadata(group_id=GROUP))


@_operation("Transaction.prepare")
async def _transaction_prepared(world: World) -> None:
    producer = world.client.transactional_producer(f"txn-{world.number % 7}", PRODUCERS)
    await producer.init_transactions()
    async with producer.transaction() as transaction:
        await transaction.append(TOPIC, [b"v"], partition=2, expected_base_offset=0)
        prepared = await transaction.prepare()
    await world.client.admin().complete_prepared(prepared, commit=False)


@_operation("TransactionPool.open")
async def _pool(world: World) -> None:
    pool = world.client.transactions(
        f"pool-{world.number % 7}", size=2, options=POOLS, producer_options=PRODUCERS
    )
    async with pool, pool.transaction() as transaction:
        await transaction.send(TOPIC, b"v")


# -- joint transactions --------------------------------------------------------------------------


@_operation("JointTransaction.commit")
async def _joint_commit(world: World) -> None:
    async with world.client.joint_transaction(
        "joint", world.number, owner="o", options=PRODUCERS
    ) as joint:
        async with world.client.join(joint.handle, options=PRODUCERS) as writer:
            receipt = await _joint_work(writer)
        await joint.commit([receipt])


async def _joint_work(writer: JointWriter) -> JointReceipt:
    place = await writer.send_and_wait(TOPIC, b"v", partition=1)
    await writer.append(TOPIC, [b"v"], partition=1, expected_base_offset=place.offset + 1)
    await writer.send(TOPIC, b"v")
    await writer.send_all([ProducerRecord(topic=TOPIC, value=b"v")])
    await (await writer.send_columns(TOPIC, [b"v"]))
    await writer.send_offsets({PARTITION: 3}, ConsumerGroupMetadata(group_id=GROUP))
    return await writer.finish()


@_operation("JointTransaction.abort")
async def _joint_abort(world: World) -> None:
    async with world.client.joint_transaction(
        "joint", world.number, owner="o", transaction_timeout_ms=300, options=PRODUCERS
    ) as joint:
        await joint.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await joint.keep_alive()


# -- consumers -----------------------------------------------------------------------------------


def _consumer(world: World, *, group: str | None = None) -> Consumer:
    return world.client.consumer(group, CONSUMERS)


def _assigned(name: str) -> Callable[[Callable[[Consumer], Awaitable[object]]], object]:
    def added(run: Callable[[Consumer], Awaitable[object]]) -> object:
        async def whole(world: World) -> None:
            async with _consumer(world, group=GROUP) as consumer:
                consumer.assign([PARTITION, (TOPIC, 1)])
                await run(consumer)

        OPERATIONS[name] = whole
        return run

    return added


@_assigned("Consumer.poll")
async def _poll(consumer: Consumer) -> None:
    await consumer.poll(timeout_ms=_POLL_MS)
    await consumer.commit()
    await consumer.poll(timeout_ms=_POLL_MS)


@_assigned("Consumer.poll_columns")
async def _poll_columns(consumer: Consumer) -> None:
    consumer.seek_to_beginning()
    await consumer.poll_columns(timeout_ms=_POLL_MS)


@_assigned("Consumer.position")
async def _position(consumer: Consumer) -> None:
    consumer.seek_to_end()
    await consumer.position(PARTITION, timeout_ms=_POLL_MS)
    consumer.seek_to_committed()
    await consumer.position(PARTITION, timeout_ms=_POLL_MS)


@_assigned("Consumer.commit")
async def _commit(consumer: Consumer) -> None:
    await consumer.commit({PARTITION: 2})


@_assigned("Consumer.committed")
async def _committed(consumer: Consumer) -> None:
    await consumer.committed([PARTITION, (TOPIC, 1)])


@_assigned("Consumer.beginning_offsets")
async def _beginning(consumer: Consumer) -> None:
    await consumer.beginning_offsets([PARTITION])


@_assigned("Consumer.end_offsets")
async def _end(consumer: Consumer) -> None:
    await consumer.end_offsets([PARTITION])


@_assigned("Consumer.offsets_for_times")
async def _for_times(consumer: Consumer) -> None:
    await consumer.offsets_for_times({PARTITION: 5})


@_operation("Consumer.unsubscribe")
async def _membership(world: World) -> None:
    async with _consumer(world, group=MEMBERS) as consumer:
        consumer.subscribe([TOPIC])
        for _ in range(3):
            await consumer.poll(timeout_ms=_POLL_MS)
        await consumer.commit()
        await consumer.unsubscribe()


@_operation("LogRangeReader.read")
async def _range(world: World) -> None:
    log_range = LogRange(
        topic=TOPIC, topic_id=world.topic_id, partition=0, start_offset=0, end_offset=3
    )
    reader = world.client.read_range(log_range, CONSUMERS, with_outcomes=True)
    while await reader.read():
        pass


async def _handle(records: Sequence[ConsumerRecord], outputs: Outputs) -> None:
    """Answer each record with two."""
    place = await outputs.send_and_wait("results", b"first", partition=0)
    await outputs.append("results", [b"v"], partition=0, expected_base_offset=place.offset + 1)
    await outputs.send_columns("results", [b"v"])
    for record in records:
        await outputs.send("results", record.value)
    await outputs.send_all(
        [ProducerRecord(topic="results", value=record.value) for record in records]
    )


@_operation("Transform.run")
async def _transform(world: World) -> None:
    transform = world.client.transform(
        source=[TOPIC],
        group="transform",
        transactional_id="transform",
        handler=_handle,
        options=TRANSFORMS,
        consumer_options=CONSUMERS,
        producer_options=PRODUCERS,
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(0.8):
            await transform


OPERATIONS |= ADMIN_OPERATIONS | DATABASE_OPERATIONS
