"""Outcomes of batches: decided from open transactions and the aborted index, as a plan has them."""

import pytest
from broker_harness import OTHER, PRODUCER, UNCOMMITTED, BrokerHarness, at

from semel_broker.machine.batch_outcomes import outcome_of_batch, outcome_of_marker
from semel_broker.machine.values import BatchOutcome, FetchPosition, ReadPlan
from semel_common.errors import SemelError

OPEN, COMMITTED, ABORTED = BatchOutcome.OPEN, BatchOutcome.COMMITTED, BatchOutcome.ABORTED
REUSED = 99
"""An epoch that is written with before it is given out, and again after it is."""


def plan_of(broker: BrokerHarness) -> ReadPlan:
    return broker.plan(isolation=UNCOMMITTED, with_outcomes=True)


def outcome_at(
    broker: BrokerHarness, offset: int, *, producer_id: int = PRODUCER, epoch: int = 0
) -> BatchOutcome:
    return outcome_of_batch(plan_of(broker), producer_id, epoch, offset)


@pytest.mark.parametrize(("commits", "end"), [(True, COMMITTED), (False, ABORTED)])
def test_a_batch_is_open_until_its_marker_comes(
    broker: BrokerHarness, commits: bool, end: BatchOutcome
) -> None:
    first = broker.append()
    second = broker.append(sequence=1)
    assert [outcome_at(broker, first), outcome_at(broker, second)] == [OPEN, OPEN]
    broker.commit() if commits else broker.abort()
    assert [outcome_at(broker, first), outcome_at(broker, second)] == [end, end]


def test_a_transaction_that_is_open_hides_no_outcome_behind_it(broker: BrokerHarness) -> None:
    held = broker.append()
    committed = broker.append(producer_id=OTHER)
    broker.commit(producer_id=OTHER)
    aborted = broker.append(producer_id=OTHER, epoch=1)
    broker.abort(producer_id=OTHER, epoch=1)
    assert broker.last_stable_offset == held == 0
    assert outcome_at(broker, held) is OPEN
    assert outcome_at(broker, committed, producer_id=OTHER) is COMMITTED
    assert outcome_at(broker, aborted, producer_id=OTHER, epoch=1) is ABORTED


def test_an_epoch_that_is_used_again_has_an_outcome_for_each_use(broker: BrokerHarness) -> None:
    first = broker.append(epoch=REUSED)
    broker.never_given(epoch=REUSED, current_epoch=5)
    second = broker.append(epoch=REUSED)
    assert outcome_at(broker, first, epoch=REUSED) is ABORTED
    assert outcome_at(broker, second, epoch=REUSED) is OPEN
    broker.commit(epoch=REUSED)
    assert outcome_at(broker, first, epoch=REUSED) is ABORTED
    assert outcome_at(broker, second, epoch=REUSED) is COMMITTED


def test_a_plan_tells_the_outcomes_of_its_moment(broker: BrokerHarness) -> None:
    """An index that was cut meanwhile is another one, to which the abort is added."""
    broker.append(producer_id=OTHER)
    broker.abort(producer_id=OTHER)
    offset = broker.append()
    before = plan_of(broker)
    broker.delete_records(offset)
    broker.abort()
    assert outcome_of_batch(before, PRODUCER, 0, offset) is OPEN
    assert outcome_at_from(broker, offset) is ABORTED


def outcome_at_from(broker: BrokerHarness, offset: int) -> BatchOutcome:
    plan = broker.plan(offset, isolation=UNCOMMITTED, with_outcomes=True)
    return outcome_of_batch(plan, PRODUCER, 0, offset)


def test_a_reader_that_does_not_ask_has_no_copy_of_open_transactions(
    broker: BrokerHarness,
) -> None:
    broker.append()
    assert broker.plan(isolation=UNCOMMITTED).open_transactions is None


def test_a_marker_has_the_outcome_that_it_tells() -> None:
    assert outcome_of_marker(committed=True) is COMMITTED
    assert outcome_of_marker(committed=False) is ABORTED


def test_a_partition_that_is_named_twice_has_its_open_transactions_copied_once(
    broker: BrokerHarness,
) -> None:
    broker.append()
    positions = [FetchPosition(at(), 0), FetchPosition(at(9), 0), FetchPosition(at(), 1)]
    reads = broker.machine.reads
    first, unknown, second = broker.run(reads.fetch(positions, UNCOMMITTED, with_outcomes=True))
    assert isinstance(first, ReadPlan)
    assert isinstance(unknown, SemelError)
    assert isinstance(second, ReadPlan)
    assert first.open_transactions is second.open_transactions
