"""Claiming: the coordinator epoch of each owned partition rises at each start."""

from transactions_harness import TransactionsHarness

from semel_coordinator.transactions.machine import CoordinatorEpoch


def test_each_start_raises_the_epoch_of_every_owned_partition() -> None:
    harness = TransactionsHarness(coordinators=3, instance_id=1)
    assert [harness.machine.markers.serving()[each] for each in (1, 4, 7)] == [1, 1, 1]
    harness.restart()
    assert harness.run(harness.machine.claim()) == 3
    assert [harness.machine.markers.serving()[each] for each in (1, 4, 7)] == [2, 2, 2]


def test_a_claim_is_one_record_for_each_partition() -> None:
    harness = TransactionsHarness(coordinators=3, instance_id=2, claim=False)
    harness.run(harness.machine.claim())
    assert list(harness.records) == [
        CoordinatorEpoch(partition=each, coordinator_epoch=1) for each in (2, 5, 8)
    ]
