"""AddPartitionsToTxn and AddOffsetsToTxn."""

import pytest
from transactions_harness import A0, A1, B0, GROUP, TransactionsHarness, after

from semel_common.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    NotCoordinatorError,
    ProducerFencedError,
    ThrottlingQuotaExceededError,
)
from semel_common.ids import TopicPartition, partition_for_id
from semel_coordinator.transactions.machine import (
    ParticipantsAdded,
    TransactionKey,
    TransactionLimits,
    TransactionState,
)


def test_the_first_participant_makes_a_transaction_ongoing() -> None:
    """C-059."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    assert harness.states() == [TransactionState.ONGOING]
    assert harness.records == ()


def test_only_what_is_new_is_written() -> None:
    """C-059, C-060: and a repeat with nothing new writes nothing."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    start_ms = harness.now_ms
    harness.now_ms += 500
    harness.add(key, A0, A1, A1)
    (record,) = harness.records
    assert isinstance(record, ParticipantsAdded)
    assert (record.participants, record.start_ms) == ((A1,), start_ms)
    harness.add(key, A1, A0)
    assert harness.records == ()


def test_a_group_is_a_participant_like_any_other() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    harness.run(
        harness.machine.add_offsets_to_txn("app", key, GROUP.group_id, now_ms=harness.now_ms)
    )
    harness.commit(key)
    assert set(harness.machine.markers.pending()[0].committing) == {GROUP}


def test_the_next_transaction_may_begin_while_markers_are_on_their_way() -> None:
    """C-057, C-062: where Kafka answers CONCURRENT_TRANSACTIONS."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.commit(key)
    harness.add(after(key), A0)
    assert harness.states() == [TransactionState.PREPARE_COMMIT, TransactionState.ONGOING]
    harness.commit(after(key))
    harness.complete(key)
    assert harness.states() == [TransactionState.PREPARE_COMMIT, TransactionState.EMPTY]


def test_a_registration_never_acts_on_the_next_transaction() -> None:
    """C-008: KAFKA-17754, a delayed request of one transaction."""
    harness = TransactionsHarness()
    key = harness.init()
    harness.add(key, A0)
    harness.commit(key)
    with pytest.raises(InvalidTxnStateError) as caught:
        harness.add(key, B0)
    assert caught.value.details["outcome"] == "COMMITTED"
    assert harness.states() == [TransactionState.PREPARE_COMMIT, TransactionState.EMPTY]


def test_an_epoch_of_a_fenced_instance_is_fenced() -> None:
    """C-068: by Kafka's newer name."""
    harness = TransactionsHarness()
    key = harness.init(instance="one")
    harness.init(instance="two")
    with pytest.raises(ProducerFencedError, match="fenced by a newer producer instance"):
        harness.add(key, A0)


def test_an_unknown_id_is_told_apart_from_another_owner() -> None:
    harness = TransactionsHarness(coordinators=2)
    names = [f"id-{number}" for number in range(20)]
    mine = next(name for name in names if partition_for_id(name, 10) % 2 == 0)
    other = next(name for name in names if partition_for_id(name, 10) % 2 == 1)
    with pytest.raises(InvalidProducerIdMappingError, match="is unknown"):
        harness.add(TransactionKey(1, 0), A0, transactional_id=mine)
    with pytest.raises(NotCoordinatorError):
        harness.add(TransactionKey(1, 0), A0, transactional_id=other)


def test_participants_of_one_transaction_are_bounded() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(participants_max=2))
    key = harness.init()
    harness.add(key, A0, A1, A0)
    with pytest.raises(InvalidRequestError, match="a transaction of 3 participants is over 2"):
        harness.add(key, A0, B0)
    with pytest.raises(InvalidRequestError, match="a transaction of 3 participants is over 2"):
        harness.add(harness.init("other"), A0, A1, B0, transactional_id="other")


def test_transactions_are_bounded_but_open_ones_go_on() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(transactions_max=1))
    key, other = harness.init(), harness.init("other")
    harness.add(key, A0)
    with pytest.raises(ThrottlingQuotaExceededError, match="keeps 1 transactions already"):
        harness.add(other, A0, transactional_id="other")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.commit(other, [A0], transactional_id="other")
    assert harness.commit(other, [], transactional_id="other") == after(other, 1)
    # An abort goes on, without a marker for participants that are only named: they ask.
    assert harness.abort(after(other), [A0], transactional_id="other") == after(other, 2)
    assert harness.machine.markers.pending() == []
    harness.add(key, A1)
    harness.commit(key)
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.add(after(key), A0)
    harness.complete(key)
    harness.add(after(key), A0)


def test_participants_of_all_transactions_are_bounded() -> None:
    harness = TransactionsHarness(limits=TransactionLimits(all_participants_max=3))
    key, other = harness.init(), harness.init("other")
    harness.add(key, A0, A1)
    with pytest.raises(ThrottlingQuotaExceededError, match="have 2 participants, 2 more"):
        harness.add(other, A0, A1, transactional_id="other")
    harness.add(other, A0, transactional_id="other")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.commit(other, [A0, A1], transactional_id="other")
    # What is registered may always commit.
    harness.commit(other, [A0], transactional_id="other")
    harness.abort(key, [A0, B0])
    assert [set(marker.participants) for marker in harness.machine.markers.pending()] == [
        {A0},
        {A0, A1},
    ]
    harness.restart()
    assert harness.machine._state.participant_count == 3
    harness.complete(key, other)
    assert harness.machine._state.participant_count == 0


def test_one_more_participant_costs_the_same_however_many_there_are() -> None:
    harness = TransactionsHarness()
    key = harness.init()
    for number in range(100):
        harness.add(key, TopicPartition("topic-a", number))
        assert len(harness.journal[-1]) < 100
    harness.restart()
    harness.commit(key)
    assert len(harness.machine.markers.pending()[0].committing) == 100
