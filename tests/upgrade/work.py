"""The data that a release leaves in its folder, and that the next release must find there."""

from collections.abc import Mapping

from aiosemel import (
    Consumer,
    ConsumerOptions,
    IsolationLevel,
    OffsetReset,
    PreparedTransactionId,
    ProducerOptions,
    SemelClient,
    ToOffset,
    TopicPartition,
)
from semel_local.layout import Role

ORDERS, TALLY, MANY = (TopicPartition(name, 0) for name in ("orders", "tally", "many"))
TOPICS: Mapping[TopicPartition, Mapping[str, str]] = {
    ORDERS: {"retention.ms": "-1"},
    TALLY: {"cleanup.policy": "compact"},
    MANY: {"retention.ms": "-1"},
}
GROUP = "readers"
OFTEN: Mapping[str, str | int] = {"journal_snapshot_records_min": 20}
"""A folder has snapshots, and records after them."""
LONG: Mapping[Role, Mapping[str, str | int]] = {
    Role.COORDINATOR: {**OFTEN, "transactional_id_expiration_ms": 2_000_000_000},
    Role.BROKER: {**OFTEN, "producer_id_expiration_ms": 2_000_000_000},
    Role.GROUP_COORDINATOR: {
        **OFTEN,
        "producer_id_expiration_ms": 2_000_000_000,
        "offsets_retention_minutes": 35_000_000,
    },
}
"""Nothing that is kept expires, however old the folder is."""
SENT = 300
"""Batches of which all but a few are deleted again."""
COMMITTED = (b"order-0", b"order-1")
KEPT = 3


async def leave(client: SemelClient) -> PreparedTransactionId:
    """Do some of everything that ends up in a journal. One transaction is prepared in the end."""
    for place, configs in TOPICS.items():
        await client.admin().create_topic(place.topic, partitions=1, configs=configs)
    await _cut(client)
    writer = client.transactional_producer("writer")
    await writer.init_transactions()
    for value in COMMITTED:
        await writer.begin_transaction()
        await writer.send(ORDERS.topic, value, key=b"k", partition=ORDERS.partition)
        await writer.commit()
    await writer.begin_transaction()
    await writer.send(ORDERS.topic, b"aborted", partition=ORDERS.partition)
    await writer.flush()
    await writer.abort()
    plain = client.producer()
    for value in (b"1", b"2"):
        await (await plain.send(TALLY.topic, value, key=b"sum", partition=TALLY.partition))
    await client.admin().groups.reset_offsets(GROUP, ToOffset(1), partitions=[ORDERS])
    open_one = client.transactional_producer("open")
    await open_one.init_transactions()
    await open_one.begin_transaction()
    await open_one.send(ORDERS.topic, b"never committed", partition=ORDERS.partition)
    await open_one.flush()
    two_phase = client.transactional_producer("two-phase")
    await two_phase.init_transactions()
    await two_phase.begin_transaction()
    await two_phase.send(ORDERS.topic, b"prepared", partition=ORDERS.partition)
    return await two_phase.prepare()


async def _cut(client: SemelClient) -> None:
    """Send many batches, and delete most of them."""
    producer = client.producer(ProducerOptions(batch_size_bytes=1))
    for number in range(SENT):
        await producer.send(MANY.topic, b"%d" % number, partition=MANY.partition)
    await producer.flush()
    await client.admin().delete_records({MANY: SENT - KEPT})


async def committed(client: SemelClient, place: TopicPartition, count: int) -> list[bytes | None]:
    """Read so many committed records, and see that there are no more."""
    options = ConsumerOptions(
        isolation_level=IsolationLevel.READ_COMMITTED, auto_offset_reset=OffsetReset.EARLIEST
    )
    consumer = client.consumer(options=options)
    consumer.assign([place])
    found: list[bytes | None] = []
    while len(found) < count:
        found += await _poll(consumer, place, timeout_ms=20_000)
    found += await _poll(consumer, place, timeout_ms=100)
    await consumer.close()
    return found


async def _poll(consumer: Consumer, place: TopicPartition, timeout_ms: int) -> list[bytes | None]:
    polled = await consumer.poll(timeout_ms)
    return [record.value for record in polled.get(place, ())]
