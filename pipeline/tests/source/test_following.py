"""What a run of a query reads next, on a real cluster, without Spark."""

import socket

import pytest
from cluster import Cluster
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import LongType, StructField, StructType
from source_harness import moved, run

from aiosemel import IsolationLevel, TopicPartition
from pyspark_semel.errors import (
    CheckpointError,
    DataLossError,
    OptionError,
    SchemaError,
    UnknownTopicError,
    UnreachableError,
)
from pyspark_semel.source.columns import COLUMNS
from pyspark_semel.source.offsets import StreamOffsets
from pyspark_semel.source.stream import StreamReader

NOW_MS = 1_764_000_000_000


def test_a_query_begins_at_the_end_and_reads_what_comes(semel: Cluster) -> None:
    topic = semel.topic(partitions=2)
    semel.send(topic, [b"before"], partition=0)
    with run(semel, subscribe=topic) as query:
        initial = query.initial()
        semel.send(topic, [b"after"], partition=0)
        assert query.initial() is initial, "it is asked for twice, and must be the same"
        end = query.latest(initial)
        assert query.offsets(initial, end) == {f"{topic}-0": (1, 2)}
        assert query.latest(end) is end


def test_a_query_that_dies_in_its_first_batch_begins_there_again(semel: Cluster) -> None:
    """Spark stores only the end of it, and asks a restarted query again where it begins."""
    topic = semel.topic()
    with run(semel, subscribe=topic) as query:
        initial = query.initial()
        semel.send(topic, [b"read by the first batch"])
        stored = StreamOffsets.from_json(query.latest(initial).to_json())
    semel.send(topic, [b"later"])
    with run(semel, subscribe=topic) as query:
        assert query.initial().positions == {TopicPartition(topic, 0): 2}
        assert query.offsets(query.initial(), stored) == {f"{topic}-0": (0, 1)}
        assert query.offsets(stored, query.latest(stored)) == {f"{topic}-0": (1, 2)}


def test_a_first_batch_is_planned_even_without_records(semel: Cluster) -> None:
    """Only with it, Spark stores where the query has begun."""
    with run(semel, subscribe=semel.topic()) as query:
        initial = query.initial()
        end = query.latest(initial, minimum=10)
        assert end.to_json() != initial.to_json()
        assert query.ranges(initial, end) == []


def test_open_transactions_are_not_read_past(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"1"])
    partition = TopicPartition(topic, 0)
    producer = semel.client.transactional_producer(f"open-{topic}")

    async def begin() -> None:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"2")

    semel.call(begin())
    semel.send(topic, [b"3"])
    with run(semel, subscribe=topic) as query:
        start = query.latest(query.initial())
        assert start.positions == {partition: 1}
        with run(semel, subscribe=topic, **{"isolation.level": "read_uncommitted"}) as other:
            assert other.latest(start).positions == {partition: 3}
            assert query.latest(other.latest(start)).positions == {partition: 3}, "not back"
        semel.call(producer.abort())
        semel.call(producer.close())
        assert query.latest(start).positions == {partition: 4}, "the marker is an offset too"
        assert semel.values(topic, IsolationLevel.READ_COMMITTED) == [b"1", b"3"]


def test_limits_hold_for_new_partitions_too(semel: Cluster) -> None:
    topic = semel.topic()
    with run(semel, subscribe=topic) as query:
        start = query.latest(query.initial())
        semel.call(semel.client.admin().create_partitions(topic, 2))
        semel.send(topic, [b"x"] * 30, partition=0)
        semel.send(topic, [b"x"] * 10, partition=1)
        end = query.latest(start, maximum=20)
        assert query.offsets(start, end) == {f"{topic}-0": (0, 14), f"{topic}-1": (0, 5)}


def test_too_few_records_wait_until_there_are_more(semel: Cluster) -> None:
    topic = semel.topic()
    with run(semel, subscribe=topic, minOffsetsPerTrigger=3) as query:
        start = query.latest(query.initial())
        semel.send(topic, [b"1", b"2"])
        assert query.latest(start, minimum=3) is start
        assert query.latest(start, minimum=None) is not start, "a trigger may ask for everything"
        semel.send(topic, [b"3"])
        assert query.latest(start, minimum=3).positions == {TopicPartition(topic, 0): 3}


def test_too_few_records_do_not_wait_for_ever(semel: Cluster) -> None:
    topic = semel.topic()
    with run(semel, subscribe=topic, minOffsetsPerTrigger=3, maxTriggerDelay="0s") as query:
        start = query.latest(query.initial())
        semel.send(topic, [b"1"])
        assert query.latest(start, minimum=3).positions == {TopicPartition(topic, 0): 1}


