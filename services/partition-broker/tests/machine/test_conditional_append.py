"""Appends that are taken only at one offset: protocol.md, section 4."""

import pytest
from broker_harness import OTHER, PLAIN, BrokerHarness, at, header

from semel_broker.machine.values import BatchHeader, ProducePartition
from semel_common.errors import (
    BaseOffsetMismatchError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    SemelError,
)


def append(broker: BrokerHarness, expected: int, *batches: BatchHeader) -> int:
    """Append to partition 0 if it ends at an offset; raise if it was refused."""
    request = ProducePartition(name=at(), batches=batches, expected_base_offset=expected)
    (answer,) = broker.run(broker.machine.produce([request], now_ms=broker.now_ms))
    if isinstance(answer, SemelError):
        raise answer
    return answer.base_offset


def test_an_append_at_the_end_is_taken(broker: BrokerHarness) -> None:
    assert append(broker, 0, header(count=3)) == 0
    assert append(broker, 3, header(producer_id=OTHER, count=2)) == 3
    assert append(broker, 5, header(producer_id=PLAIN)) == 5


@pytest.mark.parametrize("expected", [0, 2, 4, 2**62])
def test_anywhere_else_it_is_refused_with_the_end_and_nothing_is_stored(
    broker: BrokerHarness, expected: int
) -> None:
    broker.append(producer_id=OTHER, count=3)
    written = len(broker.journal)
    with pytest.raises(BaseOffsetMismatchError, match=f"ends at offset 3, not at {expected}") as no:
        append(broker, expected, header(count=2), header(count=1, sequence=2))
    assert no.value.log_end_offset == 3
    assert no.value.details["expected_base_offset"] == str(expected)
    assert len(broker.journal) == written
    assert append(broker, 3, header(count=2), header(count=1, sequence=2)) == 3


def test_of_two_that_expect_the_same_the_first_is_taken(broker: BrokerHarness) -> None:
    assert append(broker, 0, header()) == 0
    with pytest.raises(BaseOffsetMismatchError):
        append(broker, 0, header(producer_id=OTHER))


def test_a_repeat_is_answered_as_one_wherever_the_log_ends_now(broker: BrokerHarness) -> None:
    append(broker, 0, header(count=2))
    broker.append(producer_id=OTHER, count=5)
    assert append(broker, 0, header(count=2)) == 0
    assert broker.end_offset == 7


def test_what_follows_a_repeat_in_one_request_must_come_right_behind_it(
    broker: BrokerHarness,
) -> None:
    first, second = header(count=2), header(count=1, sequence=2)
    append(broker, 0, first)
    assert append(broker, 0, first, second) == 0
    assert broker.end_offset == 3
    broker.append(producer_id=OTHER)
    with pytest.raises(BaseOffsetMismatchError, match="ends at offset 4, not at 3"):
        append(broker, 0, first, second, header(sequence=3))


def test_a_marker_moves_the_end_too(broker: BrokerHarness) -> None:
    append(broker, 0, header(transactional=True))
    broker.commit()
    with pytest.raises(BaseOffsetMismatchError, match="ends at offset 2"):
        append(broker, 1, header(epoch=1))
    assert append(broker, 2, header(epoch=1)) == 2


def test_records_of_an_open_transaction_are_behind_the_end(broker: BrokerHarness) -> None:
    broker.append(producer_id=OTHER, count=2)
    with pytest.raises(BaseOffsetMismatchError, match="ends at offset 2"):
        append(broker, 0, header(transactional=False))


def test_a_producer_that_may_not_write_is_told_so_first(broker: BrokerHarness) -> None:
    broker.append(epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        append(broker, 7, header(epoch=0))
    with pytest.raises(OutOfOrderSequenceNumberError):
        append(broker, 7, header(epoch=1, sequence=5))
    with pytest.raises(InvalidTxnStateError):
        append(broker, 7, header(epoch=1, sequence=1, transactional=False))


def test_a_refused_append_leaves_the_sequence_to_the_next(broker: BrokerHarness) -> None:
    broker.append(producer_id=OTHER)
    with pytest.raises(BaseOffsetMismatchError):
        append(broker, 0, header())
    assert broker.append(sequence=0) == 1
