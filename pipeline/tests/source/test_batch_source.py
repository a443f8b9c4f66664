"""Batch reads of real topics with a real Spark: every option, and every refusal."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from cluster import Cluster
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, lit
from source_harness import Option, batch, options_of, values

from aiosemel import ProducerOptions, TopicPartition
from pyspark_semel.errors import DataLossError
from pyspark_semel.source.filters import Narrowing
from pyspark_semel.source.logs import Logs
from pyspark_semel.source.options import for_batch
from pyspark_semel.source.plan import plan

HOUR_MS = 3_600_000
NOON_MS = 1_767_268_800_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def send_at(semel: Cluster, topic: str, times_ms: list[int]) -> None:
    """Store a record at each of some times, each with a header."""

    async def send() -> None:
        async with semel.client.producer() as producer:
            for at_ms in times_ms:
                headers = [("h", b"1"), ("h", None)]
                value = str(at_ms).encode()
                await producer.send(topic, value, headers=headers, timestamp_ms=at_ms, partition=0)
            await producer.send(topic, b"bare", timestamp_ms=NOON_MS, partition=1)

    semel.call(send())


@pytest.fixture(scope="module")
def hours(semel: Cluster) -> str:
    """A topic with records at one, two and three o'clock, and, in partition 1, at noon."""
    topic = semel.topic(partitions=2, name="hours")
    send_at(semel, topic, [NOON_MS + hour * HOUR_MS for hour in (1, 2, 3)])
    return topic


@pytest.fixture(scope="module")
def ten(semel: Cluster) -> str:
    """A topic with ten records in its only partition."""
    topic = semel.topic(name="ten")
    semel.send(topic, [str(number).encode() for number in range(10)])
    return topic


def planned(semel: Cluster, **options: Option) -> list[int]:
    """Return the offsets that a batch would read, of topics with one partition."""
    given = for_batch(options_of(semel, options))
    tasks = semel.call(plan(Logs(semel.client, given), given, Narrowing()))
    ranges = [each for task in tasks for each in task.ranges]
    return [at for each in ranges for at in range(each.start_offset, each.end_offset)]


def digits(*numbers: int) -> list[bytes]:
    return [str(number).encode() for number in numbers]


def test_all_records_of_a_topic_are_read_with_kafkas_columns(
    spark: SparkSession, semel: Cluster
) -> None:
    topic = semel.topic(partitions=2)
    semel.send(topic, [b"a", None], keys=[b"k", None], partition=0)
    semel.send(topic, [b"c"], partition=1)
    frame = batch(spark, semel, subscribe=topic)
    rows = frame.drop("timestamp").orderBy("partition", "offset").collect()
    assert frame.columns == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType"),
    ]
    assert [tuple(row) for row in rows] == [
        (b"k", b"a", topic, 0, 0, 0),
        (None, None, topic, 0, 1, 0),
        (None, b"c", topic, 1, 0, 0),
    ]


def test_headers_and_times_are_read_as_they_were_sent(
    spark: SparkSession, semel: Cluster, hours: str
) -> None:
    frame = batch(spark, semel, subscribe=hours, includeHeaders=True)
    rows = frame.orderBy("timestamp").collect()
    assert [row.timestamp.hour for row in rows] == [12, 13, 14, 15]
    assert rows[0].timestamp == NOON.replace(tzinfo=None), "in the session's zone"
    assert rows[0].headers is None
    assert [tuple(pair) for pair in rows[1].headers] == [("h", b"1"), ("h", None)]