def test_a_run_reads_what_there_is_at_once_before_it_waits(semel: Cluster) -> None:
    """As in Kafka's source: the last trigger before it is longer ago than any delay."""
    topic = semel.topic()
    with run(semel, subscribe=topic, minOffsetsPerTrigger=3) as query:
        start = query.latest(query.initial(), minimum=3)
        semel.send(topic, [b"1"])
        assert query.latest(start, minimum=3) is start, "the first micro-batch was empty"
    with run(semel, subscribe=topic, minOffsetsPerTrigger=3) as query:
        first = query.latest(start, minimum=3)
        assert first.positions == {TopicPartition(topic, 0): 1}
        semel.send(topic, [b"2"])
        assert query.latest(first, minimum=3) is first


def test_what_comes_after_a_run_was_prepared_is_left_to_the_next(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"1", b"2"])
    with run(semel, subscribe=topic, startingOffsets="earliest") as query:
        query.prepare()
        semel.send(topic, [b"3"])
        first = query.latest(query.initial(), maximum=1, minimum=5)
        second = query.latest(first, maximum=1, minimum=5)
        assert second.positions == {TopicPartition(topic, 0): 2}
        assert query.latest(second) is second


def test_topics_that_match_later_are_read_from_their_start(semel: Cluster) -> None:
    first = semel.topic(name="later")
    with run(semel, subscribePattern="later-.*") as query:
        start = query.latest(query.initial())
        second = semel.topic(name="later")
        semel.send(second, [b"1", b"2"])
        end = query.latest(start)
        assert query.offsets(start, end) == {f"{second}-0": (0, 2)}
        assert end.positions.keys() == {TopicPartition(first, 0), TopicPartition(second, 0)}


def test_partitions_that_were_assigned_are_read_and_no_others(semel: Cluster) -> None:
    topic = semel.topic(partitions=3)
    with run(semel, assign=f'{{"{topic}":[0,2]}}') as query:
        assert query.initial().positions == {
            TopicPartition(topic, 0): 0,
            TopicPartition(topic, 2): 0,
        }


@pytest.mark.parametrize("option", ["subscribe", "assign"])
def test_a_missing_thing_is_named(semel: Cluster, option: str) -> None:
    topic = semel.topic()
    wanted, missing = {
        "subscribe": (f"{topic},nowhere", "nowhere"),
        "assign": (f'{{"{topic}":[0,7]}}', f"{topic}-7"),
    }[option]
    with (
        run(semel, **{option: wanted}) as query,
        pytest.raises(UnknownTopicError, match=f"not there in the cluster at .*: {missing};"),
    ):
        query.initial()


def test_where_to_start_must_be_said_of_all_partitions(semel: Cluster) -> None:
    topic = semel.topic(partitions=2)
    offsets = f'{{"{topic}":{{"0":0}}}}'
    with (
        run(semel, subscribe=topic, startingOffsets=offsets) as query,
        pytest.raises(OptionError, match=f"startingOffsets must name all.* lacks {topic}-1"),
    ):
        query.initial()
    offsets = f'{{"{topic}":{{"0":0,"1":0,"2":0}}}}'
    with (
        run(semel, subscribe=topic, startingOffsetsByTimestamp=offsets) as query,
        pytest.raises(OptionError, match=f"names {topic}-2, which are not"),
    ):
        query.initial()


def test_a_misspelt_topic_in_the_offsets_is_named_as_unknown(semel: Cluster) -> None:
    topic, other = semel.topic(), semel.topic()
    for named, said in (
        (f"{topic}s", f"names {topic}s, and the cluster has no topic of that name"),
        (other, f"names {other}, which the source does not read: see whether subscribe or"),
    ):
        for option in ("startingOffsets", "startingOffsetsByTimestamp"):
            with (
                run(semel, subscribe=topic, **{option: f'{{"{named}":{{"0":0}}}}'}) as query,
                pytest.raises(OptionError, match=f"{option} {said}"),
            ):
                query.initial()


def test_a_query_says_by_topic_how_far_it_is_behind(semel: Cluster) -> None:
    """The first unread record was sent in 1970, so the time is known to be long."""
    slow, quick = semel.topic(partitions=2), semel.topic()

    async def send() -> None:
        async with semel.client.producer() as producer:
            for at in range(3):
                await producer.send(slow, b"v", timestamp_ms=1 + at, partition=0)
                await producer.send(slow, b"v", timestamp_ms=NOW_MS, partition=1)

    semel.call(send())
    with run(semel, subscribe=f"{slow},{quick}", startingOffsets="earliest") as query:
        query.latest(query.initial(), maximum=2)
        behind = query.lag.behind
        assert behind[quick] == {"offsets": 0, "records": 0, "milliseconds": 0}
        assert (behind[slow]["offsets"], behind[slow]["records"]) == (4, 4)
        assert behind[slow]["milliseconds"] > NOW_MS
        query.latest(query.initial())
        assert query.lag.behind[slow] == {"offsets": 0, "records": 0, "milliseconds": 0}


