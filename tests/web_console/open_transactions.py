"""Transactions that stay open while pages are looked at."""

from aiosemel import ProducerOptions, SemelClient, TransactionalProducer

OPEN_MS = 600_000
"""How long the transactions of tests may stay open."""


async def open_transaction(
    client: SemelClient, transactional_id: str, topic: str, *, value: bytes, partition: int
) -> TransactionalProducer:
    """Return a producer whose transaction is open, and known to its coordinator."""
    options = ProducerOptions(transaction_timeout_ms=OPEN_MS, registration_delay_ms=0)
    producer = client.transactional_producer(transactional_id, options)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait(topic, value, partition=partition)
    while not (await client.admin().describe_transactions(transactional_id)).transactions:
        pass  # Until the partition is registered: the send does not wait for that.
    return producer