def test_many_topics_and_many_batches_are_read_once_each(
    spark: SparkSession, semel: Cluster
) -> None:
    topics = [semel.topic(partitions=2, name="many") for _ in range(2)]
    small = ProducerOptions(batch_size_bytes=2_000)

    async def send() -> None:
        async with semel.client.producer(small) as producer:
            for topic in topics:
                await producer.send_columns(topic, [b"x" * 20] * 20_000)

    semel.call(send())
    options: dict[str, Option] = {
        "subscribePattern": "many-[0-9]+",
        "kafka.max.partition.fetch.bytes": 50_000,
    }
    counted = batch(spark, semel, **options).groupBy("topic").agg(count(lit(1)), count("value"))
    assert sorted(map(tuple, counted.collect())) == [(each, 20_000, 20_000) for each in topics]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"TEN":{"0":4}}', "endingOffsets": '{"TEN":{"0":6}}'}, (4, 5)),
        ({"startingOffsets": '{"TEN":{"0":-2}}', "endingOffsets": '{"TEN":{"0":-1}}'}, range(10)),
        ({"startingOffsets": '{"TEN":{"0":10}}'}, ()),
        ({"assign": '{"TEN":[0]}', "startingOffsets": "earliest"}, range(10)),
    ],
)
def test_a_batch_reads_from_one_offset_to_before_another(
    spark: SparkSession, semel: Cluster, ten: str, options: dict[str, str], expected: range
) -> None:
    named = {name: text.replace("TEN", ten) for name, text in options.items()}
    subscription = {} if "assign" in named else {"subscribe": ten}
    assert values(batch(spark, semel, **subscription, **named)) == digits(*expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingTimestamp": NOON_MS + 2 * HOUR_MS}, None),
        ({"startingTimestamp": NOON_MS + 2 * HOUR_MS, "STRATEGY": "latest"}, [14, 15]),
        ({"startingTimestamp": NOON_MS, "endingTimestamp": NOON_MS + 2 * HOUR_MS}, [12, 13]),
        ({"startingOffsetsByTimestamp": {"0": NOON_MS + HOUR_MS + 1, "1": NOON_MS}}, [12, 14, 15]),
        ({"endingOffsetsByTimestamp": {"0": NOON_MS + HOUR_MS, "1": NOON_MS + 1}}, [12]),
    ],
)
def test_a_batch_reads_from_one_time_to_before_another(
    spark: SparkSession,
    semel: Cluster,
    hours: str,
    options: dict[str, dict[str, int] | int | str],
    expected: list[int] | None,
) -> None:
    named = {
        name.replace("STRATEGY", "startingOffsetsByTimestampStrategy"): str({hours: at}).replace(
            "'", '"'
        )
        if isinstance(at, dict)
        else at
        for name, at in options.items()
    }
    frame = batch(spark, semel, subscribe=hours, **named)
    if expected is None:
        with pytest.raises(PySparkException, match=f"no record of {hours}-1 is that late"):
            frame.collect()
    else:
        assert sorted(row.timestamp.hour for row in frame.collect()) == expected


@pytest.mark.parametrize(
    ("options", "tasks"),
    [({}, 1), ({"minPartitions": 3}, 3), ({"maxRecordsPerPartition": 2}, 5)],
)
def test_a_large_partition_is_split_over_tasks(
    spark: SparkSession, semel: Cluster, ten: str, options: dict[str, int], tasks: int
) -> None:
    frame = batch(spark, semel, subscribe=ten, **options)
    assert frame.rdd.getNumPartitions() == tasks
    assert values(frame) == digits(*range(10))


def test_the_end_of_a_batch_is_that_of_its_load(spark: SparkSession, semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, [b"1"])
    frame = batch(spark, semel, subscribe=topic)
    assert frame.count() == 1
    semel.send(topic, [b"2"])
    assert frame.count() == 1
    assert batch(spark, semel, subscribe=topic).count() == 2


def test_a_topic_without_records_is_a_frame_without_rows(
    spark: SparkSession, semel: Cluster
) -> None:
    assert batch(spark, semel, subscribe=semel.topic(partitions=3)).collect() == []
    assert batch(spark, semel, subscribePattern="no such topic").collect() == []


def test_open_and_aborted_transactions_are_read_only_if_asked(
    spark: SparkSession, semel: Cluster
) -> None:
    topic = semel.topic()

    async def send() -> None:
        async with semel.client.transactional_producer(f"of-{topic}") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort()
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"committed")
            await producer.commit(wait_until_visible=True)

    semel.call(send())
    assert values(batch(spark, semel, subscribe=topic)) == [b"committed"]
    frame = batch(spark, semel, subscribe=topic, **{"kafka.isolation.level": "read_uncommitted"})
    assert values(frame) == [b"aborted", b"committed"]


def test_only_the_columns_of_a_given_schema_are_made(
    spark: SparkSession, semel: Cluster, ten: str
) -> None:
    options = options_of(semel, {"subscribe": ten})
    reader = spark.read.format("semel").options(**options)
    rows = reader.schema("offset long, value binary").load().collect()
    assert [tuple(row) for row in rows] == list(enumerate(digits(*range(10))))


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    conf = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(conf, "true")
    yield
    spark.conf.unset(conf)


