"""Idempotent appends: repeats, epochs and sequences of one producer in one partition."""

import pytest
from broker_harness import OTHER, PLAIN, PRODUCER, BrokerHarness, at, header, outcome
from msgspec.structs import replace

from semel_broker.machine import LogLimits
from semel_broker.machine.log.sequence_checks import repeated, unknown
from semel_broker.machine.records import AppendedBatch, BatchAppended
from semel_broker.machine.values import PartitionName, ProducePartition
from semel_common.errors import (
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    ThrottlingQuotaExceededError,
)
from semel_common.ids import producer_id_of
from semel_common.record_batches.sequence_numbers import SEQUENCES


def test_batches_take_consecutive_offsets(broker: BrokerHarness) -> None:
    assert broker.append(sequence=0, count=3) == 0
    assert broker.append(sequence=3, count=2) == 3
    assert broker.append(producer_id=OTHER, count=1) == 5
    assert broker.end_offset == 6


def test_batches_without_a_producer_id_are_never_repeats(broker: BrokerHarness) -> None:
    assert [broker.append(producer_id=PLAIN, count=2) for _ in range(3)] == [0, 2, 4]
    assert broker.last_stable_offset == 6


@pytest.mark.parametrize("back", range(5))
def test_c131_one_of_the_last_five_batches_is_answered_with_its_offset(
    broker: BrokerHarness, back: int
) -> None:
    for number in range(8):
        broker.append(sequence=2 * number, count=2)
    written = len(broker.journal)
    repeat = 2 * (7 - back)
    assert broker.append(sequence=repeat, count=2) == repeat
    assert len(broker.journal) == written


@pytest.mark.parametrize(
    ("sequence", "count"),
    [
        pytest.param(0, 2, id="older than five"),
        pytest.param(14, 1, id="first part of a batch"),
        pytest.param(15, 1, id="last part of a batch"),
        pytest.param(14, 3, id="a batch and more"),
        pytest.param(17, 2, id="after a gap"),
    ],
)
def test_c131_what_is_neither_a_repeat_nor_next_is_out_of_order(
    broker: BrokerHarness, sequence: int, count: int
) -> None:
    for number in range(8):
        broker.append(sequence=2 * number, count=2)
    before = broker.entities()
    with pytest.raises(OutOfOrderSequenceNumberError) as caught:
        broker.append(sequence=sequence, count=count)
    assert caught.value.details == {"base_sequence": str(sequence), "expected_sequence": "16"}
    assert broker.entities() == before


@pytest.mark.parametrize("back", range(5))
def test_another_batch_under_a_used_sequence_is_no_repeat(broker: BrokerHarness, back: int) -> None:
    for number in range(8):
        broker.produce(header(sequence=2 * number, count=2, crc32c=number))
    written = len(broker.journal)
    known, sequence = 7 - back, 2 * (7 - back)
    with pytest.raises(OutOfOrderSequenceNumberError) as caught:
        broker.produce(header(sequence=sequence, count=2, crc32c=99))
    assert f"base sequence {sequence} of producer" in caught.value.message
    assert "was used for something else" in caught.value.message
    assert caught.value.details == {
        "base_sequence": str(sequence),
        "crc32c": "99",
        "known_crc32c": str(known),
    }
    assert len(broker.journal) == written
    again = broker.produce(header(sequence=sequence, count=2, crc32c=known))
    assert again.base_offset == sequence


def test_batches_of_an_older_journal_are_known_by_their_sequence_alone() -> None:
    appended = AppendedBatch(base_sequence=0, record_count=1, base_offset=7)
    state = replace(unknown(0, PRODUCER), producer_epoch=0, batches=(appended,))
    assert repeated(state, header(crc32c=99)) == appended


def test_c134_an_older_epoch_is_refused(broker: BrokerHarness) -> None:
    broker.append(epoch=4)
    with pytest.raises(InvalidProducerEpochError, match=r"3 of producer .* is older than 4"):
        broker.append(epoch=3, sequence=1)


def test_c135_a_new_epoch_begins_at_sequence_zero(broker: BrokerHarness) -> None:
    broker.append(epoch=0, count=3)
    with pytest.raises(OutOfOrderSequenceNumberError, match="is not the expected 0"):
        broker.append(epoch=1, sequence=3)
    assert broker.append(epoch=1, sequence=0) == 3


def test_c135_an_unknown_producer_begins_at_sequence_zero(broker: BrokerHarness) -> None:
    with pytest.raises(OutOfOrderSequenceNumberError) as caught:
        broker.append(sequence=1)
    assert caught.value.details == {
        "base_sequence": "1",
        "expected_sequence": "0",
        "producer_id_expiration_ms": "86400000",
    }


