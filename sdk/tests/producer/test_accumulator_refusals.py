"""The accumulator by example: batches that need another epoch, and batches that are cut."""

from dataclasses import replace

import pytest
from accumulator_harness import LIMITS, append, drained, fill, made

from aiosemel._producer.batching.accumulator import Accumulator
from aiosemel._producer.batching.batch import Batch
from aiosemel.errors import (
    InvalidProducerTokenError,
    MessageTooLargeError,
    NetworkExceptionError,
    OutOfOrderSequenceNumberError,
)
from semel_common.ids import TopicPartition

FORGOTTEN = OutOfOrderSequenceNumberError("base sequence 1 is not the expected 0")


def two_in_flight(accumulator: Accumulator) -> list[Batch]:
    """Return two batches in flight, behind one that is stored."""
    fill(accumulator, 1)
    (stored,) = drained(accumulator)
    accumulator.acknowledge(stored, 0)
    fill(accumulator, 2)
    return drained(accumulator)


def test_what_a_broker_has_forgotten_goes_on_in_a_new_epoch() -> None:
    """KIP-360; only once all answers are there: a late one would be taken for that of a repeat."""
    accumulator = made()
    first, second = two_in_flight(accumulator)
    assert accumulator.refuse(first, FORGOTTEN)
    accumulator.retry(first)
    assert drained(accumulator) == []
    assert accumulator.refuse(second, NetworkExceptionError("lost"))
    accumulator.retry(second)
    sent = drained(accumulator)
    assert sent == [first]
    accumulator.acknowledge(first, 1)
    assert [*sent, *drained(accumulator)] == [first, second]
    assert [(b.producer_epoch, b.base_sequence) for b in (first, second)] == [(4, 0), (4, 1)]


def test_a_batch_of_which_an_attempt_was_not_answered_gets_no_other_sequence() -> None:
    """That attempt may have stored it."""
    accumulator = made()
    first, _ = two_in_flight(accumulator)
    assert accumulator.refuse(first, NetworkExceptionError("no answer"))
    accumulator.retry(first)
    drained(accumulator)
    assert not accumulator.refuse(first, FORGOTTEN)


def test_a_batch_that_is_younger_than_what_its_broker_forgets_was_not_stored() -> None:
    """Had an attempt been stored, the broker would still know the producer."""
    forgotten = OutOfOrderSequenceNumberError("not known", producer_id_expiration_ms=10_000)
    for age_ms, goes_again in ((4_999, True), (5_000, False)):
        accumulator = made()
        first, _ = two_in_flight(accumulator)
        began_ms = first.deadline_ms - LIMITS.delivery_timeout_ms
        assert accumulator.refuse(first, NetworkExceptionError("no answer"), began_ms + 1)
        accumulator.retry(first)
        drained(accumulator)
        assert accumulator.refuse(first, forgotten, began_ms + age_ms) is goes_again


@pytest.mark.parametrize("transactional", [False, True])
def test_a_batch_that_came_before_its_predecessor_keeps_its_sequence(transactional: bool) -> None:
    """Answers may come in another order, and a copy of the request may be stored meanwhile."""
    accumulator = made(transactional=transactional)
    first, second = two_in_flight(accumulator)
    accumulator.acknowledge(first, 1)
    assert accumulator.refuse(second, FORGOTTEN)
    accumulator.retry(second)
    assert drained(accumulator) == [second]
    assert (second.producer_epoch, second.base_sequence) == (3, 2)


def test_a_batch_whose_token_is_refused_gets_another_producer_id_once_all_are_answered() -> None:
    accumulator = made()
    first, second = two_in_flight(accumulator)
    assert accumulator.refuse(first, InvalidProducerTokenError("token"))
    accumulator.retry(first)
    assert accumulator.needs_producer_id
    answered = [accumulator.is_answered]
    assert accumulator.refuse(second, InvalidProducerTokenError("token"))
    accumulator.retry(second)
    assert [*answered, accumulator.is_answered] == [False, True]
    accumulator.start_epoch(77, 0)
    sent = drained(accumulator)
    accumulator.acknowledge(first, 1)
    assert [*sent, *drained(accumulator)] == [first, second]
    assert [(b.producer_id, b.base_sequence) for b in (first, second)] == [(77, 0), (77, 1)]


def test_a_batch_that_may_be_stored_gets_no_other_producer_id() -> None:
    accumulator = made()
    first, _ = two_in_flight(accumulator)
    assert accumulator.refuse(first, NetworkExceptionError("no answer"))
    accumulator.retry(first)
    drained(accumulator)
    assert not accumulator.refuse(first, InvalidProducerTokenError("token"))


def test_a_sequence_that_another_producer_has_used_is_no_reason_to_go_on() -> None:
    accumulator = made()
    first, _ = two_in_flight(accumulator)
    used = OutOfOrderSequenceNumberError("used for something else", known_crc32c=7)
    assert not accumulator.refuse(first, used)


def test_no_batch_of_a_transaction_gets_another_epoch() -> None:
    accumulator = made(transactional=True)
    first, _ = two_in_flight(accumulator)
    assert not accumulator.refuse(first, FORGOTTEN)


def test_what_is_too_large_is_cut_under_its_sequences() -> None:
    """Batches of the topic that wait are cut, too; batches in flight, once they are refused."""
    accumulator = made(limits=replace(LIMITS, batch_size_bytes=68))
    batches = [append(accumulator, size=17) for _ in range(8)]
    first, second = drained(accumulator)
    waiting, *_ = [append(accumulator, size=17) for _ in range(4)]
    other = append(accumulator, TopicPartition("u", 0), size=17)
    parts = accumulator.split(first, MessageTooLargeError("too large", message_max_bytes=34))
    assert [(b.base_sequence, b.record_count) for b in parts] == [(0, 2), (2, 2)]
    assert len(waiting.parts) == 2
    assert not second.parts
    assert not other.parts
    assert accumulator.batch_limit("t", 100) == 34
    assert accumulator.batch_limit("u", 100) == 100
    assert accumulator.used_bytes == 13 * 17
    assert first is batches[0]
