"""The settings of every client, for each kind of workload, with their reasons: all are here.

Unnamed settings have the client's default. Common to all: acks=all and idempotence, which
transactions ask for; no compression, on either side; read_committed, and no offsets committed
outside transactions. The clients for asyncio, Semel's and aiokafka, run on uvloop. The clients in
Python keep the memory that they free, as the Java virtual machine does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from aiosemel import ConsumerOptions, OffsetReset, ProducerOptions
from bench.workloads import Kind, Workload

Value = str | int | bool
Values = Mapping[str, Value]


class ClientName(StrEnum):
    """A client for which there is a driver."""

    SEMEL = "semel"
    JAVA = "java"
    CONFLUENT = "confluent"
    AIOKAFKA = "aiokafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """By the client's own names."""

    producer: Values = field(default_factory=dict)
    consumer: Values = field(default_factory=dict)


BULK_BATCH_BYTES = 262_144
"""Of Kafka's clients in bulk: a batch of their default size, 16 KiB, holds 160 records of 100 B,
and 15 of 1 KiB."""
BULK_LINGER_MS = 5
"""So that batches fill. Small transactions do not linger: a commit flushes at once anyway."""
POLL_RECORDS = 5_000
"""What one poll returns at most when a topic is read as fast as can be."""


SEMEL_PRODUCER = ProducerOptions()
"""The defaults were chosen for this: batches of 256 KiB, no lingering."""
SEMEL_CONSUMER = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
"""The defaults, read_committed among them, but from the beginning."""


def settings_of(client: ClientName, workload: Workload) -> Settings:
    """Return what a client is told to set; Semel's has its options from here."""
    return _OF[client](workload)


def _semel(_: Workload) -> Settings:
    return Settings()


def _java(workload: Workload) -> Settings:
    producer: dict[str, Value] = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
    if _writes_much(workload):
        producer |= {"linger.ms": BULK_LINGER_MS, "batch.size": BULK_BATCH_BYTES}
        # A send must not wait for room: the default of 32 MiB is little more than one transaction.
        producer |= {"buffer.memory": 134_217_728}
    consumer: dict[str, Value] = {
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "max.poll.records": _poll_records(workload),
    }
    return Settings(producer=producer, consumer=consumer)


def _confluent(workload: Workload) -> Settings:
    # With reports, librdkafka would call back into Python for each record. Log warnings and worse.
    producer: dict[str, Value] = {
        "linger.ms": 0,
        "delivery.report.only.error": True,
        "log_level": 4,
    }
    if _writes_much(workload):
        producer |= {"linger.ms": BULK_LINGER_MS, "batch.size": BULK_BATCH_BYTES}
        # 100,000 messages by default: one transaction would fill the queue.
        producer |= {"queue.buffering.max.messages": 1_000_000}
    consumer: dict[str, Value] = {
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        # When the queue of fetched records is full, look again soon, and not a second later.
        "fetch.queue.backoff.ms": 5,
    }
    return Settings(producer=producer, consumer=consumer)


def _aiokafka(workload: Workload) -> Settings:
    producer: dict[str, Value] = {"acks": "all", "linger_ms": 0}
    if _writes_much(workload):
        producer |= {"max_batch_size": BULK_BATCH_BYTES}
    consumer: dict[str, Value] = {
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    return Settings(producer=producer, consumer=consumer)


def _writes_much(workload: Workload) -> bool:
    return workload.kind is Kind.BULK or workload.records_per_transaction >= POLL_RECORDS


def _poll_records(workload: Workload) -> int:
    if workload.kind is Kind.TRANSFORM:
        return workload.records_per_transaction
    return POLL_RECORDS


_OF: Mapping[ClientName, Callable[[Workload], Settings]] = {
    ClientName.SEMEL: _semel,
    ClientName.JAVA: _java,
    ClientName.CONFLUENT: _confluent,
    ClientName.AIOKAFKA: _aiokafka,
}