def test_a_topic_that_was_deleted_is_a_loss(semel: Cluster) -> None:
    kept, gone = semel.topic(), semel.topic()
    topics = f"{kept},{gone}"
    with run(semel, subscribe=topics) as query, run(semel, subscribe=topics) as other:
        start = query.latest(query.initial())
        semel.send(gone, [b"never read"])
        end = other.latest(start)
        semel.call(semel.client.admin().delete_topic(gone))
        with pytest.raises(DataLossError, match=f"topic {gone}, .* was deleted; to go on without"):
            query.latest(start)
        with pytest.raises(DataLossError, match="was deleted"):
            query.ranges(start, end)
    with run(semel, subscribe=topics, failOnDataLoss=False) as query:
        semel.send(kept, [b"x"])
        assert query.offsets(start, end) == {}
        end = query.latest(start)
        assert query.offsets(start, end) == {f"{kept}-0": (0, 1)}
        assert query.latest(end) is end
    with (
        run(semel, subscribe=topics) as query,
        pytest.raises(UnknownTopicError, match=gone),
    ):
        query.latest(end)


def test_a_topic_that_was_created_again_is_another_one(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"old"] * 5)
    with run(semel, subscribe=topic) as query:
        start = query.latest(query.initial())
        end = moved(start, {TopicPartition(topic, 0): 6})
        semel.call(semel.client.admin().delete_topic(topic))
        semel.call(semel.client.admin().create_topic(topic, partitions=1))
        semel.send(topic, [b"new"] * 5)
        with pytest.raises(DataLossError, match="was deleted and created again"):
            query.latest(start)
        with pytest.raises(DataLossError, match="was deleted and created again"):
            query.ranges(start, end)
    with run(semel, subscribe=topic, failOnDataLoss=False) as query:
        assert query.ranges(start, end) == []
        assert query.offsets(start, query.latest(start)) == {f"{topic}-0": (0, 5)}


def test_a_topic_that_is_not_named_any_more_is_told_from_a_deleted_one(semel: Cluster) -> None:
    first, second = semel.topic(), semel.topic()
    with run(semel, subscribe=f"{first},{second}") as query:
        start = query.latest(query.initial())
    with (
        run(semel, subscribe=first) as query,
        pytest.raises(DataLossError, match=f"topic {second} .* do not name it any more"),
    ):
        query.latest(start)


def test_a_partition_that_is_not_named_any_more_is_a_loss(semel: Cluster) -> None:
    topic = semel.topic(partitions=2)
    left_out, both = f'{{"{topic}":[0]}}', f'{{"{topic}":[0,1]}}'
    semel.send(topic, [b"x"] * 3, partition=1)
    with run(semel, assign=both, startingOffsets="earliest") as query:
        start = query.latest(query.initial())
        semel.send(topic, [b"x"], partition=1)
        end = query.latest(start)
    said = f"{topic}-1 is in the checkpoint, and the options do not name it any more; to go on"
    with run(semel, assign=left_out) as query:
        with pytest.raises(DataLossError, match=said):
            query.latest(start)
        with pytest.raises(DataLossError, match=said):
            query.ranges(start, end)
    with run(semel, assign=both) as query:
        assert query.offsets(start, query.latest(start)) == {f"{topic}-1": (3, 4)}


def test_a_query_goes_on_without_a_partition_if_it_may(semel: Cluster) -> None:
    topic = semel.topic(partitions=2)
    with run(semel, assign=f'{{"{topic}":[0,1]}}') as query:
        start = query.latest(query.initial())
        semel.send(topic, [b"x"], partition=1)
        end = query.latest(start)
    with run(semel, assign=f'{{"{topic}":[0]}}', failOnDataLoss=False) as query:
        assert query.ranges(start, end) == []
        without = query.latest(end, minimum=10)
        assert without.positions == {TopicPartition(topic, 0): 0}, "stored at once: warned once"
        assert query.latest(without) is without


def test_records_that_were_deleted_before_they_were_read_are_a_loss(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"x"] * 5)
    partition = TopicPartition(topic, 0)
    with run(semel, subscribe=topic, startingOffsets="earliest") as query:
        start = query.initial()
        end = query.latest(start)
        semel.call(semel.client.admin().delete_records({partition: 3}))
        with pytest.raises(DataLossError, match=f"{topic}-0 from offset 0 to 2 were removed"):
            query.ranges(start, end)
    with run(semel, subscribe=topic, failOnDataLoss=False) as query:
        assert query.offsets(start, end) == {f"{topic}-0": (3, 5)}


