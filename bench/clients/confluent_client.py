"""confluent-kafka: librdkafka in Python. A producer and a thread for each transactional id."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import assert_never

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.clients.arrivals import arrivals
from bench.clients.messages import Order
from bench.clients.meter import Meter
from bench.clients.settings import POLL_RECORDS
from bench.workloads import Call, Kind, Sample, Workload

_TIMEOUT_S = 60.0
_POLL_TIMEOUT_S = 0.5
_COLUMN_RECORDS = 5_000
_FULL_S = 0.01


def run(bootstrap: str, order: Order, meter: Meter) -> Sample:
    """Do one task with producers and consumers of its own."""
    _Client(bootstrap, order, meter, Lock()).run()
    return meter.sample()


@dataclass(frozen=True, slots=True)
class _Client:
    bootstrap: str
    order: Order
    meter: Meter
    lock: Lock
    """Around the meter, where there are several threads."""

    @property
    def workload(self) -> Workload:
        return self.order.task.workload

    @property
    def topic(self) -> str:
        return self.order.task.name

    def run(self) -> None:
        if self.workload.kind is not Kind.CONSUME:
            self._create_topic()
        match self.workload.kind:
            case Kind.TRANSACTIONS:
                self._transactions()
            case Kind.VISIBLE:
                self._visible()
            case Kind.TRANSFORM:
                self._transform()
            case Kind.BULK:
                self._bulk()
            case Kind.CONSUME:
                self._consume()
            case unknown:
                assert_never(unknown)

    def _transactions(self) -> None:
        def work(producer: Producer) -> None:
            while not self.meter.over:
                took_ms = self._transaction(producer)
                with self.lock:
                    self.meter.ended(self.workload.records_per_transaction, took_ms)

        with ThreadPoolExecutor(self.workload.producers) as threads:
            made = list(threads.map(self._producer, range(self.workload.producers)))
            for _ in threads.map(work, made):
                pass

    def _transaction(self, producer: Producer) -> float:
        """Return how long the commit took, in milliseconds."""
        value = bytes(self.workload.record_size_bytes)
        producer.begin_transaction()
        for number in range(self.workload.records_per_transaction):
            producer.produce(self.topic, value, partition=number % self.workload.partitions)
        started = time.perf_counter()
        producer.commit_transaction(_TIMEOUT_S)
        return (time.perf_counter() - started) * 1_000

    def _visible(self) -> None:
        producer = self._producer(0)
        with closing(self._consumer()) as consumer:
            consumer.assign(self._partitions(self.topic))
            with arrivals(partial(_poll, consumer)) as next_arrival:
                while not self.meter.over:
                    started = ended = time.perf_counter()
                    self._transaction(producer)
                    for _ in range(self.workload.records_per_transaction):
                        ended = next_arrival()
                    count = self.workload.records_per_transaction
                    self.meter.ended(count, (ended - started) * 1_000)

    def _transform(self) -> None:
        producer = self._producer(0)
        with closing(self._consumer(self.topic)) as consumer:
            consumer.subscribe([self.order.task.source])
            while not self.meter.over:
                polled = consumer.consume(self.workload.records_per_transaction, _POLL_TIMEOUT_S)
                if not polled:
                    continue
                producer.begin_transaction()
                for message in polled:
                    self._produce(producer, message.value(), message.partition())
                ends = consumer.position(consumer.assignment())
                producer.send_offsets_to_transaction(
                    ends, consumer.consumer_group_metadata(), _TIMEOUT_S
                )
                producer.commit_transaction(_TIMEOUT_S)
                self.meter.ended(len(polled))

    def _bulk(self) -> None:
        producer = self._producer(0)
        columns = self.workload.call is Call.COLUMNS
        send = self._produce_batches if columns else self._produce_records
        while not self.meter.over:
            producer.begin_transaction()
            send(producer)
            producer.commit_transaction(_TIMEOUT_S)
            self.meter.ended(self.workload.records_per_transaction)

    def _produce_records(self, producer: Producer) -> None:
        value = bytes(self.workload.record_size_bytes)
        for number in range(self.workload.records_per_transaction):
            self._produce(producer, value, number % self.workload.partitions)

    def _produce_batches(self, producer: Producer) -> None:
        message = {"value": bytes(self.workload.record_size_bytes)}
        for number in range(self.workload.records_per_transaction // _COLUMN_RECORDS):
            partition = number % self.workload.partitions
            # One for all: the client writes into refused ones, and refuses none here.
            taken = producer.produce_batch(self.topic, [message] * _COLUMN_RECORDS, partition)
            assert taken == _COLUMN_RECORDS, taken

    def _produce(self, producer: Producer, value: bytes | None, partition: int | None) -> None:
        """Send a record; wait while the queue is full."""
        while True:
            try:
                producer.produce(self.topic, value, partition=partition)
            except BufferError:
                producer.poll(_FULL_S)
            else:
                return

    def _consume(self) -> None:
        with closing(self._consumer()) as consumer:
            consumer.assign(self._partitions(self.order.task.source))
            while not self.meter.over:
                polled = consumer.consume(POLL_RECORDS, _POLL_TIMEOUT_S)
                if polled:
                    self.meter.ended(len(polled))

    def _producer(self, number: int) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"{self.topic}-{number}",
                **self.order.settings.producer,
            }
        )
        producer.init_transactions(_TIMEOUT_S)
        return producer

    def _consumer(self, group_id: str = "none") -> Consumer:
        """Make one; librdkafka asks for a group even where none is used."""
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group_id,
                **self.order.settings.consumer,
            }
        )

    def _partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, index, 0) for index in range(self.workload.partitions)]

    def _create_topic(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        made = admin.create_topics([NewTopic(self.topic, self.workload.partitions, 1)])
        for each in made.values():
            each.result(_TIMEOUT_S)


def _poll(consumer: Consumer) -> bool:
    """Return whether a record has arrived."""
    message = consumer.poll(_POLL_TIMEOUT_S)
    if message is None:
        return False
    assert message.error() is None, message.error()
    return True
