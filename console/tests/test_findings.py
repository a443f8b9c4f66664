"""The doctor's findings, and the states that it accepts."""

import shlex
from dataclasses import replace

import pytest

from aiosemel import (
    ClusterDescription,
    DiskShortage,
    InstanceDescription,
    KnownOutcome,
    OpenTransaction,
    OpenTransactions,
    PartitionReassignment,
    ServiceRole,
    TopicPartition,
    TransactionListing,
    TransactionOutcomeDescription,
    TransactionState,
)
from semel_console.insight import doctor_checks
from semel_console.insight.doctor_checks import Thresholds

LIMITS = Thresholds()
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def open_at(
    *,
    age_ms: int,
    outcome: KnownOutcome | None,
    left_ms: int | None = None,
    epoch: int = 4,
    answered: bool = True,
) -> OpenTransaction:
    known = outcome and TransactionOutcomeDescription(
        transactional_id="app",
        producer_id=1,
        producer_epoch=epoch,
        outcome=outcome,
        abort_reason=None,
        is_complete=False,
        current_epoch=5,
        time_left_ms=left_ms,
    )
    return OpenTransaction(
        partition=TopicPartition("orders", 0),
        group_id=None,
        producer_id=1,
        producer_epoch=epoch,
        start_time_ms=NOW_MS - age_ms,
        age_ms=age_ms,
        first_offset=7,
        known=known or None,
        problem="" if known else "was never given out",
        coordinator_answered=answered,
    )


def listing(
    name: str = "app",
    *,
    state: TransactionState = TransactionState.EMPTY,
    epoch: int = 9,
    idle_ms: int = 0,
    incomplete: int = 0,
    fenced: int = 0,
) -> TransactionListing:
    return TransactionListing(
        transactional_id=name,
        producer_id=1,
        producer_epoch=epoch,
        state=state,
        start_time_ms=None,
        incomplete_transactions=incomplete,
        transaction_timeout_ms=60_000,
        last_update_time_ms=NOW_MS - idle_ms,
        fenced_transactions=fenced,
    )


@pytest.mark.parametrize("outcome", [KnownOutcome.COMMITTED, KnownOutcome.ABORTED, None])
def test_a_decided_transaction_that_is_still_open_is_stuck(outcome: KnownOutcome | None) -> None:
    (finding,) = doctor_checks.stuck([open_at(age_ms=60_000, outcome=outcome)], LIMITS)
    assert "orders" in finding.what
    assert "1/4" in finding.what
    assert not [*doctor_checks.stuck([open_at(age_ms=59_999, outcome=outcome)], LIMITS)]


def test_a_transaction_whose_coordinator_is_away_is_not_stuck() -> None:
    asked = open_at(age_ms=60_000, outcome=None, answered=False)
    assert not [*doctor_checks.stuck([asked], LIMITS)]


def test_what_may_still_be_open_is_not_stuck_but_may_be_nearly_timed_out() -> None:
    late = open_at(age_ms=800_000, outcome=KnownOutcome.ONGOING, left_ms=200_000)
    early = open_at(age_ms=799_000, outcome=KnownOutcome.ONGOING, left_ms=201_000)
    decided = open_at(age_ms=800_000, outcome=KnownOutcome.ABORTED)
    assert not [*doctor_checks.stuck([late], LIMITS)]
    (finding,) = doctor_checks.nearly_timed_out([late, early, late, decided], LIMITS)
    assert "semel transactions abort app --producer-id 1 --epoch 4" in finding.do


def test_a_move_waits_for_a_broker_that_is_away() -> None:
    moving = {
        TopicPartition("orders", 2): PartitionReassignment(leader_id=0, moving_to=1),
        TopicPartition("orders", 3): PartitionReassignment(leader_id=0, moving_to=11),
    }
    here = OpenTransactions(transactions=(), truncated=False, unreachable=())
    away = replace(here, unreachable=("broker-1: no service answers",))
    (finding,) = doctor_checks.waiting_moves(moving, away)
    assert "orders-2 moves from broker-0 to broker-1, and broker-1 does not answer" in finding.what
    assert "semel topics move orders --partition 2 --cancel" in finding.do
    assert not [*doctor_checks.waiting_moves(moving, here)]