def test_a_log_that_ends_before_the_read_offset_is_a_loss(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"x"] * 5)
    partition = TopicPartition(topic, 0)
    with run(semel, subscribe=topic) as query:
        ahead = moved(query.latest(query.initial()), {partition: 9})
        with pytest.raises(DataLossError, match=r"ends at offset 5, and .* to go on at 9"):
            query.latest(ahead)
    with run(semel, subscribe=topic, failOnDataLoss=False) as query:
        assert query.latest(ahead).positions == {partition: 5}


def test_a_checkpoint_of_another_cluster_is_refused(semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"x"] * 5)
    theirs = StreamOffsets(
        cluster_id="theirs", topic_ids={topic: "id"}, positions={TopicPartition(topic, 0): 3}
    )
    with run(semel, subscribe=topic) as query:
        with pytest.raises(CheckpointError, match=r"of the cluster theirs, .* a new checkpointLoc"):
            query.latest(theirs)
        with pytest.raises(CheckpointError, match=r"set bootstrap\.servers to the cluster"):
            query.ranges(theirs, theirs)
    with run(semel, subscribe=topic, failOnDataLoss=False) as query:
        assert query.ranges(theirs, theirs) == []
        assert query.offsets(theirs, query.latest(theirs)) == {f"{topic}-0": (0, 5)}


@pytest.mark.parametrize("stored", [{"t": {"0": 1}}, {}])
def test_a_checkpoint_of_kafkas_source_is_refused(stored: dict[str, dict[str, object]]) -> None:
    reader = StreamReader({"bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, COLUMNS)
    with pytest.raises(
        CheckpointError, match=r"source of Semel has not written .* startingOffsets"
    ):
        reader.latestOffset(stored, ReadAllAvailable())


def test_an_address_that_is_silent_is_said_so_in_time() -> None:
    """Something listens there, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        brief = {"bootstrap.servers": address, "default.api.timeout.ms": "300"}
        reader = StreamReader({**brief, "subscribe": "t"}, COLUMNS)
        with pytest.raises(UnreachableError, match=rf"cluster at {address} within 300 ms, .* see"):
            reader.initialOffset()


def test_a_reader_says_what_is_wrong_only_when_it_is_used() -> None:
    """What it raises when it is made, Spark does not show."""
    reader = StreamReader({"subscribe": "t", "endingOffsets": "latest"}, COLUMNS)
    with pytest.raises(OptionError, match="endingOffsets is given"):
        reader.getDefaultReadLimit()
    reader = StreamReader({"subscribe": "t"}, StructType([StructField("price", LongType())]))
    with pytest.raises(SchemaError, match="no column 'price'"):
        reader.getDefaultReadLimit()


def test_limits_are_told_to_spark() -> None:
    given = {"bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    assert StreamReader(given, COLUMNS).getDefaultReadLimit() == ReadAllAvailable()
    given["minOffsetsPerTrigger"] = "3"
    assert StreamReader(given, COLUMNS).getDefaultReadLimit() == ReadMinRows(3)
    given["maxOffsetsPerTrigger"] = "5"
    assert StreamReader(given, COLUMNS).getDefaultReadLimit() == ReadMaxRows(5)


def test_a_waiting_run_is_woken_by_what_comes(semel: Cluster) -> None:
    topic = semel.topic(partitions=2)
    with run(semel, subscribe=topic) as query:
        start = query.latest(query.initial())
        assert query.latest(start) is start, "at once"
        assert query.latest(start) is start, "after a while"
        semel.send(topic, [b"x"], partition=1)
        assert query.latest(start).positions[TopicPartition(topic, 1)] == 1


def test_progress_is_told_to_a_group_and_a_group_with_members_does_not_hinder(
    semel: Cluster,
) -> None:
    topic = semel.topic()
    partition = TopicPartition(topic, 0)
    semel.send(topic, [b"x"] * 3)
    group = f"group-of-{topic}"
    options = {"subscribe": topic, "startingOffsets": "earliest", "group.id": group}

    async def committed() -> int | None:
        offsets = await semel.client.admin().list_consumer_group_offsets(group)
        found = offsets.get(partition)
        return None if found is None else found.offset

    with run(semel, **options) as query:
        end = query.latest(query.initial())
        assert semel.call(committed()) == 0, "the first batch is planned, and not done"
        assert query.latest(end) is end
        assert semel.call(committed()) == 3
    consumer = semel.client.consumer(group)
    consumer.subscribe([topic])
    semel.call(consumer.poll(timeout_ms=100))
    semel.send(topic, [b"x"])
    with run(semel, **options) as query:
        assert query.latest(end).positions == {partition: 4}
    semel.call(consumer.close())
