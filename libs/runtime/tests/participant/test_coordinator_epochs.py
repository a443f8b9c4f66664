"""What a deposed coordinator says is refused."""

import pytest

from semel_common.errors import TransactionCoordinatorFencedError
from semel_common.ids import producer_id_of
from semel_runtime.participant.coordinator_epochs import (
    CoordinatorEpochs,
    CoordinatorEpochSeen,
)

THREE, FOUR = producer_id_of(3, 1), producer_id_of(4, 1)


def seen(partition: int, epoch: int) -> CoordinatorEpochSeen:
    return CoordinatorEpochSeen(transaction_log_partition=partition, coordinator_epoch=epoch)


@pytest.fixture
def epochs() -> CoordinatorEpochs:
    known = CoordinatorEpochs()
    known.replay(7, seen(3, 5))
    return known


def test_a_newer_epoch_is_a_fact_and_the_same_one_is_none(epochs: CoordinatorEpochs) -> None:
    check = epochs.check()
    assert check.see(THREE, 5) == ()
    assert check.see(THREE, 6) == (seen(3, 6),)
    assert check.see(THREE, 6) == ()


def test_an_older_epoch_is_refused(epochs: CoordinatorEpochs) -> None:
    with pytest.raises(TransactionCoordinatorFencedError, match=r"4 of .* 3 is older than 5"):
        epochs.check().see(THREE, 4)


def test_an_epoch_older_than_one_of_the_same_request_is_refused(epochs: CoordinatorEpochs) -> None:
    check = epochs.check()
    check.see(THREE, 7)
    with pytest.raises(TransactionCoordinatorFencedError):
        check.see(THREE, 6)


def test_partitions_have_epochs_of_their_own_the_first_of_which_may_be_0(
    epochs: CoordinatorEpochs,
) -> None:
    assert epochs.check().see(FOUR, 0) == (seen(4, 0),)


def test_a_check_changes_nothing_and_replay_does(epochs: CoordinatorEpochs) -> None:
    epochs.check().see(THREE, 6)
    assert epochs.newest(3) == 5
    epochs.replay(9, seen(3, 6))
    assert epochs.newest(3) == 6
    assert list(epochs.snapshot()) == [(9, seen(3, 6))]
