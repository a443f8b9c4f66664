"""Outcomes: markers, the fence, coordinator epochs, the last stable offset, the aborted index."""

import pytest
from broker_harness import (
    COMMITTED,
    ORDERS,
    OTHER,
    PLAIN,
    PRODUCER,
    UNCOMMITTED,
    BrokerHarness,
    outcome,
)

from semel_broker.machine.records import (
    LogStartMoved,
    MarkerAppended,
    ProducerFenced,
)
from semel_common.errors import (
    InvalidProducerEpochError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceNumberError,
    TransactionCoordinatorFencedError,
    UnknownTopicIdError,
)
from semel_common.ids import TopicPartition, producer_id_of
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen


def kinds(broker: BrokerHarness, after: int) -> list[type]:
    """Return the kinds of the records from a journal offset on."""
    return [type(record) for _, record in broker.journal[after:]]


def test_a_marker_takes_one_offset_and_closes_the_transaction(broker: BrokerHarness) -> None:
    broker.append(count=2)
    assert broker.last_stable_offset == 0
    broker.commit()
    assert (broker.last_stable_offset, broker.end_offset) == (3, 3)
    assert broker.aborted_offsets() == []


def test_c141_a_repeat_of_a_marker_writes_nothing(broker: BrokerHarness) -> None:
    broker.append()
    broker.commit()
    written = len(broker.journal)
    broker.commit()
    assert len(broker.journal) == written


