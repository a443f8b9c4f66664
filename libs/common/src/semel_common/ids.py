"""The form of ids: an id alone says which instance is in charge of it."""

from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from semel_common.record_batches.partitioner import partition_for_key

NO_PRODUCER_ID = 0
"""The producer id of records that are written without idempotence; never given to a producer."""

_COUNTER_BITS = 48
PRODUCER_IDS_PER_PARTITION = (1 << _COUNTER_BITS) - 1
TRANSACTION_LOG_PARTITIONS_MAX = 1 << 15
_COUNTER_START_BITS = 45
"""A cluster's counters start in the first eighth; the other counters are room to count on."""


class InternalTopic(StrEnum):
    """What is a topic in Kafka, and is none here; its partitions are led and moved like others."""

    CONSUMER_OFFSETS = "__consumer_offsets"
    """Groups, led by group coordinators."""
    TRANSACTION_STATE = "__transaction_state"
    """The transaction log, led by coordinators."""


class TopicPartition(NamedTuple):
    """A partition, by the id of its topic: a topic made again under an old name is another."""

    topic_id: str
    partition: int


class GroupId(NamedTuple):
    """A consumer group, as a participant of transactions."""

    group_id: str


Participant = TopicPartition | GroupId
"""What a transaction can write to."""


def participant_sort_key(participant: Participant) -> tuple[int, str, int]:
    """Order participants the same way everywhere: groups first, then partitions."""
    match participant:
        case TopicPartition(topic_id, partition):
            return (1, topic_id, partition)
        case GroupId(group_id):
            return (0, group_id, 0)


def producer_id_of(transaction_log_partition: int, counter: int) -> int:
    """Build the producer id with this counter of a transaction-log partition."""
    assert 0 <= transaction_log_partition < TRANSACTION_LOG_PARTITIONS_MAX
    assert 0 < counter <= PRODUCER_IDS_PER_PARTITION
    return (transaction_log_partition << _COUNTER_BITS) | counter


def transaction_log_partition_of(producer_id: int) -> int:
    """Return the transaction-log partition that gave a producer id."""
    return producer_id >> _COUNTER_BITS


def producer_id_counter_of(producer_id: int) -> int:
    """Return the counter of a producer id: the next id of the partition has the next counter."""
    return producer_id & PRODUCER_IDS_PER_PARTITION


def producer_id_counters_start(cluster_id: str) -> int:
    """Return the counter behind which a cluster's producer ids begin.

    It is spread by the cluster's id, so that two clusters hardly ever give out the same ids: what
    a producer of one has sent is no repeat in the other.
    """
    digest = blake2b(cluster_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> (64 - _COUNTER_START_BITS)


def partition_for_id(name: str, partition_count: int) -> int:
    """Return the partition in charge of a transactional id or a group id."""
    return partition_for_key(name.encode(), partition_count)


def owner_of(partition: int, instance_count: int) -> int:
    """Return the instance that leads a transaction-log or group partition until it is moved."""
    return partition % instance_count
