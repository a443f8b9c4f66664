"""What a task reads of its range when things have changed since it was planned; without Spark."""

import pytest
from cluster import Cluster
from source_harness import Option, options_of

from aiosemel import LogRange, SemelClient, TopicPartition
from aiosemel._cluster.retry import Deadline
from aiosemel.errors import MessageTooLargeError
from pyspark_semel.errors import DataLossError
from pyspark_semel.source.columns import schema
from pyspark_semel.source.options import for_batch
from pyspark_semel.source.read import read
from pyspark_semel.source.splits import Task
from semel.broker.v1 import broker_pb2 as broker
from semel_common import ids
from semel_common.wire.methods import PRODUCE
from semel_runtime.testing.payloads import header_bomb


def planned(semel: Cluster, topic: str, start: int, end: int, partition: int = 0) -> LogRange:
    described = semel.call(semel.client.admin().describe_topic(topic))
    return LogRange(
        topic=topic,
        topic_id=described.topic_id,
        partition=partition,
        start_offset=start,
        end_offset=end,
    )


def task_of(semel: Cluster, *ranges: LogRange) -> Task:
    described = semel.call(semel.client.admin().describe_topics(()))
    return Task(cluster_id=described.cluster_id, ranges=ranges)


def values(semel: Cluster, log_range: LogRange, **options: Option) -> list[bytes | None]:
    given: dict[str, Option] = {"subscribe": log_range.topic, "default.api.timeout.ms": 2_000}
    parsed = for_batch(options_of(semel, {**given, **options}))
    batches = read(parsed, schema(include_headers=True), task_of(semel, log_range))
    return [value for batch in batches for value in batch["value"].to_pylist()]


def test_a_range_is_read_to_its_end_and_no_further(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"0", b"1", b"2"])
    assert values(semel, planned(semel, topic, 1, 2)) == [b"1"]


def test_the_ranges_of_one_task_are_read_one_after_the_other(semel: Cluster) -> None:
    topic = semel.topic(partitions=9)
    for partition in range(9):
        semel.send(topic, [f"{partition}.{at}".encode() for at in range(3)], partition=partition)
    ranges = [planned(semel, topic, 0, 3 if at % 2 else 2, partition=at) for at in range(9)]
    parsed = for_batch(options_of(semel, {"subscribe": topic}))
    found = read(parsed, schema(include_headers=False), task_of(semel, *ranges))
    rows = [
        (partition, offset, value)
        for batch in found
        for partition, offset, value in zip(
            *(batch[name].to_pylist() for name in ("partition", "offset", "value")), strict=True
        )
    ]
    assert rows == [
        (at, offset, f"{at}.{offset}".encode())
        for at in range(9)
        for offset in range(3 if at % 2 else 2)
    ]


def test_a_loss_in_one_range_of_a_task_leaves_the_others(semel: Cluster) -> None:
    topic = semel.topic(partitions=3)
    for partition in range(3):
        semel.send(topic, [b"0", b"1"], partition=partition)
    ranges = [planned(semel, topic, 0, 2, partition=at) for at in range(3)]
    semel.call(semel.client.admin().delete_records({TopicPartition(topic, 1): 1}))
    options = options_of(semel, {"subscribe": topic, "failOnDataLoss": False})
    found = read(for_batch(options), schema(include_headers=False), task_of(semel, *ranges))
    assert [value for batch in found for value in batch["value"].to_pylist()] == [
        *(b"0", b"1"),
        b"1",
        *(b"0", b"1"),
    ]


def test_a_process_that_knows_the_topic_with_fewer_partitions_reads_the_new_ones(
    semel: Cluster,
) -> None:
    topic = semel.topic()
    semel.send(topic, [b"old"])
    assert values(semel, planned(semel, topic, 0, 1)) == [b"old"]
    semel.call(semel.client.admin().create_partitions(topic, 2))
    semel.send(topic, [b"new"], partition=1)
    added = planned(semel, topic, 0, 1, partition=1)
    assert values(semel, added, failOnDataLoss=False) == [b"new"]


def test_records_that_were_deleted_since_are_a_loss(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"0", b"1", b"2"])
    semel.call(semel.client.admin().delete_records({TopicPartition(topic, 0): 2}))
    with pytest.raises(DataLossError, match=f"{topic}-0: offset 0 is not within 2 to 3; to go on"):
        values(semel, planned(semel, topic, 0, 3))
    assert values(semel, planned(semel, topic, 0, 3), failOnDataLoss=False) == [b"2"]
    assert values(semel, planned(semel, topic, 0, 2), failOnDataLoss=False) == []


async def _send_bomb(client: SemelClient, topic: str) -> None:
    deadline = Deadline.after_ms(10_000)
    cluster = client._context.cluster
    described = await cluster.cache.topic(topic, deadline)
    partition = broker.ProducePartition(topic=topic, partition=0, batches=[header_bomb()])
    address = cluster.leader_address(ids.TopicPartition(described.topic_id, 0))
    request = broker.ProduceRequest(partitions=[partition])
    await cluster.attempt_at(address, PRODUCE, request, deadline=deadline)


def test_a_batch_that_cannot_be_opened_is_named_and_skipped_by_its_name(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"before"])
    semel.call(_send_bomb(semel.client, topic))
    semel.send(topic, [b"behind"])
    with pytest.raises(MessageTooLargeError, match=f"name {topic}:0:1 in skip_batches"):
        values(semel, planned(semel, topic, 0, 3))
    assert values(semel, planned(semel, topic, 0, 3), skipBatches=f"{topic}:0:1") == [
        b"before",
        b"behind",
    ]


def test_records_that_the_log_does_not_reach_are_a_loss(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"0"])
    with pytest.raises(DataLossError, match="nothing to read at offset 1, and the range goes to 3"):
        values(semel, planned(semel, topic, 0, 3))
    assert values(semel, planned(semel, topic, 0, 3), failOnDataLoss=False) == [b"0"]


@pytest.mark.parametrize("anew", [False, True])
def test_a_topic_that_was_deleted_since_is_a_loss(semel: Cluster, *, anew: bool) -> None:
    topic = semel.topic()
    semel.send(topic, [b"old"])
    log_range = planned(semel, topic, 0, 1)
    semel.call(semel.client.admin().delete_topic(topic))
    if anew:
        semel.call(semel.client.admin().create_topic(topic, partitions=1))
        semel.send(topic, [b"new"])
    with pytest.raises(DataLossError, match="the topic was deleted while it was read"):
        values(semel, log_range)
    assert values(semel, log_range, failOnDataLoss=False) == []
