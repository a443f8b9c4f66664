"""Partitions as operators see them: open transactions, producers, and the holder of the LSO."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import nlargest, nsmallest

from msgspec import Struct

from semel_broker.machine.answers import answer_of
from semel_broker.machine.gauges import PartitionStanding, standing
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.records import OpenTransaction, ProducerState, Record
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_runtime.machine import Result
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
    """The holder of the last stable offset, others with open transactions, then the latest ones."""
    producer_count: int


class Descriptions:
    """Describes the partitions that are led here."""

    def __init__(self, logs: LogDirectory) -> None:
        self._logs = logs

    def describe_producers(
        self, partitions: Sequence[TopicPartition], limit: int
    ) -> Result[list[PartitionProducers | SemelError], Record]:
        """Return the producers of each partition, or the reason why this broker cannot tell."""
        return Result(
            [
                answer_of(partial(self._describe_producers, partition, limit))
                for partition in partitions
            ]
        )

    def describe_producers_behind(
        self, partition: TopicPartition, producer_id: int, limit: int
    ) -> Result[PartitionProducers | SemelError, Record]:
        """Return a partition's producers behind an id, or why that cannot be said here."""
        find = partial(self._logs.find_by_id, partition)
        return Result(answer_of(lambda: producers_behind(find(), producer_id, limit)))

    def _describe_producers(self, partition: TopicPartition, limit: int) -> PartitionProducers:
        return producers_of(self._logs.find_by_id(partition), limit)

    def standing(self) -> Iterator[PartitionStanding]:
        """Yield how the partitions led here stand now, durable or not: for people only."""
        return standing(self._logs.led_here())


def open_transactions_of(logs: Iterable[PartitionLog]) -> Iterator[OpenSince[TopicPartition]]:
    """Yield the open transactions of partitions."""
    for log in logs:
        for open_transaction in log.open_transactions.values():
            transaction = OpenTransactionAt(
                log.partition, open_transaction.producer_id, open_transaction.producer_epoch
            )
            yield OpenSince(open_transaction.start_ms, transaction, open_transaction.first_offset)


def producers_of(log: PartitionLog, limit: int) -> PartitionProducers:
    """Describe a partition with so many producers at most."""
    by_first_offset = dict.fromkeys(
        open_transaction.producer_id for open_transaction in log.open_transactions.values()
    )
    chosen = [log.producers[each] for each in by_first_offset][:limit]
    others = (producer for producer in log.producers.values() if not producer.open_epochs)
    chosen += nlargest(limit - len(chosen), others, key=lambda each: each.last_timestamp_ms)
    return _partition_with(log, chosen)


def producers_behind(log: PartitionLog, producer_id: int, limit: int) -> PartitionProducers:
    """Describe a partition with its producers behind an id, in the order of their ids."""
    chosen = nsmallest(limit, (producer for producer in log.producers if producer > producer_id))
    return _partition_with(log, [log.producers[batch] for batch in chosen])


def _partition_with(log: PartitionLog, chosen: list[ProducerState]) -> PartitionProducers:
    return PartitionProducers(
        partition=log.partition,
        high_watermark=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        producers=tuple(_described(log, batch) for batch in chosen),
        producer_count=len(log.producers),
    )


def _described(log: PartitionLog, state: ProducerState) -> DescribedProducer:
    return DescribedProducer(
        state=state,
        open_transactions=tuple(
            log.open_transactions[state.producer_id, epoch] for epoch in state.open_epochs
        ),
    )
