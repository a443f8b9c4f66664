"""Ids name the instance in charge; keys find the partition that Kafka's clients would choose."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel_common.ids import (
    PRODUCER_IDS_PER_PARTITION,
    TRANSACTION_LOG_PARTITIONS_MAX,
    GroupId,
    Participant,
    TopicPartition,
    owner_of,
    participant_sort_key,
    partition_for_id,
    producer_id_counter_of,
    producer_id_counters_start,
    producer_id_of,
    transaction_log_partition_of,
)
from semel_common.record_batches.partitioner import murmur2, partition_for_key

COUNTERS = st.integers(1, PRODUCER_IDS_PER_PARTITION)
PARTITIONS = st.integers(0, TRANSACTION_LOG_PARTITIONS_MAX - 1)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # From Kafka's UtilsTest.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_agrees_with_kafkas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % (1 << 32)


@given(st.binary(max_size=40), st.integers(1, 1_000))
def test_a_key_has_a_partition_within_the_topic(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for_key(key, partitions) < partitions


@given(PARTITIONS, COUNTERS)
def test_a_producer_id_names_the_partition_that_gave_it(partition: int, counter: int) -> None:
    producer_id = producer_id_of(partition, counter)
    assert 0 < producer_id < 1 << 63
    assert transaction_log_partition_of(producer_id) == partition
    assert producer_id_counter_of(producer_id) == counter


@given(st.text())
def test_the_counters_of_a_cluster_have_room_behind_their_start(cluster_id: str) -> None:
    start = producer_id_counters_start(cluster_id)
    assert 0 <= start < PRODUCER_IDS_PER_PARTITION // 8 + 1
    assert start == producer_id_counters_start(cluster_id)


def test_the_counters_of_clusters_start_far_from_one_another() -> None:
    starts = sorted(producer_id_counters_start(f"cluster {number}") for number in range(1_000))
    assert min(after - before for before, after in pairwise(starts)) > 1_000_000


def test_the_start_of_a_clusters_counters_is_for_ever() -> None:
    assert producer_id_counters_start("cluster") == 6_590_072_270_748


def test_every_partition_of_ids_has_an_owner() -> None:
    partition = partition_for_id("pizza-income-1", 50)
    assert 0 <= partition < 50
    assert owner_of(partition, 2) == partition % 2


def test_participants_are_ordered_groups_first() -> None:
    mixed: list[Participant] = [
        TopicPartition("b", 0),
        GroupId("z"),
        TopicPartition("a", 1),
        TopicPartition("a", 0),
    ]
    assert sorted(mixed, key=participant_sort_key) == [
        GroupId("z"),
        TopicPartition("a", 0),
        TopicPartition("a", 1),
        TopicPartition("b", 0),
    ]