def test_markers_that_are_missing_for_long_are_late() -> None:
    decided = TransactionState.PREPARE_COMMIT
    late = listing(state=decided, idle_ms=30_000, incomplete=2)
    fresh = listing(state=decided, idle_ms=29_999, incomplete=2)
    (finding,) = doctor_checks.late_markers([late, fresh, listing(idle_ms=HOUR_MS)], LIMITS, NOW_MS)
    assert "2 decided transactions" in finding.what
    assert "semel transactions describe app" in finding.do


def test_ids_that_are_taken_from_one_another_are_a_duel() -> None:
    (finding,) = doctor_checks.duels([listing(fenced=3), listing("other", fenced=2)])
    assert "app was taken over 3 times" in finding.what


def test_ids_that_are_used_once_and_left_are_churn() -> None:
    left = [listing(f"run-{number}", epoch=1, idle_ms=HOUR_MS) for number in range(100)]
    used = [listing(f"app-{number}") for number in range(99)]
    (finding,) = doctor_checks.churn([*left, *used], LIMITS, NOW_MS)
    assert finding.what == (
        "100 of 199 transactional ids were used once, and left, such as run-0, run-1, run-2"
    )
    assert not [*doctor_checks.churn([*left, *used, listing()], LIMITS, NOW_MS)], (
        "not more than half"
    )
    assert not [*doctor_checks.churn(left[1:], LIMITS, NOW_MS)], "not many"


def test_instances_that_do_not_answer_are_named() -> None:
    found = OpenTransactions(transactions=(), truncated=False, unreachable=("broker-1: away",))
    (finding,) = doctor_checks.unreachable(found)
    assert finding.what == "broker-1: away"


def test_what_is_prepared_for_long_waits_for_its_owner_and_is_not_stuck() -> None:
    prepared = replace(
        listing(state=TransactionState.PREPARED, epoch=4), start_time_ms=NOW_MS - HOUR_MS
    )
    fresh = replace(prepared, start_time_ms=NOW_MS - HOUR_MS + 1)
    (finding,) = doctor_checks.prepared_for_long([prepared, fresh, listing()], LIMITS, NOW_MS)
    assert "app/4" in finding.what
    assert "semel transactions complete app 4" in finding.do
    assert "semel transactions resolve --database URL" in finding.do
    here = open_at(age_ms=HOUR_MS, outcome=KnownOutcome.PREPARED)
    assert not [
        *doctor_checks.stuck([here], LIMITS),
        *doctor_checks.nearly_timed_out([here], LIMITS),
    ]


def test_disks_below_their_reserve_are_found() -> None:
    shortage = DiskShortage(folder="/data/broker-0", free_bytes=1_200, reserve_bytes=64 << 20)
    broker = InstanceDescription(
        role=ServiceRole.BROKER,
        instance_id=0,
        host="h",
        port=5,
        claim_epoch=1,
        last_registered_ms=NOW_MS,
        leader_partitions=1,
        is_controller=False,
    )
    described = ClusterDescription(
        cluster_id="c",
        version=1,
        transaction_log_partitions=50,
        group_partitions=50,
        topic_count=1,
        partition_count=1,
        instances=(broker, replace(broker, instance_id=1, disk_shortage=shortage)),
    )
    (found,) = doctor_checks.full_disks(described)
    assert found.what == (
        "the disk of broker-1 at h:5 is below its reserve: 1,200 bytes are free in /data/broker-0,"
        " and disk_reserve_bytes is 67,108,864; the instance refuses new data"
    )


def test_remedies_are_lines_that_a_shell_reads_with_any_name_in_them() -> None:
    name = "--it's $HOME"
    running = open_at(age_ms=800_000, outcome=KnownOutcome.ONGOING, left_ms=200_000)
    assert running.known is not None
    running = replace(running, known=replace(running.known, transactional_id=name))
    late = listing(name, state=TransactionState.PREPARE_COMMIT, idle_ms=30_000, incomplete=2)
    old = replace(listing(name, state=TransactionState.PREPARED), start_time_ms=1)
    lines = [
        line
        for finding in (
            *doctor_checks.nearly_timed_out([running], LIMITS),
            *doctor_checks.late_markers([late], LIMITS, NOW_MS),
            *doctor_checks.prepared_for_long([old], LIMITS, NOW_MS),
        )
        for line in finding.do.split("`")
        if name.partition("'")[0] in line
    ]
    assert [shlex.split(line) for line in lines] == [
        ["semel", "transactions", "abort", *("--producer-id", "1", "--epoch", "4", "--", name)],
        ["semel", "transactions", "describe", "--", name],
        ["semel", "transactions", "complete", "--commit", "--", name, "9"],
    ]
