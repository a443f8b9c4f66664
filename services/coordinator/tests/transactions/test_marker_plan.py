"""The plan of the fan-out: batches, order, refusals and pauses. No loop, no network."""

from collections.abc import Iterable, Mapping

import pytest
from transactions_harness import A0, A1, B0, GROUP

from semel_common.ids import GroupId, Participant, TopicPartition, producer_id_of
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    TransactionKey,
    TransactionState,
    in_order,
)
from semel_coordinator.transactions.markers import MarkerOptions
from semel_coordinator.transactions.markers.marker import NOWHERE, Target
from semel_coordinator.transactions.markers.plan import LaneStanding, MarkerPlan
from semel_runtime.cluster.metadata_image import ServiceRole

BROKER_0 = Target(ServiceRole.BROKER, 0)
BROKER_1 = Target(ServiceRole.BROKER, 1)
GROUPS = Target(ServiceRole.GROUP_COORDINATOR, 0)

P = producer_id_of(3, 1)
Q = producer_id_of(4, 1)


class PlanHarness:
    """A plan whose routes a test changes, with pauses of 1, 2, 4, 4 … seconds."""

    def __init__(
        self,
        *,
        jitter: float = 0.0,
        batch_markers_max: int = 1_000,
        batch_participants_max: int = 1_000,
    ) -> None:
        self.moved: dict[Participant, Target] = {}
        self.woken: list[Target] = []
        self.plan = MarkerPlan(
            MarkerOptions(
                backoff_ms=1_000,
                backoff_max_ms=4_000,
                batch_markers_max=batch_markers_max,
                batch_participants_max=batch_participants_max,
            ),
            route=self._route,
            wake=self.woken.append,
            jitter=lambda: jitter,
        )

    def add(
        self,
        producer_id: int,
        epoch: int,
        *committing: Participant,
        aborting: Iterable[Participant] = (),
    ) -> TransactionKey:
        """Plan a transaction."""
        key = TransactionKey(producer_id, epoch)
        decided = DecidedTransaction(
            producer_id=producer_id,
            producer_epoch=epoch,
            state=TransactionState.PREPARE_COMMIT,
            start_ms=1,
            committing=in_order(committing),
            aborting=in_order(aborting),
            reason=None,
            traceparent="trace",
        )
        self.plan.add(decided)
        return key

    def take(self, target: Target, now: float = 0.0) -> list[str]:
        """The next batch, as ``producer:epoch result participants``."""
        return [
            f"{'P' if each.key.producer_id == P else 'Q'}{each.key.producer_epoch}"
            f" {'commit' if each.commit else 'abort'} {names(each.participants)}"
            for each in self.plan.next_batch(target, now)
        ]

    def deliver(
        self,
        target: Target,
        refused: Mapping[int, Iterable[Participant]] | None = None,
        now: float = 0.0,
    ) -> list[TransactionKey]:
        """Note an answer."""
        return self.plan.delivered(
            target, {index: in_order(each) for index, each in (refused or {}).items()}, now
        )

    def _route(self, participant: Participant) -> Target:
        if participant in self.moved:
            return self.moved[participant]
        if isinstance(participant, GroupId):
            return GROUPS
        return Target(ServiceRole.BROKER, participant.partition)


def names(participants: Iterable[Participant]) -> str:
    return "+".join(
        {A0: "a0", A1: "a1", B0: "b0", GROUP: "g"}.get(participant, str(participant))
        for participant in participants
    )


def test_each_instance_gets_one_marker_for_all_its_participants() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0, B0, A1, GROUP)
    assert harness.woken == [BROKER_0, BROKER_1, GROUPS]
    assert harness.take(BROKER_0) == ["P0 commit a0+b0"]
    assert harness.take(BROKER_1) == ["P0 commit a1"]
    assert harness.take(GROUPS) == ["P0 commit g"]


def test_a_commit_may_abort_for_some() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0, aborting=[B0])
    assert harness.take(BROKER_0) == ["P0 commit a0", "P0 abort b0"]


def test_a_transaction_is_finished_by_its_last_acknowledgement_and_once() -> None:
    """C-116."""
    harness = PlanHarness()
    key = harness.add(P, 0, A0, A1)
    harness.take(BROKER_0)
    harness.take(BROKER_1)
    assert harness.plan.missing(key) == {A0, A1}
    assert harness.deliver(BROKER_0) == []
    assert harness.plan.missing(key) == {A1}
    assert harness.deliver(BROKER_1) == [key]
    assert harness.plan.missing(key) is None


def test_a_repeat_of_a_decision_changes_nothing() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0)
    harness.add(P, 0, A0)
    assert harness.take(BROKER_0) == ["P0 commit a0"]


