"""What operators ask of partitions: what is open, who writes, and who holds the LSO."""

from collections.abc import Iterable
from heapq import nlargest, nsmallest

from msgspec import Struct

from semel_broker.machine.log import PartitionLog
from semel_broker.machine.records import OpenTransaction, ProducerState
from semel_common.ids import TopicPartition
from semel_runtime.participant.inquiry import OpenSince, OpenTransactionAt


class DescribedProducer(Struct, frozen=True, kw_only=True):
    """A producer, with its transactions that are open in one partition, the oldest first."""

    state: ProducerState
    open_transactions: tuple[OpenTransaction, ...]


class PartitionProducers(Struct, frozen=True, kw_only=True):
    """A partition, with some of its producers."""

    partition: TopicPartition
    high_watermark: int
    last_stable_offset: int
    producers: tuple[DescribedProducer, ...]
    """Who holds the last stable offset, others with open transactions, then the latest ones."""
    producer_count: int


def open_since(
    logs: Iterable[PartitionLog], open_since_ms: int, limit: int
) -> list[OpenSince[TopicPartition]]:
    """Return the oldest of the transactions that are open since a time or longer."""
    return nsmallest(
        limit,
        (
            OpenSince(
                each.start_ms,
                OpenTransactionAt(log.partition, each.producer_id, each.producer_epoch),
                each.first_offset,
            )
            for log in logs
            for each in log.open_transactions.values()
            if each.start_ms <= open_since_ms
        ),
    )


def producers_of(log: PartitionLog, limit: int) -> PartitionProducers:
    """Describe a partition with so many producers at most."""
    by_first_offset = dict.fromkeys(each.producer_id for each in log.open_transactions.values())
    chosen = [log.producers[each] for each in by_first_offset][:limit]
    others = (each for each in log.producers.values() if not each.open_epochs)
    chosen += nlargest(limit - len(chosen), others, key=lambda each: each.last_timestamp_ms)
    return PartitionProducers(
        partition=log.partition,
        high_watermark=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        producers=tuple(_described(log, each) for each in chosen),
        producer_count=len(log.producers),
    )


def _described(log: PartitionLog, state: ProducerState) -> DescribedProducer:
    return DescribedProducer(
        state=state,
        open_transactions=tuple(
            log.open_transactions[state.producer_id, epoch] for epoch in state.open_epochs
        ),
    )
