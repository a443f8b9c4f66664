"""The options of the source have Kafka's names and meanings; what is wrong is named."""

import pytest

from aiosemel import IsolationLevel, OffsetSpec, TopicPartition
from pyspark_semel.errors import OptionError
from pyspark_semel.source.bounds import AtOffsets, AtTimestamp, AtTimestamps
from pyspark_semel.source.options import for_batch, for_stream, parse
from pyspark_semel.source.subscriptions import Partitions, Pattern, Topics, subscribes

ADDRESS = {"bootstrap.servers": "a:1"}
PARTITION = TopicPartition("t", 0)


def given(**options: str) -> dict[str, str]:
    return {**ADDRESS, "subscribe": "t", **options}


def test_nothing_but_a_subscription_is_needed() -> None:
    options = parse(given())
    assert options.subscription == Topics(("t",))
    assert options.isolation_level is IsolationLevel.READ_COMMITTED
    assert options.fail_on_data_loss
    assert (options.starting, options.ending) == (None, OffsetSpec.LATEST)


def test_topics_are_subscribed_to_by_name_by_pattern_or_by_partition() -> None:
    assert parse(given(subscribe=" a, b ,a")).subscription == Topics(("a", "b"))
    pattern = parse({**ADDRESS, "subscribePattern": " a.* "}).subscription
    assert isinstance(pattern, Pattern)
    assert [subscribes(pattern, each) for each in ("a", "ab", "ba")] == [True, True, False]
    assigned = parse({**ADDRESS, "assign": '{"t":[0,2]}'}).subscription
    assert assigned == Partitions(frozenset({PARTITION, TopicPartition("t", 2)}))
    assert subscribes(assigned, "t")
    assert not subscribes(Topics(("a",)), "t")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "one of subscribe, subscribePattern, assign is needed, and none is given"),
        ({"subscribe": "a", "assign": "{}"}, "subscribe and assign are given"),
        ({"subscribe": " , "}, "subscribe names no topic"),
        ({"subscribePattern": "("}, "no regular expression"),
        ({"subscribePattern": " "}, "subscribePattern is empty"),
        ({"subscribePattern": "a{99999999999}"}, "no regular expression"),
        ({"assign": "t"}, "assign is 't', not of the form"),
        ({"assign": "{}"}, "not of the form"),
        ({"assign": '{"t":[0,"1"]}'}, "not of the form"),
        ({"assign": '{"t":0}'}, "not of the form"),
        ({"assign": '{"flights":[0],"x":1}'}, "1 of topic 'x' is not a list of partitions"),
        ({"assign": '{"t":[]}'}, "it names no partition"),
    ],
)
def test_a_subscription_that_says_nothing_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse({**ADDRESS, **options})


def test_a_timestamp_for_all_goes_before_timestamps_and_those_before_offsets() -> None:
    options = given(startingOffsets="earliest")
    assert parse(options).starting is OffsetSpec.EARLIEST
    options["startingOffsetsByTimestamp"] = '{"t":{"0":7}}'
    assert parse(options).starting == AtTimestamps("startingOffsetsByTimestamp", {PARTITION: 7})
    options["startingTimestamp"] = "9"
    assert parse(options).starting == AtTimestamp("startingTimestamp", 9)


