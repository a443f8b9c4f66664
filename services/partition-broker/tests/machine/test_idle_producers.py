"""Producers that were not heard of for long are forgotten, and nothing else is."""

import pytest
from broker_harness import OTHER, PLAIN, PRODUCER, BrokerHarness, image, topic

from semel_broker.machine import LogLimits
from semel_common.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError
from semel_common.ids import TopicPartition
from semel_runtime.participant.producer_expiry import IdleProducer

DAY_MS = 86_400_000


@pytest.fixture
def broker() -> BrokerHarness:
    return BrokerHarness(LogLimits(producer_expiration_ms=DAY_MS))


def test_a_producer_is_forgotten_when_its_time_is_over(broker: BrokerHarness) -> None:
    """C-020."""
    broker.append(transactional=False)
    broker.now_ms += 5
    broker.append(sequence=1, transactional=False)
    assert broker.forget(after_ms=DAY_MS - 1) == 0
    assert broker.append(sequence=1, transactional=False) == 1, "it is still known as a repeat"
    assert broker.forget(after_ms=1) == 1
    assert broker.forget() == 0
    with pytest.raises(OutOfOrderSequenceNumberError):
        broker.append(sequence=2, transactional=False)
    assert broker.append(sequence=0, transactional=False) == 2


def test_a_producer_with_an_open_transaction_is_not_forgotten(broker: BrokerHarness) -> None:
    broker.append()
    assert broker.forget() == 0
    broker.commit()
    assert broker.forget() == 1


def test_a_fence_that_only_a_marker_raised_is_forgotten_too(broker: BrokerHarness) -> None:
    broker.abort(epoch=6)
    with pytest.raises(InvalidProducerEpochError):
        broker.append(epoch=6)
    assert broker.forget(after_ms=DAY_MS - 1) == 0
    assert broker.forget(after_ms=1) == 1


def test_what_is_late_after_that_is_open_until_the_coordinator_says_that_it_is_aborted(
    broker: BrokerHarness,
) -> None:
    """No committed reader ever sees it."""
    broker.append()
    broker.commit()
    broker.forget()
    assert broker.append() == 2
    assert broker.last_stable_offset == 2
    broker.now_ms += 10_000
    assert [(each.producer_id, each.producer_epoch) for each in broker.due()] == [(PRODUCER, 0)]
    broker.abort()
    assert broker.aborted_offsets() == [2, 3]


def test_each_partition_forgets_for_itself(broker: BrokerHarness) -> None:
    broker.append(partition=0, transactional=False)
    broker.append(partition=1, producer_id=OTHER, transactional=False)
    broker.now_ms += DAY_MS - 1
    broker.append(partition=1, producer_id=OTHER, sequence=1, transactional=False)
    assert broker.forget(after_ms=1) == 1
    assert broker.append(partition=1, producer_id=OTHER, sequence=2, transactional=False) == 2


def test_a_producer_heard_of_between_look_and_act_stays(broker: BrokerHarness) -> None:
    """A batch, or an outcome with another fence, while the coordinator was asked."""
    broker.append()
    broker.commit()
    producers, partition = broker.machine.producers, TopicPartition("id-orders", 0)
    broker.now_ms += DAY_MS
    idle = producers.idle_producers(partition, [PRODUCER, OTHER], now_ms=broker.now_ms).response
    assert idle == [IdleProducer(partition, PRODUCER, 1)]
    assert idle[0].had_transactions
    raised = [IdleProducer(partition, PRODUCER, 2)]
    assert producers.forget_producers(raised, now_ms=broker.now_ms).response == 0
    broker.append(epoch=1)
    assert producers.forget_producers(idle, now_ms=broker.now_ms).response == 0


def test_partitions_that_are_gone_have_no_producers(broker: BrokerHarness) -> None:
    broker.append(transactional=False)
    partition = TopicPartition("id-orders", 0)
    broker.apply_metadata(image(2, topic("others", 1)))
    producers = broker.machine.producers
    assert producers.producer_ids(partition).response == []
    assert producers.idle_producers(partition, [PRODUCER], now_ms=broker.now_ms).response == []
    idle = [IdleProducer(partition, PRODUCER, 0)]
    assert producers.forget_producers(idle, now_ms=broker.now_ms + DAY_MS).response == 0


def test_records_without_a_producer_leave_nothing_to_forget(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN)
    assert broker.forget() == 0


def test_a_clock_that_went_back_makes_no_producer_idle(broker: BrokerHarness) -> None:
    broker.append(transactional=False)
    assert broker.forget(after_ms=-10 * DAY_MS) == 0
