"""Accumulators to put records into, and a broker of all partitions."""

from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch
from aiosemel._producer.batching.batch_splitting import cut
from aiosemel._producer.batching.limits import Limits
from aiosemel.errors import MessageTooLargeError
from semel_common.ids import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
LIMITS = Limits(
    batch_size_bytes=30,
    request_size_max_bytes=60,
    memory_bytes=1_000,
    in_flight_max=5,
    delivery_timeout_ms=100,
)
LARGEST_BYTES = 1_000
REFUSED = MessageTooLargeError("refused")


def everywhere(_: TopicPartition) -> str:
    return "broker"


def made(*, transactional: bool = False, limits: Limits = LIMITS) -> Accumulator:
    accumulator = Accumulator(limits, transactional=transactional, cut=cut)
    accumulator.start_epoch(7, 3)
    return accumulator


def append(
    accumulator: Accumulator,
    partition: TopicPartition = P0,
    size: int = 10,
    value: bytes = b"v",
    now_ms: float = 0,
) -> Batch:
    batch = accumulator.open_batch(partition, size)
    if batch is None:
        limit_bytes = accumulator.batch_limit(partition.topic_id, LARGEST_BYTES)
        batch = accumulator.begin_batch(partition, now_ms, limit_bytes)
    accumulator.append(batch, value=value, key=None, timestamp_ms=1, headers=(), size_bytes=size)
    return batch


def fill(accumulator: Accumulator, batches: int, partition: TopicPartition = P0) -> list[Batch]:
    """Append full batches."""
    return [append(accumulator, partition, size=30) for _ in range(batches)]


def drained(accumulator: Accumulator) -> list[Batch]:
    return [batch for request in accumulator.drain(everywhere) for batch in request.batches]