def test_offsets_may_be_the_ends_of_the_log_in_words_or_numbers() -> None:
    assert parse(given(startingOffsets=" Latest ")).starting is OffsetSpec.LATEST
    options = parse(given(startingOffsets='{"t":{"0":-2}}', endingOffsets='{"t":{"0":-1}}'))
    assert options.starting == AtOffsets("startingOffsets", {PARTITION: -2})
    assert options.ending == AtOffsets("endingOffsets", {PARTITION: -1})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("startingOffsets", "max-timestamp", "not of the form"),
        ("startingOffsets", "[]", "is not an object of topics"),
        ("startingOffsets", '{"t":5}', "5 of topic 't' is not an object"),
        ("startingOffsets", '{"t":{"٣":5}}', "is not a partition"),
        ("startingOffsets", '{"t":{"0":1,"00":2}}', "partition 0 of topic 't' is there twice"),
        ("startingOffsets", '{"t":{},"t":{"0":1}}', "key 't' is there twice"),
        ("startingOffsets", '{"t":{"0":NaN}}', "NaN is not JSON"),
        ("startingOffsets", '{"t":{"0":true}}', "True of t-0 is not a whole number"),
        ("startingOffsets", '{"t":{"0":-3}}', "startingOffsets of t-0 is -3, less than -2"),
        ("startingOffsetsByTimestamp", '{"t":{"0":-1}}', "t-0 is -1, less than 0"),
        ("startingTimestamp", "yesterday", "not a whole number"),
        ("startingOffsetsByTimestampStrategy", "earliest", "neither error nor latest"),
        ("startingOffsetsByTimestampStrategy", "", "Strategy is empty"),
        ("isolation.level", "serializable", "read_committed or read_uncommitted"),
        ("isolation.level", "", "isolation.level is empty"),
        ("kafka.group.id", " ", "group.id is empty"),
        ("maxTriggerDelay", "soon", "no time such as"),
        ("maxTriggerDelay", "5 parsecs", "no time such as"),
        ("maxTriggerDelay", "9" * 5_000, "no time such as"),
        ("minPartitions", "9" * 5_000, "not a whole number"),
        ("minPartitions", "1_000", "not a whole number"),
        ("max.partition.fetch.bytes", "0", "less than 1"),
        ("max.partition.fetch.bytes", "3000000000", "more than 2147483647"),
        ("startingTimestamp", "9223372036854775808", "more than 9223372036854775807"),
        ("startingOffsetsByTimestamp", '{"t":{"0":9223372036854775808}}', "of t-0 is .*, more"),
        ("subscibe", "t", "did you mean subscribe"),
        ("kafka.auto.offset.reset", "earliest", "give startingOffsets"),
        ("groupIdPrefix", "p", "no consumer group is needed"),
        ("fetchOffset.numRetries", "3", "give default.api.timeout.ms"),
    ],
)
def test_a_value_without_meaning_is_refused_and_named(name: str, value: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse(given(**{name: value}))


def test_options_that_only_say_how_kafka_is_read_may_be_passed_over() -> None:
    hows = {"groupIdPrefix": "p", "fetchOffset.numRetries": "3", "kafka.max.poll.records": "5"}
    read = parse(given(**hows, ignoreKafkaProperties="true"))
    assert read == parse(given())
    what = {"kafka.auto.offset.reset": "earliest", "ignoreKafkaProperties": "true"}
    with pytest.raises(OptionError, match="give startingOffsets"):
        parse(given(**what))


def test_names_of_kafkas_consumer_may_be_written_with_its_prefix() -> None:
    options = parse(given(**{"kafka.isolation.level": "read_uncommitted", "kafka.group.id": "g"}))
    assert (options.isolation_level, options.group_id) == ("read_uncommitted", "g")
    with pytest.raises(OptionError, match=r"group\.id and kafka\.group\.id differ"):
        parse(given(**{"group.id": "a", "kafka.group.id": "b"}))


@pytest.mark.parametrize(
    ("text", "ms"), [("500", 500), ("30s", 30_000), ("2 min", 120_000), ("1h", 3_600_000)]
)
def test_a_delay_has_a_unit_as_in_spark(text: str, ms: int) -> None:
    assert parse(given(maxTriggerDelay=text)).max_trigger_delay_ms == ms


def test_only_a_stream_waits_for_a_cluster_that_is_away() -> None:
    assert for_batch(given()).max_outage_ms is None
    assert for_stream(given()).max_outage_ms == 3_600_000
    assert for_stream(given(maxOutage="2h")).max_outage_ms == 7_200_000
    assert not for_stream(given(maxOutage="2h")).waits_at_first
    patient = for_batch(given(MAXOUTAGE="2h"))
    assert (patient.max_outage_ms, patient.waits_at_first) == (7_200_000, True)


def test_a_minimum_above_the_maximum_is_refused() -> None:
    with pytest.raises(OptionError, match="minOffsetsPerTrigger is 9, more than"):
        parse(given(minOffsetsPerTrigger="9", maxOffsetsPerTrigger="8"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxOffsetsPerTrigger", "5"),
        ("minOffsetsPerTrigger", "5"),
        ("maxTriggerDelay", "5s"),
        ("kafka.group.id", "g"),
    ],
)
def test_what_is_for_streams_is_refused_in_a_batch(name: str, value: str) -> None:
    for_stream(given(**{name: value}))
    with pytest.raises(OptionError, match=f"{name} is given: it has no meaning in a batch"):
        for_batch(given(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endingOffsets", "latest"),
        ("endingOffsetsByTimestamp", '{"t":{"0":7}}'),
        ("endingTimestamp", "5"),
        ("pushdown", "true"),
    ],
)
def test_what_is_for_batches_is_refused_in_a_stream(name: str, value: str) -> None:
    for_batch(given(**{name: value}))
    with pytest.raises(OptionError, match=f"{name} is given: it has no meaning in a stream"):
        for_stream(given(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingOffsets", "latest"),
        ("startingOffsets", '{"t":{"0":-1}}'),
        ("endingOffsets", "earliest"),
        ("endingOffsets", '{"t":{"0":-2}}'),
    ],
)
def test_a_batch_neither_starts_at_the_end_nor_ends_at_the_start(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"{name} of a batch cannot be"):
        for_batch(given(**{name: value}))


@pytest.mark.parametrize(
    ("starting", "ending", "said"),
    [
        ({"startingTimestamp": "9"}, {"endingTimestamp": "5"}, "startingTimestamp is 9, more than"),
        (
            {"startingOffsets": '{"t":{"0":7}}'},
            {"endingOffsets": '{"t":{"0":4}}'},
            "startingOffsets of t-0 is 7, more than endingOffsets, which is 4",
        ),
        (
            {"startingOffsets": '{"t":{"0":7}}'},
            {"endingOffsets": '{"t":{"0":0}}'},
            "startingOffsets of t-0 is 7, more than endingOffsets, which is 0",
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":7}}'},
            {"endingOffsetsByTimestamp": '{"t":{"0":4}}'},
            "startingOffsetsByTimestamp of t-0 is 7, more than endingOffsetsByTimestamp",
        ),
    ],
)
def test_a_batch_that_ends_before_it_starts_is_refused(
    starting: dict[str, str], ending: dict[str, str], said: str
) -> None:
    for_batch(given(**starting))
    for_batch(given(**ending))
    with pytest.raises(OptionError, match=said):
        for_batch(given(**starting, **ending))


def test_what_only_the_logs_put_in_the_wrong_order_is_no_mistake() -> None:
    for_batch(given(startingOffsets='{"t":{"0":7}}', endingOffsets='{"t":{"0":-1}}'))
    for_batch(given(startingOffsets='{"t":{"0":-2}}', endingOffsets='{"t":{"0":0}}'))
    for_batch(given(startingTimestamp="9", endingOffsets='{"t":{"0":4}}'))


def test_batches_to_skip_are_named_by_their_places() -> None:
    given = {"bootstrap.servers": "a:1", "subscribe": "t", "skipBatches": "t:0:42, t:1:7"}
    assert [str(skip_batch) for skip_batch in parse(given).skip_batches] == ["t:0:42", "t:1:7"]
    with pytest.raises(OptionError, match=r"skipBatches is 't:0'.* TOPIC:PARTITION:OFFSET"):
        parse(given | {"skipBatches": "t:0"})
