"""What is done at every point of several curves."""

from aiosemel import Consumer, Producer, TopicPartition, TransactionalProducer
from bench.growth.curve import Reading
from bench.growth.stage import VALUE, Stage

PRODUCES = 300
TRANSACTIONS = 100


class Operations:
    """Clients that are there from the first point on, so that no point pays for starting them."""

    def __init__(
        self, stage: Stage, topic: str, producer: Producer, transactional: TransactionalProducer
    ) -> None:
        self._stage = stage
        self._topic = topic
        self._producer = producer
        self._transactional = transactional

    @classmethod
    async def on(cls, stage: Stage, topic: str) -> "Operations":
        """Make producers for the first partition of a topic; the stage's client closes them."""
        transactional = stage.client.transactional_producer("growth")
        await transactional.init_transactions()
        return cls(stage, topic, stage.client.producer(), transactional)

    async def produce(self) -> None:
        """Send a record, and wait for it."""
        await self._producer.send_and_wait(self._topic, VALUE, partition=0)

    async def transaction(self) -> None:
        """Commit a transaction of one record."""
        async with self._transactional.transaction() as txn:
            await txn.send(self._topic, VALUE, partition=0)

    async def readings(self) -> list[Reading]:
        """Measure what every curve does: write, commit, do nothing, and hold memory."""
        probe = self._stage.probe
        return [
            *await probe.cost("produce", self.produce, PRODUCES),
            *await probe.cost("transaction", self.transaction, TRANSACTIONS),
            *await probe.idle(),
            *probe.memory(),
        ]


class Tail:
    """A consumer at the end of a partition."""

    def __init__(self, operations: Operations, consumer: Consumer) -> None:
        self._operations = operations
        self._consumer = consumer

    @classmethod
    async def of(
        cls, stage: Stage, operations: Operations, topic: str, others: list[TopicPartition]
    ) -> "Tail":
        """Read the first partition of a topic from its end on, and others beside it."""
        consumer = stage.client.consumer()
        consumer.assign([TopicPartition(topic, 0), *others])
        consumer.seek_to_end()
        await consumer.position(TopicPartition(topic, 0))
        return cls(operations, consumer)

    async def send_and_poll(self) -> None:
        """Send a record, and wait until it is read."""
        await self._operations.produce()
        while not await self._consumer.poll(timeout_ms=10_000):
            pass

    async def close(self) -> None:
        """End the consumer."""
        await self._consumer.close()
