"""Moves of transaction-log partitions, followed late, twice, or by an uninvolved instance."""

import pytest
from transactions_harness import after, state_of
from transactions_on_the_move import (
    GIVEN_UP,
    MOVING,
    PARTITION,
    Pair,
    busy_pair,
    moved_image,
)
from transactions_steps import key_of

from semel_common.errors import CoordinatorNotAvailableError, FencedLeaderEpochError
from semel_coordinator.transactions.machine import TransactionState
from semel_coordinator.transactions.machine.moves import TransactionLogMoves
from semel_coordinator.transactions.machine.ownership import Ownership
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import PartitionLeader
from semel_runtime.machine import Result


@pytest.fixture
def pair() -> Pair:
    """Transactions in each of their states."""
    return busy_pair()


def test_a_hand_over_may_be_asked_for_again(pair: Pair) -> None:
    pair.led(MOVING)
    handed_over = pair.hand_over()
    assert pair.hand_over() == handed_over
    assert list(pair.old.records) == []


def test_what_moves_once_more_stays_handed_over(pair: Pair) -> None:
    """It is asked for under the new leader epoch before the old leader has followed that."""
    again = PartitionLeader(0, 1, moving_to=1)
    pair.led(MOVING)
    pair.hand_over()
    pair.old.cluster.replay(0, moved_image(again))
    pair.hand_over(again)
    pair.old.run(pair.old.machine.moves.follow())
    assert PARTITION not in pair.old.machine.markers.serving()


def test_no_partition_is_looked_up_while_nothing_moves() -> None:
    """A loop through hundreds of thousands of ids would hash each of them."""
    ownership = Ownership(TransactionsState(ClusterCopy()), instance_id=0, cluster=ClusterCopy())
    assert ownership.serves_id("app")
    with pytest.raises(CoordinatorNotAvailableError):
        ownership.partition_for("app")


def test_nothing_is_left_of_a_moved_partition(pair: Pair) -> None:
    pair.move()
    state = pair.old.machine._state
    assert (state.participant_count, state.participants_bytes) == (0, 0)
    assert state.transaction_count == 0


def test_what_was_completed_elsewhere_is_complete_when_it_comes_back(pair: Pair) -> None:
    key = key_of(pair.old, "app", 0)
    pair.move()
    pair.new.complete(after(key, -2))
    back = Pair()
    back.old, back.new = pair.new, pair.old
    home = PartitionLeader(1, 1, moving_to=0)
    back.led(home)
    back.take_over(back.hand_over(home), leader=home)
    back.led(PartitionLeader(0, 2))
    assert back.new.states() == [TransactionState.PREPARED, TransactionState.ONGOING]
    assert back.new.machine.markers.is_complete(after(key, -2))


def test_moves_between_others_are_no_business_of_a_third_leader(pair: Pair) -> None:
    pair.move()
    for leader in (PartitionLeader(1, 1, moving_to=2), PartitionLeader(2, 2)):
        pair.led(leader)
        assert list(pair.old.records) == []


def test_nothing_arrives_before_the_cluster_is_known() -> None:
    moves = TransactionLogMoves(
        TransactionsState(ClusterCopy()), instance_id=1, cluster=ClusterCopy()
    )
    assert moves.arrivals() == Result([])


def test_nothing_is_taken_of_a_move_that_was_given_up_meanwhile(pair: Pair) -> None:
    pair.led(MOVING)
    handed_over, move = pair.hand_over(), pair.move_of()
    moves = pair.new.machine.moves
    pair.new.run(moves.begin_take_over(move))
    pair.led(GIVEN_UP)
    with pytest.raises(FencedLeaderEpochError):
        pair.new.run(moves.take_over(move, handed_over, whole=True, now_ms=0))
    assert state_of(pair.new.machine) == []


def test_a_recovery_goes_on_serving_what_has_moved_here_and_stays(pair: Pair) -> None:
    pair.move()
    new, image_now = pair.new, pair.new.cluster.image
    assert image_now is not None
    records = new.machine.raised(
        [PARTITION], image=image_now, floor=1_000, producer_ids_floor=500, now_ms=new.now_ms
    )
    new.run(Result(None, records))
    new.run(new.machine.claim())
    assert new.machine.markers.serving() == {PARTITION: 1_001}
