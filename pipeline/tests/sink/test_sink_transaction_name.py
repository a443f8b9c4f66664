"""Tasks find out whose transaction they write, and the same in every attempt."""

from collections.abc import Mapping

import pytest

from aiosemel import JointHandle
from pyspark_semel.errors import OptionError, TransactionError
from pyspark_semel.sink import options, transaction_name

CLUSTER = {"bootstrap.servers": "a:1"}
RUN = "0b1d5d6e-6d5e-4c0e-9f43-0f6c1c6b7a52"
PROPERTIES = {
    "sql.streaming.queryId": "query",
    "streaming.sql.batchId": "12",
    "spark.jobGroup.id": RUN,
}
CONNECT = {"spark.job.tags": "SparkConnect_OperationTag_User_u_Session_s_Operation_o"}
WRITE_ID = "write"


def of_batch(given: Mapping[str, str], properties: Mapping[str, str]) -> JointHandle:
    return transaction_name.of_batch(
        options.of_batch({**CLUSTER, **given}), properties.get, WRITE_ID
    )


def names(handle: JointHandle) -> tuple[str, int, str, str]:
    return handle.transactional_id, handle.txn_version, handle.owner, handle.run


def test_a_micro_batch_is_a_version_of_its_query() -> None:
    read = options.of_stream({**CLUSTER, "transaction.timeout.ms": "5000"})
    handle = transaction_name.of_stream(read, PROPERTIES.get)
    assert names(handle) == ("spark-query", 12, "query", RUN)
    assert (handle.transaction_timeout_ms, handle.reset) == (5_000, False)


def test_a_stream_may_have_a_name_of_its_own() -> None:
    given = {**CLUSTER, "transactionalId": "income", "transactionalIdReset": "true"}
    handle = transaction_name.of_stream(options.of_stream(given), PROPERTIES.get)
    assert names(handle) == ("income", 12, "query", RUN)
    assert handle.reset


def test_a_batch_in_for_each_batch_is_found_out() -> None:
    assert names(of_batch({}, PROPERTIES)) == ("spark-query", 12, "query", RUN)
    assert names(of_batch({"topic": "t"}, PROPERTIES)) == ("spark-query-t", 12, "query", RUN)
    assert names(of_batch({"txnAppId": "a"}, PROPERTIES)) == ("a", 12, "query", RUN)


def test_a_batch_may_say_who_it_is() -> None:
    given = {"txnAppId": "load", "txnVersion": "3"}
    for properties in ({}, CONNECT):
        assert names(of_batch(given, properties)) == ("load", 3, "load", WRITE_ID)
    assert names(of_batch(given, PROPERTIES)) == ("load", 3, "query", RUN)


def test_a_batch_that_says_nothing_has_a_transaction_of_its_own() -> None:
    handle = of_batch({}, {})
    assert names(handle) == ("spark-write", 0, "spark-write", "write")
    assert handle.one_shot


@pytest.mark.parametrize("given", [{}, {"txnAppId": "load", "txnVersion": "3"}])
def test_a_driver_knows_what_its_tasks_write_outside_of_streams(given: Mapping[str, str]) -> None:
    read = options.of_batch({**CLUSTER, **given})
    assert transaction_name.of_lone_batch(read, WRITE_ID) == of_batch(given, {})


def test_a_driver_does_not_know_the_version_of_a_stream() -> None:
    read = options.of_batch({**CLUSTER, "txnAppId": "load"})
    assert transaction_name.of_lone_batch(read, WRITE_ID) is None


def test_only_a_generated_id_is_used_once() -> None:
    given = {"txnAppId": "load", "txnVersion": "3"}
    assert not of_batch(given, {}).one_shot
    assert not of_batch({}, PROPERTIES).one_shot
    assert not transaction_name.of_stream(options.of_stream(CLUSTER), PROPERTIES.get).one_shot


def test_an_id_without_a_version_says_too_little() -> None:
    with pytest.raises(OptionError, match="txnVersion is missing"):
        of_batch({"transactionalId": "load"}, {})


def test_with_spark_connect_a_batch_must_say_who_it_is() -> None:
    with pytest.raises(OptionError, match=r"transactionalId and txnVersion.*Spark Connect"):
        of_batch({}, CONNECT)


@pytest.mark.parametrize("group", ["nightly", "{0b1d5d6e-6d5e-4c0e-9f43-0f6c1c6b7a52}", None])
def test_a_job_group_that_hides_the_run_is_refused(group: str | None) -> None:
    properties = {key: value for key, value in PROPERTIES.items() if key != "spark.jobGroup.id"}
    if group is not None:
        properties["spark.jobGroup.id"] = group
    with pytest.raises(TransactionError, match=r"spark\.jobGroup\.id.*setJobGroup.*addJobTag"):
        of_batch({"txnAppId": "load", "txnVersion": "3"}, properties)