def test_a_batch_of_an_older_epoch_is_no_repeat(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        broker.append(epoch=0)


def test_a_repeat_is_answered_even_below_the_fence(broker: BrokerHarness) -> None:
    broker.append(sequence=0)
    broker.append(sequence=1)
    broker.commit()
    assert broker.append(sequence=1) == 1
    with pytest.raises(InvalidProducerEpochError, match="below the fence 1"):
        broker.append(sequence=2)


def test_sequences_wrap_to_zero(broker: BrokerHarness) -> None:
    near_the_end = SEQUENCES - 1
    broker.append(sequence=0, count=near_the_end)
    assert broker.append(sequence=near_the_end, count=3) == near_the_end
    assert broker.append(sequence=2, count=1) == near_the_end + 3


def test_a_batch_that_ends_at_the_last_sequence_is_followed_by_zero(broker: BrokerHarness) -> None:
    broker.append(sequence=0, count=SEQUENCES - 1)
    broker.append(sequence=SEQUENCES - 1, count=1)
    assert broker.append(sequence=0, count=1) == SEQUENCES


def test_records_outside_a_transaction_are_refused_while_one_is_open(
    broker: BrokerHarness,
) -> None:
    broker.append(sequence=0)
    with pytest.raises(InvalidTxnStateError) as caught:
        broker.append(sequence=1, transactional=False)
    assert caught.value.details == {"open_epoch": "0"}


def test_a_transaction_may_follow_records_outside_of_one(broker: BrokerHarness) -> None:
    broker.append(sequence=0, transactional=False)
    assert broker.append(sequence=1, transactional=True) == 1
    assert broker.last_stable_offset == 1


def test_all_batches_of_a_request_are_taken_together(broker: BrokerHarness) -> None:
    answer = broker.produce(header(sequence=0, count=2), header(sequence=2, count=3))
    assert (answer.base_offset, answer.base_offsets) == (0, (0, 2))
    assert broker.end_offset == 5


def test_all_batches_of_a_request_are_refused_together(broker: BrokerHarness) -> None:
    before = broker.entities()
    with pytest.raises(OutOfOrderSequenceNumberError):
        broker.produce(header(sequence=0), header(sequence=1), header(sequence=3))
    assert broker.entities() == before


def test_a_request_may_repeat_some_batches_and_go_on(broker: BrokerHarness) -> None:
    broker.append(sequence=0, count=2)
    answer = broker.produce(header(sequence=0, count=2), header(sequence=2))
    assert (answer.base_offset, answer.base_offsets) == (0, (None, 2))
    assert isinstance(broker.journal[-1][1], BatchAppended)


def test_a_request_may_hold_batches_of_several_producers(broker: BrokerHarness) -> None:
    answer = broker.produce(
        header(sequence=0), header(producer_id=OTHER), header(sequence=1), header(producer_id=PLAIN)
    )
    assert answer.base_offsets == (0, 1, 2, 3)


def test_partitions_have_sequences_of_their_own(broker: BrokerHarness) -> None:
    broker.append(partition=0, sequence=0)
    assert broker.append(partition=1, sequence=0) == 0


def test_a_partition_named_twice_in_a_request_refuses_the_second(broker: BrokerHarness) -> None:
    by_id = PartitionName(topic="", topic_id="id-orders", partition=0)
    requests = [
        ProducePartition(name=at(), batches=(header(),)),
        ProducePartition(name=by_id, batches=(header(sequence=1),)),
    ]
    _, second = broker.run(broker.machine.produce(requests, now_ms=broker.now_ms))
    assert isinstance(second, InvalidRequestError)
    assert broker.end_offset == 1


def test_a_producer_id_that_no_coordinator_owns_is_refused(broker: BrokerHarness) -> None:
    with pytest.raises(InvalidProducerIdMappingError, match="partition 50 of 50"):
        broker.append(producer_id=producer_id_of(50, 1))


def test_new_producers_are_refused_past_the_limit() -> None:
    broker = BrokerHarness(LogLimits(producers_max=1))
    broker.append(sequence=0)
    with pytest.raises(ThrottlingQuotaExceededError):
        broker.append(producer_id=OTHER)
    assert broker.append(sequence=1) == 1


def test_new_transactions_are_refused_past_the_limit() -> None:
    broker = BrokerHarness(LogLimits(open_transactions_max=1))
    broker.append(sequence=0)
    with pytest.raises(ThrottlingQuotaExceededError):
        broker.append(producer_id=OTHER)
    assert broker.append(sequence=1) == 1
    broker.commit()
    assert broker.append(producer_id=OTHER) == 3


def test_epochs_that_pile_up_are_refused_past_the_limit() -> None:
    broker = BrokerHarness(LogLimits(open_epochs_max=2))
    broker.append(epoch=0)
    broker.append(epoch=1)
    with pytest.raises(ConcurrentTransactionsError):
        broker.append(epoch=2)
    assert broker.mark(outcome(epoch=0)) == [None]
    assert broker.append(epoch=2) == 3


def test_the_sixth_last_batch_is_no_repeat_any_more(broker: BrokerHarness) -> None:
    for sequence in range(6):
        broker.append(sequence=sequence)
    assert broker.append(sequence=1) == 1
    with pytest.raises(OutOfOrderSequenceNumberError):
        broker.append(sequence=0)


def test_an_open_transaction_of_an_older_epoch_forbids_records_outside_of_it(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=0)
    with pytest.raises(InvalidTxnStateError, match="in epoch 0"):
        broker.append(epoch=1, transactional=False)
