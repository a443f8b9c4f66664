"""How partitions stand, in numbers: what operators watch."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.records import OpenTransaction


class PartitionStanding(Struct, frozen=True, kw_only=True):
    """One partition."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    size_bytes: int
    """About what it takes in the store."""
    producers: int
    open_transactions: int
    holder: OpenTransaction | None
    """The open transaction that holds the last stable offset."""


def standing(logs: Iterable[PartitionLog]) -> Iterator[PartitionStanding]:
    """Describe logs."""
    for log in logs:
        yield PartitionStanding(
            topic=log.identity.topic,
            partition=log.partition.partition,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            last_stable_offset=log.last_stable_offset,
            size_bytes=log.segments.total_bytes,
            producers=len(log.producers),
            open_transactions=len(log.open_transactions),
            holder=next(iter(log.open_transactions.values()), None),
        )