def test_c140_a_marker_of_an_older_epoch_changes_nothing(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.commit(epoch=0)
    broker.append(epoch=1)
    written = len(broker.journal)
    broker.abort(epoch=0)
    assert len(broker.journal) == written
    assert broker.last_stable_offset == 2


def test_c137_a_marker_of_a_higher_epoch_lets_sequences_begin_again(broker: BrokerHarness) -> None:
    broker.append(epoch=0, count=3)
    broker.commit(epoch=0)
    broker.commit(epoch=6)
    with pytest.raises(OutOfOrderSequenceNumberError):
        broker.append(epoch=7, sequence=3)
    with pytest.raises(InvalidProducerEpochError, match=r"6 of producer .* is below the fence 7"):
        broker.append(epoch=6, sequence=0)
    assert broker.append(epoch=7, sequence=0) == 4


def test_c138_a_marker_for_an_unknown_producer_raises_its_fence(broker: BrokerHarness) -> None:
    written = len(broker.journal)
    broker.abort(epoch=5)
    assert kinds(broker, written) == [CoordinatorEpochSeen, ProducerFenced]
    with pytest.raises(InvalidProducerEpochError):
        broker.append(epoch=5)
    assert broker.append(epoch=6) == 0


def test_c144_a_marker_without_data_takes_no_offset(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN)
    broker.abort()
    assert (broker.last_stable_offset, broker.end_offset) == (1, 1)
    assert broker.aborted_offsets() == []


def test_c155_a_stale_producer_is_told_its_epoch_is_old(broker: BrokerHarness) -> None:
    broker.append(epoch=0, sequence=0)
    broker.abort(epoch=0)
    with pytest.raises(InvalidProducerEpochError):
        broker.append(epoch=0, sequence=1)


def test_the_fence_never_goes_back(broker: BrokerHarness) -> None:
    broker.commit(epoch=9)
    broker.commit(epoch=3)
    with pytest.raises(InvalidProducerEpochError, match="fence 10"):
        broker.append(epoch=9)


def test_the_next_transaction_may_begin_before_the_marker_is_there(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=1)
    broker.commit(epoch=0)
    assert broker.last_stable_offset == 1
    broker.commit(epoch=1)
    assert broker.last_stable_offset == 4


def test_markers_of_one_producer_may_come_out_of_order(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=1)
    broker.commit(epoch=1)
    assert broker.last_stable_offset == 0
    broker.abort(epoch=0)
    assert broker.last_stable_offset == 4
    assert broker.aborted_offsets(epoch=0) == [0, 1, 2, 3]
    assert broker.aborted_offsets(epoch=1) == []


def test_many_markers_for_one_partition_fit_into_one_decision(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=1)
    broker.append(producer_id=OTHER)
    refusals = broker.mark(
        outcome(epoch=0),
        outcome(epoch=0),
        outcome(epoch=1, commit=False),
        outcome(producer_id=OTHER),
        outcome(epoch=8),
        outcome(epoch=8),
    )
    assert refusals == [None] * 6
    written = [record for _, record in broker.journal if isinstance(record, MarkerAppended)]
    assert [each.offset for each in written] == [3, 4, 5]
    assert kinds(broker, 0).count(ProducerFenced) == 1
    assert broker.last_stable_offset == 6


# -- coordinator epochs ---------------------------------------------------------------------------


def test_a_deposed_coordinator_is_refused(broker: BrokerHarness) -> None:
    broker.append()
    broker.commit(producer_id=producer_id_of(3, 77), coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError, match=r"4 of .* 3 is older than 5"):
        broker.abort(coordinator_epoch=4)
    assert broker.last_stable_offset == 0


def test_a_deposed_coordinator_is_refused_for_an_empty_transaction(broker: BrokerHarness) -> None:
    broker.commit(epoch=0, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError):
        broker.abort(epoch=7, coordinator_epoch=4)
    assert broker.append(epoch=7) == 0


def test_a_newer_coordinator_epoch_counts_within_the_same_request(broker: BrokerHarness) -> None:
    fresh, stale = broker.mark(
        outcome(epoch=0, coordinator_epoch=2), outcome(epoch=1, coordinator_epoch=1)
    )
    assert fresh is None
    assert isinstance(stale, TransactionCoordinatorFencedError)


def test_transaction_log_partitions_have_epochs_of_their_own(broker: BrokerHarness) -> None:
    broker.commit(producer_id=PRODUCER, coordinator_epoch=5)
    broker.commit(producer_id=OTHER, coordinator_epoch=1)
    seen = [record for _, record in broker.journal if isinstance(record, CoordinatorEpochSeen)]
    assert [(each.transaction_log_partition, each.coordinator_epoch) for each in seen] == [
        (3, 5),
        (4, 1),
    ]


def test_unknown_participants_are_refused_one_by_one(broker: BrokerHarness) -> None:
    broker.append()
    unknown = outcome(partition=0)
    elsewhere, taken = broker.mark(outcome(partition=2), outcome(partition=0))
    assert isinstance(elsewhere, NotLeaderOrFollowerError)
    assert elsewhere.details == {"leader_id": "2"}
    assert taken is None
    (gone,) = broker.mark(
        type(unknown)(
            partition=TopicPartition("id-gone", 0),
            producer_id=PRODUCER,
            producer_epoch=0,
            committed=True,
            coordinator_epoch=1,
        )
    )
    assert isinstance(gone, UnknownTopicIdError)


# -- last stable offset ---------------------------------------------------------------------------


def test_c146_the_last_stable_offset_is_that_of_the_first_open_transaction(
    broker: BrokerHarness,
) -> None:
    broker.append(producer_id=PLAIN)
    assert broker.last_stable_offset == 1
    broker.append(producer_id=PRODUCER)
    broker.append(producer_id=PLAIN)
    broker.append(producer_id=OTHER)
    broker.append(producer_id=PRODUCER, sequence=1)
    assert broker.last_stable_offset == 1
    broker.commit(producer_id=PRODUCER)
    assert broker.last_stable_offset == 3
    broker.abort(producer_id=OTHER)
    assert broker.last_stable_offset == broker.end_offset == 7


def test_committed_reads_end_at_the_last_stable_offset(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN)
    broker.append()
    assert broker.plan(isolation=COMMITTED).upto == 1
    assert broker.plan(isolation=UNCOMMITTED).upto == 2


def test_c147_the_log_start_never_passes_the_last_stable_offset(broker: BrokerHarness) -> None:
    broker.append(producer_id=PLAIN, count=3)
    broker.append()
    broker.append(producer_id=PLAIN)
    with pytest.raises(OffsetOutOfRangeError, match="last stable offset 3"):
        broker.delete_records(4)
    assert broker.delete_records(None).log_start_offset == 3
    assert broker.plan(3).log_start_offset == 3
    assert broker.journal[-1][1] == LogStartMoved(log_id=0, log_start_offset=3)
    assert broker.delete_records(2).log_start_offset == 3


# -- aborted index --------------------------------------------------------------------------------


def test_c149_an_aborted_transaction_covers_all_from_its_first_batch_to_its_marker(
    broker: BrokerHarness,
) -> None:
    broker.append(producer_id=PLAIN)
    for sequence in range(3):
        broker.append(sequence=sequence)
        broker.append(producer_id=OTHER, sequence=sequence)
    broker.abort(producer_id=PRODUCER)
    broker.commit(producer_id=OTHER)
    assert broker.aborted_offsets(PRODUCER) == list(range(1, 8))
    assert broker.aborted_offsets(OTHER) == []


def test_the_aborted_index_forgets_what_lies_below_the_log_start(broker: BrokerHarness) -> None:
    for epoch in range(3):
        broker.append(epoch=epoch)
        broker.abort(epoch=epoch)
    broker.delete_records(3)
    assert len(broker.plan(3).aborted) == 2
    broker.delete_records(6)
    assert len(broker.plan(6).aborted) == 0


def test_a_read_under_way_knows_of_aborted_batches_that_go_meanwhile(
    broker: BrokerHarness,
) -> None:
    broker.append()
    broker.abort()
    plan = broker.plan()
    broker.delete_records(2)
    assert plan.aborted.covers(PRODUCER, 0, 0)


# -- epochs that were never given out --------------------------------------------------------------


def test_an_epoch_never_given_out_is_closed_without_locking_out_the_real_one(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=99)
    with pytest.raises(InvalidProducerEpochError):
        broker.append(epoch=5)
    broker.never_given(epoch=99, current_epoch=5)
    assert broker.aborted_offsets(epoch=99) == [0, 1]
    assert broker.append(epoch=6, sequence=0) == 2
    broker.commit(epoch=6)
    assert broker.last_stable_offset == 4


def test_the_current_epoch_writes_no_more_where_an_invented_one_was(broker: BrokerHarness) -> None:
    """Whether a batch of it is a repeat is not known any more, so it must not be taken for new."""
    broker.append(epoch=5, sequence=0)
    broker.append(epoch=99)
    broker.never_given(epoch=99, current_epoch=5)
    for sequence in (0, 1):
        with pytest.raises(OutOfOrderSequenceNumberError):
            broker.append(epoch=5, sequence=sequence)
    broker.commit(epoch=5)
    assert broker.append(epoch=6) == 4


def test_a_late_never_given_does_not_lower_the_fence(broker: BrokerHarness) -> None:
    broker.append(epoch=99)
    broker.commit(epoch=7)
    broker.never_given(epoch=99, current_epoch=5)
    with pytest.raises(InvalidProducerEpochError, match="fence 8"):
        broker.append(epoch=7)
    assert broker.append(epoch=8) == 2


def test_several_invented_epochs_are_closed_one_after_the_other(broker: BrokerHarness) -> None:
    broker.append(epoch=98)
    broker.append(epoch=99)
    broker.never_given(epoch=98, current_epoch=5)
    broker.append(epoch=6)
    broker.never_given(epoch=99, current_epoch=6)
    assert broker.append(epoch=6, sequence=1) == 5
    broker.abort(epoch=6)
    assert broker.last_stable_offset == 7


def test_never_given_for_a_transaction_that_is_closed_already_changes_nothing(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=3)
    broker.commit(epoch=3)
    written = len(broker.journal)
    broker.never_given(epoch=3, current_epoch=1)
    assert len(broker.journal) == written


def test_an_invented_epoch_that_is_given_out_later_is_another_transaction(
    broker: BrokerHarness,
) -> None:
    broker.append(epoch=9)
    broker.never_given(epoch=9, current_epoch=0)
    broker.append(epoch=9)
    broker.commit(epoch=9)
    assert broker.aborted_offsets(epoch=9) == [0, 1]
    assert broker.plan().partition == TopicPartition(ORDERS, 0)


def test_both_aborts_of_an_epoch_given_out_later_are_remembered(broker: BrokerHarness) -> None:
    broker.append(epoch=9)
    broker.never_given(epoch=9, current_epoch=0)
    broker.append(producer_id=PLAIN)
    broker.append(epoch=9)
    broker.abort(epoch=9)
    assert broker.aborted_offsets(epoch=9) == [0, 1, 3, 4]


def test_an_invented_producer_id_leaves_nothing_to_its_later_owner(broker: BrokerHarness) -> None:
    broker.append(epoch=0)
    broker.append(epoch=7)
    broker.never_given(epoch=7, current_epoch=-1)
    broker.never_given(epoch=0, current_epoch=-1)
    assert broker.aborted_offsets(epoch=0) == [0, 1, 2, 3]
    assert broker.append(epoch=0, sequence=0) == 4
    broker.commit(epoch=0)
    assert broker.aborted_offsets(epoch=0) == [0, 1, 2, 3]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_marker_that_comes_first_locks_out_its_own_epoch(
    broker: BrokerHarness, epoch: int
) -> None:
    """The batch that it ends may still be on its way: taken now, it would open the transaction."""
    for each in range(epoch + 1):
        broker.abort(epoch=each)
    with pytest.raises(InvalidProducerEpochError):
        broker.append(epoch=epoch)
    assert broker.append(epoch=epoch + 1) == 0