def test_what_queues_while_a_batch_is_in_flight_is_the_next_one() -> None:
    """C-066."""
    harness = PlanHarness()
    harness.add(P, 0, A0)
    assert harness.take(BROKER_0) == ["P0 commit a0"]
    harness.add(Q, 0, A0)
    harness.add(P, 1, A0)
    harness.deliver(BROKER_0)
    assert harness.take(BROKER_0) == ["Q0 commit a0", "P1 commit a0"]


def test_only_one_batch_is_in_flight_for_an_instance() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0)
    harness.take(BROKER_0)
    with pytest.raises(AssertionError, match="in flight"):
        harness.take(BROKER_0)


def test_a_batch_is_bounded_by_markers_and_by_participants() -> None:
    harness = PlanHarness(batch_markers_max=2, batch_participants_max=3)
    for epoch in range(3):
        harness.add(P, epoch, A0)
    harness.add(P, 3, A0, B0, TopicPartition("c", 0), TopicPartition("d", 0))
    harness.add(P, 4, A0)
    assert len(harness.take(BROKER_0)) == 2
    harness.deliver(BROKER_0)
    assert len(harness.take(BROKER_0)) == 2
    harness.deliver(BROKER_0)
    assert harness.take(BROKER_0) == ["P4 commit a0"]


def test_only_the_refused_participant_is_told_again_after_a_pause() -> None:
    """C-122."""
    harness = PlanHarness()
    key = harness.add(P, 0, A0, B0)
    harness.take(BROKER_0)
    assert harness.deliver(BROKER_0, {0: [B0]}, now=10.0) == []
    assert harness.plan.due_at(BROKER_0) == 11.0
    assert harness.take(BROKER_0, now=10.9) == []
    assert harness.take(BROKER_0, now=11.0) == ["P0 commit b0"]
    assert harness.deliver(BROKER_0) == [key]


def test_markers_of_one_participant_never_overtake_one_another() -> None:
    harness = PlanHarness()
    for epoch in range(2):
        harness.add(P, epoch, A0, B0)
    harness.take(BROKER_0)
    # The second one is refused too, though nothing is said of the first one of a0.
    harness.deliver(BROKER_0, {0: [B0], 1: [B0]})
    harness.add(P, 2, A0, B0)
    harness.add(Q, 0, B0)
    assert harness.take(BROKER_0) == ["P2 commit a0"]
    harness.deliver(BROKER_0)
    harness.add(P, 3, B0, A0)
    assert harness.take(BROKER_0, now=1.0) == [
        "P0 commit b0",
        "P1 commit b0",
        "P2 commit b0",
        "Q0 commit b0",
        "P3 commit b0+a0",
    ]


def test_pauses_double_up_to_a_bound_and_start_over_after_a_success() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0)
    now, pauses = 0.0, []
    for _ in range(5):
        harness.take(BROKER_0, now)
        harness.deliver(BROKER_0, {0: [A0]}, now)
        due = harness.plan.due_at(BROKER_0)
        assert due is not None
        pauses.append(due - now)
        now = due
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]
    harness.take(BROKER_0, now)
    harness.deliver(BROKER_0, now=now)
    harness.add(P, 1, A0)
    harness.take(BROKER_0, now)
    harness.deliver(BROKER_0, {0: [A0]}, now)
    assert harness.plan.due_at(BROKER_0) == now + 1.0


def test_chance_shortens_a_pause_to_half_at_most() -> None:
    harness = PlanHarness(jitter=1.0)
    harness.add(P, 0, A0)
    harness.take(BROKER_0)
    harness.plan.undelivered(BROKER_0, 0.0)
    assert harness.plan.due_at(BROKER_0) == 0.5


def test_a_batch_without_an_answer_is_sent_again_before_what_came_later() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0)
    harness.add(Q, 0, A0)
    harness.take(BROKER_0)
    harness.plan.undelivered(BROKER_0, 5.0)
    assert harness.plan.failures_of(BROKER_0) == 1
    harness.add(P, 1, A0)
    assert harness.plan.due_at(BROKER_0) == 6.0
    assert harness.take(BROKER_0, now=5.5) == []
    assert harness.take(BROKER_0, now=6.0) == ["P0 commit a0", "Q0 commit a0", "P1 commit a0"]
    harness.plan.undelivered(BROKER_0, 6.0)
    assert harness.plan.due_at(BROKER_0) == 8.0
    harness.take(BROKER_0, now=8.0)
    harness.deliver(BROKER_0, now=8.0)
    assert harness.plan.failures_of(BROKER_0) == 0
    assert harness.plan.due_at(BROKER_0) is None


