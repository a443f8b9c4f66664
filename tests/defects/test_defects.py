"""The simulation finds some planted defects at once; ``make defects`` looks for all of them."""

import pytest

from defects import DEFECTS, planted
from defects.hunt import hunt
from semel_broker.machine.log.partition_log import PartitionLog
from semel_coordinator.transactions.machine import TransactionsMachine

QUICK = (
    "aborted-undecided",
    "any-member-commits",
    "empty-commit-keeps-epoch",
    "free-partitions-wait",
    "group-without-fence",
    "joint-older-run-not-fenced",
    "log-files-not-named-durably",
    "log-not-carried-over",
    "log-not-synced",
    "lso-off-by-one",
    "marker-of-any-epoch",
    "memory-answers-for-the-tables",
    "missing-commits-let-in",
    "older-epoch-taken",
    "claim-keeps-epoch",
    "reopened-at-the-end",
    "repeat-by-sequence",
    "repeats-stored-again",
    "snapshot-ahead-of-the-tables",
    "stored-too-early",
)
SEEDS = 5


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUICK)
def test_a_planted_defect_is_found_at_once(name: str) -> None:
    report = hunt(name, SEEDS)
    assert report is not None, f"{name} is not found in {SEEDS} seeds"


@pytest.mark.parametrize("name", DEFECTS)
def test_the_code_that_a_defect_replaces_exists(name: str) -> None:
    with planted(name):
        pass


def test_nothing_of_a_defect_is_left() -> None:
    before = (PartitionLog.last_stable_offset, TransactionsMachine.end_txn)
    hunt("lso-off-by-one", 0)
    hunt("empty-commit-keeps-epoch", 0)
    assert (PartitionLog.last_stable_offset, TransactionsMachine.end_txn) == before


def test_enough_defects_are_planted_and_each_says_what_it_is() -> None:
    assert len(DEFECTS) >= 40
    assert all(each.says for each in DEFECTS.values())