@pytest.mark.usefixtures("pushdown")
def test_filters_on_offset_partition_and_time_read_less(
    spark: SparkSession, semel: Cluster, hours: str
) -> None:
    frame = batch(spark, semel, subscribe=hours, pushdown=True, maxRecordsPerPartition=1)
    assert frame.rdd.getNumPartitions() == 4
    late = frame.where(col("timestamp") > lit(NOON).cast("timestamp"))
    for narrowed, tasks, records in (
        (frame.where("partition = 0 and offset >= 1"), 2, 2),
        (frame.where("offset in (0, 7)"), 4, 2),
        (frame.where("partition = 9"), 1, 0),
        (late.where("topic is not null"), 4, 3),
        (late.where("timestamp > timestamp '2026-01-01 14:30:00'"), 1, 1),
    ):
        assert narrowed.rdd.getNumPartitions() == tasks, narrowed
        assert narrowed.count() == records


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscibe": "t"}, "unknown option 'subscibe': did you mean subscribe"),
        ({}, "one of subscribe, subscribePattern, assign is needed"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "cannot be latest"),
        ({"subscribe": "t", "maxOffsetsPerTrigger": 5}, "no meaning in a batch"),
        ({"subscribe": "nowhere,ten"}, "not there in the cluster at .*nowhere"),
        ({"subscribe": "a b"}, "not there in the cluster at .*a b"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(
    spark: SparkSession, semel: Cluster, options: dict[str, str | int], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        batch(spark, semel, **options).collect()


@pytest.mark.parametrize(
    ("schema", "said"),
    [("price double", "no column 'price'"), ("value string", "value is of type binary, not str")],
)
def test_a_schema_that_the_source_cannot_fill_is_refused(
    spark: SparkSession, semel: Cluster, ten: str, schema: str, said: str
) -> None:
    reader = spark.read.format("semel").options(**options_of(semel, {"subscribe": ten}))
    with pytest.raises(PySparkException, match=said):
        reader.schema(schema).load().collect()


def test_an_address_where_nothing_listens_is_said_so_in_time(
    spark: SparkSession, semel: Cluster
) -> None:
    options: dict[str, Option] = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 300}
    with pytest.raises(PySparkException, match=r"nothing listens at 127\.0\.0\.1:1 \("):
        batch(spark, semel, subscribe="t", **options).collect()


def test_offsets_that_the_log_does_not_hold_are_a_loss(spark: SparkSession, semel: Cluster) -> None:
    topic = semel.topic()
    semel.send(topic, digits(*range(6)))
    semel.call(semel.client.admin().delete_records({TopicPartition(topic, 0): 2}))
    for options in (
        {"startingOffsets": f'{{"{topic}":{{"0":1}}}}'},
        {"endingOffsets": f'{{"{topic}":{{"0":9}}}}'},
    ):
        with pytest.raises(PySparkException, match="its log holds 2 to 6; to go on without"):
            batch(spark, semel, subscribe=topic, **options).collect()
        frame = batch(spark, semel, subscribe=topic, failOnDataLoss=False, **options)
        assert values(frame) == digits(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ({"endingOffsets": 1}, ()),
        ({"startingOffsets": 1, "endingOffsets": 1}, ()),
        ({"startingOffsets": 9}, ()),
        ({"startingOffsets": 8, "endingOffsets": 9}, ()),
        ({"startingOffsets": 1, "endingOffsets": 4}, (2, 3)),
    ],
)
def test_a_batch_of_which_the_log_holds_nothing_is_a_loss_and_no_mistake(
    semel: Cluster, options: dict[str, int], held: tuple[int, ...]
) -> None:
    topic = semel.topic()
    semel.send(topic, digits(*range(6)))
    semel.call(semel.client.admin().delete_records({TopicPartition(topic, 0): 2}))
    given = {name: f'{{"{topic}":{{"0":{at}}}}}' for name, at in options.items()}
    with pytest.raises(DataLossError, match=r"2 to 6; to go on .* a batch with other offsets"):
        planned(semel, subscribe=topic, **given)
    assert planned(semel, subscribe=topic, failOnDataLoss=False, **given) == list(held)


def test_a_time_after_the_offset_to_end_at_is_a_batch_without_records(
    semel: Cluster, hours: str
) -> None:
    given: dict[str, Option] = {
        "startingTimestamp": NOON_MS + 2 * HOUR_MS,
        "startingOffsetsByTimestampStrategy": "latest",
        "endingOffsets": f'{{"{hours}":{{"0":0,"1":0}}}}',
    }
    assert planned(semel, subscribe=hours, **given) == []