def test_one_marker_that_cannot_be_taken_holds_up_no_other() -> None:
    harness = PlanHarness()
    keys = [harness.add(P, epoch, A0 if epoch == 2 else B0) for epoch in range(5)]
    finished: list[TransactionKey] = []
    batches: list[list[str]] = []
    for second in range(8):
        batch = harness.take(BROKER_0, float(second))
        batches.append([each.removesuffix(" commit b0") for each in batch])
        if any("a0" in each for each in batch):
            harness.plan.rejected(BROKER_0, float(second))
        else:
            finished += harness.deliver(BROKER_0, now=float(second))
    assert batches == [
        ["P0", "P1", "P2 commit a0", "P3", "P4"],
        ["P0", "P1"],
        ["P2 commit a0", "P3", "P4"],
        ["P2 commit a0"],
        ["P2 commit a0", "P3"],
        ["P2 commit a0"],
        ["P3", "P4"],
        ["P2 commit a0"],
    ]
    assert finished == [keys[0], keys[1], keys[3], keys[4]]


def test_what_is_held_waits_for_the_instance_too() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0, B0)
    harness.take(BROKER_0)
    harness.deliver(BROKER_0, {0: [B0]})
    harness.add(P, 1, A0)
    harness.take(BROKER_0, now=0.5)
    harness.plan.undelivered(BROKER_0, 0.5)
    harness.take(BROKER_0, now=1.5)
    harness.plan.undelivered(BROKER_0, 1.5)
    assert harness.plan.due_at(BROKER_0) == 3.5


def test_a_partition_that_moved_is_followed_to_its_new_leader() -> None:
    harness = PlanHarness()
    key = harness.add(P, 0, A0, B0)
    harness.take(BROKER_0)
    harness.deliver(BROKER_0, {0: [B0]})
    harness.moved[B0] = BROKER_1
    harness.woken.clear()
    assert harness.take(BROKER_0, now=1.0) == []
    assert harness.woken == [BROKER_1]
    assert harness.take(BROKER_1) == ["P0 commit b0"]
    assert harness.deliver(BROKER_1) == [key]


def test_an_instance_that_is_gone_gives_its_markers_to_the_new_leaders() -> None:
    harness = PlanHarness()
    harness.add(P, 0, A0, B0)
    harness.take(BROKER_0)
    harness.moved[A0] = BROKER_1
    harness.plan.undelivered(BROKER_0, 0.0)
    assert harness.take(BROKER_0, now=1.0) == ["P0 commit b0"]
    assert harness.take(BROKER_1) == ["P0 commit a0"]


def test_an_unknown_partition_waits_nowhere_until_it_is_found() -> None:
    harness = PlanHarness()
    harness.moved[A0] = NOWHERE
    key = harness.add(P, 0, A0)
    assert harness.take(NOWHERE) == ["P0 commit a0"]
    harness.deliver(NOWHERE, {0: [A0]})
    del harness.moved[A0]
    assert harness.take(NOWHERE, now=1.0) == []
    assert harness.take(BROKER_0) == ["P0 commit a0"]
    assert harness.deliver(BROKER_0) == [key]


def test_a_deleted_partition_counts_as_acknowledged() -> None:
    harness = PlanHarness()
    harness.moved[A0] = NOWHERE
    key = harness.add(P, 0, A0)
    harness.take(NOWHERE)
    assert harness.deliver(NOWHERE) == [key]


def test_a_transaction_log_partition_that_is_lost_sends_no_more() -> None:
    """C-119, C-123."""
    harness = PlanHarness()
    key = harness.add(P, 0, A0)
    harness.add(Q, 0, A0)
    harness.take(BROKER_0)
    harness.plan.stop(3)
    harness.deliver(BROKER_0, {0: [A0]})
    harness.add(P, 1, A0)
    harness.add(Q, 1, A0)
    assert harness.take(BROKER_0, now=1.0) == ["Q1 commit a0"]
    assert harness.plan.missing(key) == {A0}


# -- what operators see, and what moves away -------------------------------------------------------


def test_a_lane_stands_at_what_waits_what_is_in_flight_and_what_is_held() -> None:
    harness = PlanHarness(batch_markers_max=1)
    harness.add(P, 0, A0)
    harness.add(Q, 0, A0)
    harness.add(Q, 1, A0)
    harness.take(BROKER_0)
    assert dict(harness.plan.standing()) == {BROKER_0: LaneStanding(3, 1, 0)}
    harness.deliver(BROKER_0, {0: [A0]})
    harness.take(BROKER_0, now=10)
    assert dict(harness.plan.standing()) == {BROKER_0: LaneStanding(3, 1, 0)}
    harness.plan.undelivered(BROKER_0, 20)
    assert dict(harness.plan.standing()) == {BROKER_0: LaneStanding(3, 0, 1)}


def test_what_has_moved_away_is_dropped_and_the_rest_goes_on() -> None:
    harness = PlanHarness()
    moved, kept = harness.add(P, 0, A0), harness.add(Q, 0, A0)
    harness.plan.drop(3)
    assert harness.plan.missing(moved) is None
    assert harness.plan.missing(kept) == {A0}
