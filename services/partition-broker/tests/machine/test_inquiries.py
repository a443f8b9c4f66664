"""Which transactions the broker asks about, and when."""

from broker_harness import ORDERS, OTHER, PLAIN, PRODUCER, BrokerHarness, outcome

from semel_common.ids import TopicPartition
from semel_runtime.participant.inquiry import OpenTransactionAt

INTERVAL_MS = 10_000
DELAY_MS = 250


def open_at(
    producer_id: int = PRODUCER, epoch: int = 0, partition: int = 0
) -> OpenTransactionAt[TopicPartition]:
    return OpenTransactionAt(TopicPartition(ORDERS, partition), producer_id, epoch)


def test_a_transaction_is_asked_about_after_a_whole_interval(broker: BrokerHarness) -> None:
    broker.append()
    broker.append(producer_id=PLAIN)
    broker.now_ms += INTERVAL_MS - 1
    assert broker.due() == []
    broker.now_ms += 1
    assert broker.due() == [open_at()]


def test_the_interval_counts_from_the_first_batch(broker: BrokerHarness) -> None:
    broker.append(sequence=0)
    broker.now_ms += INTERVAL_MS
    broker.append(sequence=1)
    assert broker.due() == [open_at()]


def test_a_closed_transaction_is_not_asked_about(broker: BrokerHarness) -> None:
    broker.append()
    assert broker.machine.transactions.has_open_transactions()
    broker.commit()
    broker.now_ms += INTERVAL_MS
    assert broker.due() == []
    assert not broker.machine.transactions.has_open_transactions()


def test_a_newer_epoch_of_the_producer_makes_an_older_one_due_at_once(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=0)
    broker.append(producer_id=OTHER)
    broker.append(epoch=1)
    assert broker.due() == []
    broker.now_ms += DELAY_MS
    assert broker.due() == [open_at(epoch=0)]


def test_a_marker_of_a_newer_epoch_makes_an_older_one_due_at_once(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=1)
    broker.append(partition=1, epoch=0)
    broker.commit(epoch=1)
    broker.commit(partition=1, epoch=1)
    broker.now_ms += DELAY_MS
    assert broker.due() == [open_at(epoch=0), open_at(epoch=0, partition=1)]


def test_what_was_superseded_first_is_not_put_off_by_later_epochs(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=1)
    broker.now_ms += DELAY_MS
    broker.append(epoch=2)
    assert broker.due() == [open_at(epoch=0)]


def test_an_old_transaction_that_is_superseded_is_due_at_its_own_time(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=0)
    broker.now_ms += INTERVAL_MS
    broker.append(epoch=1)
    assert broker.due() == [open_at(epoch=0)]


def test_a_clock_that_went_back_puts_no_question_off(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.now_ms -= 3_600_000
    assert broker.due() == [open_at()]


def test_a_clock_that_went_back_puts_no_question_off_about_older_epochs(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=0)
    broker.now_ms += 50
    broker.commit(epoch=5)
    assert broker.due() == []
    broker.now_ms -= 1
    assert broker.due() == [open_at(epoch=0)]


def test_answers_are_applied_as_markers_are(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.now_ms += INTERVAL_MS
    assert broker.mark(outcome(epoch=0, commit=False)) == [None]
    assert broker.aborted_offsets() == [0, 1]
    assert broker.due() == []
