"""Which broker leads which partition of a new topic."""

from collections.abc import Mapping, Sequence

from semel_runtime.cluster.metadata_image import PartitionLeader


def spread(
    partition_count: int, *, brokers: Sequence[int], led: Mapping[int, int], start: int
) -> tuple[PartitionLeader, ...]:
    """Spread partitions over brokers: evenly within the topic, the rest to the least loaded ones.

    ``led`` counts the partitions that each broker leads already. Between equals the order rotates
    with ``start``, so that small topics do not all begin at the same broker.
    """
    first = start % len(brokers)
    rotated = [*brokers[first:], *brokers[:first]]
    order = sorted(rotated, key=lambda broker_id: led.get(broker_id, 0))
    return tuple(PartitionLeader(order[i % len(order)], 0) for i in range(partition_count))
