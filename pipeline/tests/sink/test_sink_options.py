"""What users say of a write is read whole, or refused with its name."""

import pytest

from aiosemel import Compression
from pyspark_semel.errors import OptionError
from pyspark_semel.sink import options

CLUSTER = {"bootstrap.servers": "a:1"}
EVERYTHING = {
    **CLUSTER,
    "topic": "t",
    "transactionalid": "load",
    "txnversion": "7",
    "transactionalidreset": "TRUE",
    "transaction.timeout.ms": "1000",
    "default.api.timeout.ms": "5",
    "max.request.size": "2048",
    "compression.type": "zstd",
}


def test_every_option_of_a_batch_is_read() -> None:
    read = options.of_batch(EVERYTHING)
    assert read == options.SinkOptions(
        bootstrap="a:1",
        security=None,
        topic="t",
        transactional_id="load",
        txn_version=7,
        reset=True,
        transaction_timeout_ms=1_000,
        api_timeout_ms=5,
        max_outage_ms=None,
        max_request_size_bytes=2_048,
        compression=Compression.ZSTD,
    )
    assert (read.producer.max_block_ms, read.producer.max_request_size_bytes) == (5, 2_048)


def test_little_has_to_be_said() -> None:
    for read in (options.of_batch(CLUSTER), options.of_stream(CLUSTER)):
        assert (read.topic, read.transactional_id, read.txn_version, read.reset) == (None,) * 3 + (
            False,
        )
        assert (read.transaction_timeout_ms, read.api_timeout_ms) == (60_000, 60_000)


def test_a_stream_waits_longer_for_a_cluster_that_is_away() -> None:
    stream = options.of_stream({**CLUSTER, "default.api.timeout.ms": "5", "maxOutage": "3m"})
    assert (stream.api_timeout_ms, stream.max_outage_ms) == (5, 180_000)
    assert stream.producer.max_block_ms == stream.producer.delivery_timeout_ms == 180_000
    assert options.of_stream(CLUSTER).max_outage_ms == 3_600_000
    assert not stream.waits_at_first
    patient = options.of_batch({**CLUSTER, "maxOutage": "3m"})
    assert (patient.max_outage_ms, patient.waits_at_first) == (180_000, True)


def test_an_outage_may_last_as_long_as_the_sdk_can_count() -> None:
    stream = options.of_stream({**CLUSTER, "maxOutage": "30d"})
    assert stream.producer.max_block_ms == 30 * 86_400_000
    with pytest.raises(OptionError, match="maxOutage is '999999999999d', more than 9223372036854"):
        options.of_stream({**CLUSTER, "maxOutage": "999999999999d"})


def test_a_stream_has_options_of_spark_too() -> None:
    given = {**CLUSTER, "checkpointlocation": "/c", "queryname": "q", "transactionalid": "i"}
    assert options.of_stream(given).transactional_id == "i"


def test_names_of_kafkas_producer_may_have_its_prefix() -> None:
    read = options.of_stream({"kafka.bootstrap.servers": "a:1", "kafka.max.request.size": "2048"})
    assert (read.bootstrap, read.max_request_size_bytes) == ("a:1", 2_048)


def test_the_name_of_a_topic_may_have_spaces_around_it() -> None:
    assert options.of_batch({**CLUSTER, "topic": " orders "}).topic == "orders"


def test_the_name_that_delta_gives_the_id_will_do() -> None:
    given = {**CLUSTER, "txnappid": "load", "txnversion": "1"}
    assert options.of_batch(given).transactional_id == "load"
    assert options.of_batch({**given, "transactionalid": "load"}).transactional_id == "load"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topik": "t"}, "'topik': did you mean topic"),
        ({"checkpointlocation": "/c"}, "unknown option 'checkpointlocation'"),
        ({"txnversion": "1"}, "txnVersion is given without transactionalId"),
        ({"transactionalid": "a", "txnappid": "b"}, "two names of the same"),
        ({"transactionalid": " "}, "transactionalId is empty"),
        ({"txnappid": ""}, "txnAppId is empty"),
        ({"topic": ""}, "topic is empty"),
        ({"includeheaders": "true"}, "includeHeaders is given: .* a column headers is written"),
        ({"kafka.partitioner.class": "a.B"}, "give a column partition"),
        ({"transactionalid": "a", "txnversion": "-1"}, "txnVersion is -1, less than 0"),
        ({"transactionalid": "a", "txnversion": "x"}, "txnVersion is 'x', not a whole number"),
        ({"transactionalidreset": "true"}, "transactionalIdReset is true without"),
        ({"transactionalidreset": "1"}, "neither true nor false"),
        ({"transaction.timeout.ms": "1"}, "less than 1000"),
        ({"transaction.timeout.ms": "3000000000"}, "3000000000, more than 2147483647"),
        ({"default.api.timeout.ms": "3000000000"}, "3000000000, more than 2147483647"),
        ({"max.request.size": "16777217"}, "16777217, more than 16777216"),
        ({"transactionalid": "a", "txnversion": "9223372036854775808"}, "txnVersion is .*, more"),
        ({"compression.type": "lz4"}, "'lz4': neither none nor zstd"),
        (
            {"max.request.size": "2048", "kafka.max.request.size": "4096"},
            "max.request.size and kafka.max.request.size differ",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        options.of_batch({**CLUSTER, **given})


def test_a_stream_counts_its_versions_itself() -> None:
    given = {**CLUSTER, "transactionalid": "a", "txnversion": "1"}
    with pytest.raises(OptionError, match="the number of its micro-batch"):
        options.of_stream(given)
