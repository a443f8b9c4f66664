"""The accumulator by example: batches, sequences, answers, memory, time."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from accumulator_harness import (
    LARGEST_BYTES,
    LIMITS,
    P0,
    P1,
    REFUSED,
    append,
    drained,
    everywhere,
    fill,
    made,
)

from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch, Request
from aiosemel._producer.batching.batch_splitting import cut
from aiosemel._producer.batching.columns import RowColumns
from aiosemel._producer.batching.limits import (
    IDLE_EPOCH_MS,
    PARTITIONS_IN_REQUEST,
    REQUESTS_IN_FLIGHT_MAX,
)
from aiosemel._producer.batching.refused_batches import not_in_time
from aiosemel.errors import (
    MessageTooLargeError,
    NetworkExceptionError,
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
    SemelError,
)
from aiosemel.types import offsets
from semel_common.ids import TopicPartition


def columns(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None
) -> RowColumns:
    return RowColumns.checked(
        values, keys=keys, headers=None, timestamp_ms=None, timestamps_ms=None
    )


# -- appending -------------------------------------------------------------------------------------


def test_records_share_a_batch_until_it_is_full() -> None:
    accumulator = made()
    first, second, third, fourth = (append(accumulator, value=b"%d" % i) for i in range(4))
    assert first is second is third is not fourth
    assert (first.values, first.size_bytes) == ([b"0", b"1", b"2"], 30)


def test_a_batch_keeps_keys_headers_and_timestamps() -> None:
    accumulator = made()
    batch = append(accumulator)
    assert not batch.keys
    accumulator.append(
        batch, value=None, key=b"k", timestamp_ms=2, headers=(("h", b"x"),), size_bytes=10
    )
    assert (batch.values, batch.keys) == ([b"v", None], [None, b"k"])
    assert (batch.timestamps_ms, batch.headers) == ([1, 2], {1: (("h", b"x"),)})


@pytest.mark.parametrize("keys", [None, [b"a", None]])
def test_columns_go_into_one_batch(keys: list[bytes | None] | None) -> None:
    accumulator = made()
    batch = accumulator.begin_batch(P0, now_ms=0, limit_bytes=LARGEST_BYTES)
    accumulator.append_columns(
        batch, rows=columns([b"1", b"2"], keys), timestamp_ms=5, size_bytes=50
    )
    assert (batch.values, batch.keys) == ([b"1", b"2"], keys)
    assert batch.timestamps_ms == [5, 5]
    assert accumulator.used_bytes == 50


def test_an_open_batch_has_room_for_what_fits() -> None:
    accumulator = made()
    assert accumulator.open_batch(P0, 1) is None
    batch = append(accumulator, size=20)
    assert accumulator.open_batch(P0, 10) is batch
    assert accumulator.open_batch(P0, 11) is None
    drained(accumulator)
    assert accumulator.open_batch(P0, 1) is None


def test_memory_is_bounded_and_given_back() -> None:
    accumulator = made()
    batch = append(accumulator, size=990)
    assert accumulator.has_room(10)
    assert not accumulator.has_room(11)
    drained(accumulator)
    assert not accumulator.has_room(11), "what is in flight counts too"
    accumulator.acknowledge(batch, 0)
    assert accumulator.used_bytes == 0
    assert accumulator.has_room(1_000)
    assert batch.values == []


# -- draining --------------------------------------------------------------------------------------


def test_nothing_is_drained_before_there_is_a_producer_id() -> None:
    accumulator = Accumulator(LIMITS, transactional=False, cut=cut)
    append(accumulator)
    with pytest.raises(AssertionError, match="producer id"):
        accumulator.drain(everywhere)


def test_a_request_has_as_many_partitions_as_a_broker_takes() -> None:
    accumulator = made(limits=replace(LIMITS, request_size_max_bytes=10**9, memory_bytes=10**9))
    for number in range(2 * PARTITIONS_IN_REQUEST + 1):
        append(accumulator, TopicPartition("t", number))
    (first,) = accumulator.drain(everywhere)
    assert len(first.batches) == PARTITIONS_IN_REQUEST
    accumulator.flush()
    rest = accumulator.drain(everywhere)
    assert [len(request.batches) for request in rest] == [PARTITIONS_IN_REQUEST, 1]


def test_sequences_are_given_when_a_batch_is_drained() -> None:
    accumulator = made()
    append(accumulator)
    append(accumulator)
    fill(accumulator, 1)
    assert [(b.producer_id, b.producer_epoch, b.base_sequence) for b in drained(accumulator)] == [
        (7, 3, 0),
        (7, 3, 2),
    ]


def test_sequences_wrap_to_zero_c212() -> None:
    accumulator = made()
    drained_first = fill(accumulator, 1)
    drained(accumulator)
    accumulator.acknowledge(drained_first[0], 0)
    accumulator._partitions[P0].next_sequence = (1 << 31) - 1
    fill(accumulator, 2)
    assert [batch.base_sequence for batch in drained(accumulator)] == [(1 << 31) - 1, 0]


def test_a_new_epoch_restarts_sequences_c203() -> None:
    accumulator = made(transactional=True)
    for partition in (P0, P1):
        append(accumulator, partition)
    for request in accumulator.drain(everywhere):
        accumulator.answered(request)
        for batch in request.batches:
            accumulator.acknowledge(batch, 0)
    accumulator.start_epoch(7, 4)
    append(accumulator)
    (batch,) = drained(accumulator)
    assert (batch.producer_epoch, batch.base_sequence) == (4, 0)


def test_one_request_for_a_broker_has_a_batch_of_each_partition() -> None:
    accumulator = made()
    a, b = append(accumulator, P0), append(accumulator, P1)
    assert accumulator.drain(everywhere) == [Request("broker", (a, b))]


def test_each_broker_gets_a_request_of_its_own() -> None:
    accumulator = made()
    a, b = append(accumulator, P0), append(accumulator, P1)
    requests = accumulator.drain(lambda partition: f"broker{partition.partition}")
    assert requests == [Request("broker0", (a,)), Request("broker1", (b,))]


def test_a_request_is_no_larger_than_allowed() -> None:
    accumulator = made()
    partitions = [TopicPartition("t", number) for number in range(3)]
    for partition in partitions:
        fill(accumulator, 1, partition)
    sizes = [len(request.batches) for request in accumulator.drain(everywhere)]
    assert sizes == [2, 1]


def test_a_batch_that_is_larger_than_a_request_goes_alone() -> None:
    accumulator = made()
    large, small = append(accumulator, P0, size=70), append(accumulator, P1, size=10)
    requests = accumulator.drain(everywhere)
    assert [request.batches for request in requests] == [(large,)]
    accumulator.answered(requests[0])
    assert drained(accumulator) == [small]


def test_a_partition_without_a_leader_waits() -> None:
    accumulator = made()
    append(accumulator)
    assert accumulator.drain(lambda _: None) == []
    assert accumulator.is_waiting
    assert len(drained(accumulator)) == 1
    assert not accumulator.is_waiting


def test_a_batch_that_is_not_full_waits_for_the_request_before() -> None:
    accumulator = made()
    append(accumulator)
    (request,) = accumulator.drain(everywhere)
    later = append(accumulator)
    assert accumulator.drain(everywhere) == []
    append(accumulator)
    accumulator.answered(request)
    assert drained(accumulator) == [later]
    assert later.base_sequence == 1


@pytest.mark.parametrize(
    "arrange",
    [lambda a: fill(a, 1), lambda a: (append(a), a.flush())],
    ids=["full", "flushed"],
)
def test_what_is_full_or_flushed_does_not_wait_c211(
    arrange: Callable[[Accumulator], object],
) -> None:
    accumulator = made()
    append(accumulator)
    accumulator.drain(everywhere)
    arrange(accumulator)
    assert len(drained(accumulator)) == 1


def test_a_batch_with_another_behind_it_does_not_wait() -> None:
    accumulator = made()
    append(accumulator)
    accumulator.drain(everywhere)
    first = append(accumulator, size=20)
    append(accumulator, size=20)
    assert drained(accumulator) == [first]


def test_at_most_five_batches_are_unacknowledged() -> None:
    accumulator = made()
    batches = fill(accumulator, 7)
    assert drained(accumulator) == batches[:5]
    assert drained(accumulator) == []


def test_each_partition_of_a_broker_has_a_window_of_its_own() -> None:
    accumulator = made()
    for number in range(3):
        fill(accumulator, 6, TopicPartition("t", number))
    requests = accumulator.drain(everywhere)
    in_flight = Counter(batch.topic_partition for each in requests for batch in each.batches)
    assert in_flight == {TopicPartition("t", number): 5 for number in range(3)}


def test_a_broker_has_ten_requests_of_a_producer_at_most() -> None:
    accumulator = made()
    for number in range(12):
        fill(accumulator, 2, TopicPartition("t", number))
    requests = accumulator.drain(everywhere)
    assert len(requests) == REQUESTS_IN_FLIGHT_MAX == 10
    assert accumulator.drain(everywhere) == []
    accumulator.answered(requests[0])
    assert len(accumulator.drain(everywhere)) == 1


# -- answers ---------------------------------------------------------------------------------------


def test_a_retry_sends_the_batch_as_it_was_and_nothing_else() -> None:
    accumulator = made()
    fill(accumulator, 2)
    first, second = accumulator.drain(everywhere)
    (batch,) = first.batches
    before = (batch.values, batch.base_sequence, batch.producer_epoch)
    fill(accumulator, 1)
    accumulator.answered(first)
    accumulator.retry(batch)
    assert drained(accumulator) == [batch]
    assert (batch.values, batch.base_sequence, batch.producer_epoch) == before
    assert batch.attempts == 2
    assert drained(accumulator) == [], "nothing new while a retry is not answered"
    accumulator.answered(second)


def test_a_later_batch_waits_for_those_before_it() -> None:
    accumulator = made()
    fill(accumulator, 2)
    first, second = (request.batches[0] for request in accumulator.drain(everywhere))
    accumulator.retry(second)
    assert drained(accumulator) == []
    accumulator.acknowledge(first, 0)
    assert drained(accumulator) == [second]


def test_all_that_came_back_is_sent_again_one_after_the_other() -> None:
    accumulator = made()
    requests = (fill(accumulator, 3), accumulator.drain(everywhere))[1]
    batches = [request.batches[0] for request in requests]
    for request, batch in zip(requests, batches, strict=True):
        accumulator.answered(request)
        accumulator.retry(batch)
    for batch in batches:
        assert drained(accumulator) == [batch]
        accumulator.acknowledge(batch, 0)


@pytest.mark.parametrize(
    ("error", "first", "second"),
    [
        (NetworkExceptionError("x"), True, True),
        (OutOfOrderSequenceNumberError("x"), False, True),
        (MessageTooLargeError("x"), False, False),
    ],
)
def test_what_may_be_retried(error: SemelError, first: bool, second: bool) -> None:
    accumulator = made()
    fill(accumulator, 2)
    one, two = drained(accumulator)
    assert accumulator.split(one, error) == (), "one record cannot be cut"
    assert accumulator.refuse(one, error) is first
    assert accumulator.refuse(two, error) is second


def test_late_answers_change_nothing() -> None:
    accumulator = made()
    fill(accumulator, 1)
    (batch,) = drained(accumulator)
    accumulator.fail(batch, REFUSED)
    assert not accumulator.refuse(batch, NetworkExceptionError("late"))
    accumulator.retry(batch)
    accumulator.acknowledge(batch, 5)
    accumulator.fail(batch, NetworkExceptionError("late"))
    assert (batch.error, batch.base_offset) == (REFUSED, -1)


def test_without_transactions_a_gap_begins_a_new_epoch_for_the_partition_alone() -> None:
    accumulator = made()
    fill(accumulator, 2)
    first, second = drained(accumulator)
    fill(accumulator, 1)
    fill(accumulator, 1, P1)
    accumulator.fail(first, REFUSED)
    (other,) = drained(accumulator)
    assert (other.topic_partition, other.producer_epoch) == (P1, 3)
    accumulator.acknowledge(second, 0)
    (third,) = drained(accumulator)
    assert (third.producer_epoch, third.base_sequence) == (4, 0)


def test_without_transactions_a_long_silence_begins_a_new_epoch() -> None:
    """The broker may have forgotten the producer, and takes sequence 0 then; or not, and takes it
    in a new epoch."""
    accumulator = made()
    for now_ms, expected in ((0, (3, 0)), (IDLE_EPOCH_MS - 1, (3, 1)), (2 * IDLE_EPOCH_MS, (4, 0))):
        append(accumulator, now_ms=now_ms)
        (request,) = accumulator.drain(everywhere)
        (batch,) = request.batches
        assert (batch.producer_epoch, batch.base_sequence) == expected
        accumulator.acknowledge(batch, 0)
        accumulator.answered(request)


def test_no_silence_changes_the_epoch_of_what_is_on_its_way_or_of_a_transaction() -> None:
    for accumulator in (made(), made(transactional=True)):
        append(accumulator)
        (first,) = drained(accumulator)
        append(accumulator, now_ms=2 * IDLE_EPOCH_MS)
        assert accumulator._partitions[P0].producer_epoch == first.producer_epoch == 3


def test_with_transactions_a_gap_stops_the_partition_until_the_next_epoch() -> None:
    accumulator = made(transactional=True)
    fill(accumulator, 1)
    (batch,) = drained(accumulator)
    fill(accumulator, 1)
    accumulator.fail(batch, REFUSED)
    assert drained(accumulator) == []
    accumulator.fail_all(REFUSED)
    accumulator.start_epoch(7, 4)
    fill(accumulator, 1)
    assert [b.producer_epoch for b in drained(accumulator)] == [4]


def test_what_was_never_sent_leaves_no_gap() -> None:
    accumulator = made()
    batch = append(accumulator)
    accumulator.fail(batch, REFUSED)
    append(accumulator)
    assert [(b.producer_epoch, b.base_sequence) for b in drained(accumulator)] == [(3, 0)]


def test_only_what_is_queued_can_be_given_up_alone() -> None:
    accumulator = made()
    append(accumulator)
    (sent,) = drained(accumulator)
    queued = append(accumulator)
    assert accumulator.fail_queued(REFUSED) == [queued]
    assert accumulator.has_unacknowledged(P0)
    assert accumulator.fail_all(REFUSED) == [sent]
    assert not accumulator.has_unacknowledged(P0)


# -- time and flushes ------------------------------------------------------------------------------


def late(batch: Batch) -> RequestTimedOutError:
    return not_in_time(batch, offsets.TopicPartition("t", 0), 100, "")


def test_the_oldest_batch_is_the_first_to_expire() -> None:
    accumulator = made()
    assert accumulator.next_deadline_ms() is None
    old = append(accumulator, P0, now_ms=0)
    drained(accumulator)
    young = append(accumulator, P1, now_ms=50)
    assert accumulator.next_deadline_ms() == 100
    assert accumulator.expire(99, late) == []
    assert accumulator.expire(100, late) == [old]
    assert accumulator.expire(200, late) == [young]
    assert isinstance(old.error, RequestTimedOutError)
    assert "t-0: 1 record was not acknowledged in 100 ms, sent once" in old.error.message
    assert isinstance(young.error, RequestTimedOutError)
    assert "never sent" in young.error.message


def test_a_flush_is_over_when_all_before_it_is_done() -> None:
    accumulator = made()
    assert accumulator.is_flushed(accumulator.flush())
    first = append(accumulator)
    number = accumulator.flush()
    drained(accumulator)
    append(accumulator)
    assert not accumulator.is_flushed(number)
    accumulator.acknowledge(first, 0)
    assert accumulator.is_flushed(number)
