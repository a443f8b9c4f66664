"""What a task and the driver do with a real cluster, without Spark between them."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from cluster import Cluster

from aiosemel import IsolationLevel, JointHandle
from aiosemel.errors import TransactionalIdNotFoundError
from pyspark_semel.errors import RecordError, TransactionError, UnknownTopicError
from pyspark_semel.sink import commit_or_abort, options
from pyspark_semel.sink.options import SinkOptions
from pyspark_semel.sink.write import receipts_of, write

UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED
HANDLE = JointHandle(transactional_id="sink", txn_version=0, owner="query", run="1")


@pytest.fixture
def topic(semel: Cluster) -> str:
    return semel.topic(2)


@pytest.fixture
def sink(semel: Cluster, topic: str) -> SinkOptions:
    return options.of_stream({"bootstrap.servers": semel.bootstrap, "topic": topic})


@pytest.fixture
def handle(topic: str) -> JointHandle:
    """A transaction that no other test has."""
    return replace(HANDLE, transactional_id=f"sink-{topic}")


def rows(*values: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"value": list(values)})


def unread() -> Iterator[pa.RecordBatch]:
    yield pytest.fail("input is read")


def committed(sink: SinkOptions, handle: JointHandle, *values: str) -> None:
    commit_or_abort.commit(sink, receipts_of([write(sink, handle, rows(*values), name="t")]))


def test_the_commit_decides_for_all_tasks_that_it_names(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    first = write(sink, handle, rows("a"), name="t")
    loser = write(sink, handle, rows("a"), name="t")
    second = write(sink, handle, rows("b"), name="t")
    assert receipts_of([loser, None]) != []
    assert semel.values(topic) == []
    commit_or_abort.commit(sink, receipts_of([first, second]))
    assert sorted(map(str, semel.values(topic))) == ["b'a'", "b'b'"]
    assert len(semel.values(topic, UNCOMMITTED)) == 3


def test_a_replayed_batch_reads_no_input_and_writes_nothing(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    committed(sink, handle, "a")
    again = write(sink, replace(handle, run="2"), unread(), name="t")
    commit_or_abort.commit(sink, receipts_of([again]))
    assert semel.values(topic, UNCOMMITTED) == [b"a"]


def test_a_version_below_the_last_is_no_repeat(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    for version in range(3):
        committed(sink, replace(handle, txn_version=version), "a")
    older = write(sink, replace(handle, txn_version=1, run="2"), unread(), name="t")
    with pytest.raises(TransactionError, match="because version 2 is committed"):
        commit_or_abort.commit(sink, receipts_of([older]))
    batch = replace(sink, transactional_id="x", txn_version=1)
    commit_or_abort.commit(batch, receipts_of([older]))
    assert len(semel.values(topic)) == 3


def test_a_second_write_under_the_same_name_is_not_lost_in_silence(
    sink: SinkOptions, handle: JointHandle
) -> None:
    """Neither in the run that writes, nor when the micro-batch is done again."""
    for run in ("1", "2", "3"):
        of_run = replace(handle, run=run)
        committed(sink, of_run, "a")
        with pytest.raises(TransactionError, match="needs a transactionalId of its own"):
            committed(sink, of_run, "b")


def test_another_query_may_not_use_the_id_unless_it_takes_it_over(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    committed(sink, handle, "a")
    other = replace(handle, owner="other", run="2")
    with pytest.raises(TransactionError, match="belongs to another query"):
        write(sink, other, unread(), name="t")
    committed(sink, replace(other, reset=True), "b")
    assert sorted(map(str, semel.values(topic))) == ["b'a'", "b'b'"]


def test_a_new_run_fences_the_older_one(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    stale = write(sink, handle, rows("stale"), name="t")
    fresh = write(sink, replace(handle, run="2"), rows("fresh"), name="t")
    with pytest.raises(TransactionError, match="another run of the same query writes"):
        write(sink, handle, unread(), name="t")
    commit_or_abort.commit(sink, receipts_of([fresh]))
    commit_or_abort.abort(sink, receipts_of([stale]))
    assert semel.values(topic) == [b"fresh"]


def test_an_abort_after_the_commit_changes_nothing(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    written = write(sink, handle, rows("a"), name="t")
    commit_or_abort.commit(sink, receipts_of([written]))
    commit_or_abort.abort(sink, receipts_of([written]))
    commit_or_abort.abort(sink, [])
    assert semel.values(topic) == [b"a"]


def test_an_abort_without_a_receipt_is_of_what_its_own_run_has_open(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    of_nobody = replace(handle, transactional_id=f"nobody-{topic}")
    commit_or_abort.abort(sink, [], of_nobody)
    with pytest.raises(TransactionalIdNotFoundError):
        semel.call(semel.client.admin().describe_transactions(of_nobody.transactional_id))
    written = write(sink, handle, rows("a"), name="t")
    commit_or_abort.abort(sink, [], replace(handle, run="another"))
    commit_or_abort.abort(sink, [], replace(handle, txn_version=1))
    commit_or_abort.commit(sink, receipts_of([written]))
    later = replace(handle, txn_version=1)
    write(sink, later, rows("lost"), name="t")
    commit_or_abort.abort(sink, [], later)
    committed(sink, replace(handle, txn_version=2), "b")
    assert sorted(map(str, semel.values(topic))) == ["b'a'", "b'b'"]


def test_a_row_that_is_too_large_is_named_with_what_to_do(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    with pytest.raises(RecordError, match=r"is too large.*max\.request\.size"):
        write(sink, handle, rows("a", "b" * 1_000_000), name="t")
    assert semel.values(topic) == []


def test_a_row_above_the_limit_of_its_topic_is_named_with_the_topic_and_the_limit(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    """The broker refuses it: the option of the sink allows it."""
    large = replace(sink, max_request_size_bytes=8_000_000)
    said = (
        rf"topic '{topic}': a record of 5,000,\d+ bytes exceeds max\.message\.bytes \(1,048,588\)"
    )
    with pytest.raises(RecordError, match=said):
        write(large, handle, rows("a", "b" * 5_000_000), name="t")
    assert semel.values(topic) == []


def test_a_topic_that_is_not_there_is_named(sink: SinkOptions, handle: JointHandle) -> None:
    batch = pa.record_batch({"value": ["a"], "topic": ["nowhere"]})
    with pytest.raises(UnknownTopicError, match="no topic 'nowhere'"):
        write(replace(sink, topic=None), handle, iter([batch]), name="t")


def test_a_topic_that_was_created_again_is_written_to(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    """The process has written to the one before it, and may know its id still."""
    brief = replace(sink, api_timeout_ms=5_000)
    committed(brief, handle, "a")
    semel.call(semel.client.admin().delete_topic(topic))
    semel.call(semel.client.admin().create_topic(topic, partitions=1))
    committed(brief, replace(handle, txn_version=1), "b")
    assert semel.values(topic) == [b"b"]


def test_a_task_whose_topic_is_deleted_fails_at_once_and_names_the_topic(
    semel: Cluster, sink: SinkOptions, handle: JointHandle, topic: str
) -> None:
    """Long before the time of an outage is over, which is an hour."""

    def deleted_between() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": ["a"]})
        semel.call(semel.client.admin().delete_topic(topic))
        for _ in range(1_000):
            yield pa.record_batch({"value": ["b"]})

    began = time.monotonic()
    with pytest.raises(UnknownTopicError, match=f"topic '{topic}' was deleted while this task"):
        write(sink, handle, deleted_between(), name="t")
    assert time.monotonic() - began < 10
    commit_or_abort.abort(sink, [], handle)
