"""The member of a consumer group, without I/O: its heartbeats, and its partitions."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiosemel._consumer.group.membership import (
    FIRST_HEARTBEAT_INTERVAL_MS,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    PREDECESSORS,
    Heartbeat,
    HeartbeatAnswer,
    Membership,
    MemberState,
    TopicIdPartition,
)
from aiosemel.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    NetworkExceptionError,
    NotCoordinatorError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownServerError,
    UnsupportedAssignorError,
)


def partitions(*numbers: int) -> frozenset[TopicIdPartition]:
    return frozenset(TopicIdPartition("id", "orders", number) for number in numbers)


NONE = partitions()


def state(member: Membership) -> MemberState:
    return member.state


def due(member: Membership) -> bool:
    return member.heartbeat_due


@dataclass
class Harness:
    """A member, and the calls of its driver."""

    member: Membership = field(default_factory=lambda: Membership("m"))

    def answer(
        self, epoch: int = 1, assignment: frozenset[TopicIdPartition] | None = None
    ) -> Heartbeat:
        """Let it say what it has to say, and be answered."""
        heartbeat = self.member.next_heartbeat()
        self.member.answered(heartbeat, answer(epoch, assignment))
        return heartbeat

    def reconcile(self) -> None:
        """Do all that it asks for."""
        while revoke := self.member.to_revoke:
            self.member.revoked(revoke)
        if assign := self.member.to_assign:
            self.member.assigned(assign)

    @classmethod
    def stable(cls, *numbers: int, epoch: int = 1) -> "Harness":
        """Return a member that holds partitions, and has said so."""
        harness = cls()
        harness.member.subscribe(["orders"])
        harness.answer(epoch, partitions(*numbers))
        harness.reconcile()
        harness.answer(epoch)
        assert state(harness.member) is MemberState.STABLE
        assert not due(harness.member)
        return harness


def answer(epoch: int, assignment: frozenset[TopicIdPartition] | None = None) -> HeartbeatAnswer:
    return HeartbeatAnswer(member_epoch=epoch, heartbeat_interval_ms=3_000, assignment=assignment)


# -- joining -------------------------------------------------------------------------------------


def test_a_member_that_has_not_subscribed_says_nothing() -> None:
    member = Membership("m")
    assert not due(member)
    assert not member.heartbeats
    assert member.heartbeat_interval_ms == FIRST_HEARTBEAT_INTERVAL_MS
    with pytest.raises(AssertionError, match="nothing to say"):
        member.next_heartbeat()


def test_joining_says_everything_and_owns_nothing() -> None:
    harness = Harness()
    harness.member.subscribe(["payments", "orders", "orders"])
    assert due(harness.member)
    heartbeat = harness.answer(1, NONE)
    assert heartbeat.member_epoch == JOIN_EPOCH
    assert heartbeat.topics == ("orders", "payments")
    assert heartbeat.owned == NONE
    assert heartbeat.full
    assert state(harness.member) is MemberState.STABLE
    assert harness.member.member_epoch == 1
    assert harness.member.heartbeat_interval_ms == 3_000


def test_a_join_without_an_answer_is_said_again_in_full() -> None:
    harness = Harness()
    harness.member.subscribe(["orders"])
    heartbeat = harness.member.next_heartbeat()
    harness.member.failed(heartbeat, NetworkExceptionError("gone"))
    assert state(harness.member) is MemberState.JOINING
    assert harness.member.next_heartbeat() == heartbeat


def test_an_unchanged_state_is_not_said_again() -> None:
    harness = Harness.stable(0)
    heartbeat = harness.answer(1)
    assert (heartbeat.topics, heartbeat.owned, heartbeat.full) == (None, None, False)
    assert heartbeat.member_epoch == 1


def test_subscribing_to_other_topics_is_said_at_once() -> None:
    harness = Harness.stable(0)
    harness.member.subscribe(["payments"])
    assert due(harness.member)
    assert harness.answer(2).topics == ("payments",)
    assert not due(harness.member)


# -- reconciling ---------------------------------------------------------------------------------


def test_new_partitions_are_acknowledged_when_they_are_held() -> None:
    harness = Harness()
    harness.member.subscribe(["orders"])
    harness.answer(1, partitions(0, 1))
    assert state(harness.member) is MemberState.RECONCILING
    assert harness.member.to_revoke == NONE
    assert harness.member.to_assign == partitions(0, 1)
    assert not due(harness.member)
    harness.reconcile()
    assert due(harness.member)
    assert harness.answer(1).owned == partitions(0, 1)
    assert state(harness.member) is MemberState.STABLE


def test_partitions_are_given_up_before_others_are_taken() -> None:
    harness = Harness.stable(0, 1)
    harness.answer(2, partitions(1, 2))
    member = harness.member
    assert member.to_revoke == partitions(0)
    assert member.to_assign == NONE
    member.revoked(partitions(0))
    assert member.to_assign == partitions(2)


def test_a_partition_is_not_acknowledged_before_it_is_given_up() -> None:
    """The hook for a user that has to end a transaction first (protocol.md, section 5)."""
    harness = Harness.stable(0, 1)
    harness.answer(2, partitions(1))
    for _ in range(3):
        assert not due(harness.member)
        assert harness.answer(2).owned is None
        assert harness.member.to_revoke == partitions(0)
    harness.member.revoked(partitions(0))
    assert due(harness.member)
    assert harness.answer(2).owned == partitions(1)


def test_a_partition_that_comes_back_while_it_is_given_up_is_taken_again() -> None:
    harness = Harness.stable(0)
    harness.answer(2, NONE)
    revoke = harness.member.to_revoke
    harness.answer(3, partitions(0))
    assert state(harness.member) is MemberState.STABLE
    harness.member.revoked(revoke)
    assert state(harness.member) is MemberState.RECONCILING
    assert harness.member.to_assign == partitions(0)


def test_a_topic_made_again_under_its_name_is_another_topic() -> None:
    harness = Harness.stable(0)
    again = frozenset({TopicIdPartition("id-2", "orders", 0)})
    harness.answer(2, again)
    assert harness.member.to_revoke == partitions(0)
    harness.member.revoked(partitions(0))
    assert harness.member.to_assign == again


def test_an_answer_without_assignment_leaves_it_as_it_was() -> None:
    harness = Harness.stable(0)
    harness.answer(2)
    assert harness.member.member_epoch == 2
    assert harness.member.owned == partitions(0)
    assert state(harness.member) is MemberState.STABLE


@pytest.mark.parametrize(
    "error",
    [NetworkExceptionError("gone"), NotCoordinatorError("moved"), UnknownServerError("broken")],
)
def test_after_a_heartbeat_without_an_answer_everything_is_said(error: Exception) -> None:
    """The lost answer may have held an assignment: to everything, all of it is answered."""
    harness = Harness.stable(0)
    heartbeat = harness.member.next_heartbeat()
    harness.member.failed(heartbeat, error)  # type: ignore[arg-type]  # each is a SemelError
    assert due(harness.member)
    full = harness.answer(2, partitions(0, 1))
    assert full.full
    assert (full.topics, full.owned) == (("orders",), partitions(0))
    assert harness.member.to_assign == partitions(1)


# -- fencing -------------------------------------------------------------------------------------


FENCING = [FencedMemberEpochError, StaleMemberEpochError, UnknownMemberIdError]


@pytest.mark.parametrize("error", FENCING)
def test_a_fenced_member_lets_go_of_everything_then_joins_again(
    error: type[FencedMemberEpochError],
) -> None:
    harness = Harness.stable(0, epoch=5)
    member = harness.member
    member.failed(member.next_heartbeat(), error("no such epoch"))
    assert state(member) is MemberState.FENCED
    assert isinstance(member.error, error)
    assert member.must_let_go
    assert not due(member)
    assert not member.heartbeats
    assert (member.to_revoke, member.to_assign) == (NONE, NONE)
    assert member.member_epoch == 5, "so that what it still commits is refused"
    member.let_go()
    joined = harness.answer(7, partitions(0))
    assert joined.member_epoch == JOIN_EPOCH
    assert joined.owned == NONE
    assert member.member_epoch == 7
    assert member.to_assign == partitions(0)


def test_letting_go_without_having_lost_anything_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="nothing was lost"):
        Harness.stable(0).member.let_go()


def test_what_is_given_up_after_being_fenced_changes_no_state() -> None:
    harness = Harness.stable(0)
    member = harness.member
    harness.answer(2, NONE)
    member.failed(member.next_heartbeat(), FencedMemberEpochError("late"))
    member.revoked(partitions(0))
    member.assigned(partitions(1))
    assert state(member) is MemberState.FENCED


@pytest.mark.parametrize(
    "error",
    [
        GroupMaxSizeReachedError("full"),
        UnsupportedAssignorError("no such"),
        FencedInstanceIdError("another has it"),
    ],
)
def test_a_permanent_error_ends_the_membership(error: Exception) -> None:
    harness = Harness()
    harness.member.subscribe(["orders"])
    harness.member.failed(harness.member.next_heartbeat(), error)  # type: ignore[arg-type]  # SemelErrors
    assert state(harness.member) is MemberState.FATAL
    assert harness.member.error is error
    assert not due(harness.member)
    assert not harness.member.must_let_go


def test_answers_to_an_earlier_incarnation_are_ignored() -> None:
    harness = Harness.stable(0, epoch=5)
    member = harness.member
    late = member.next_heartbeat()
    member.overdue()
    member.let_go()
    member.answered(late, answer(6, partitions(3)))
    member.failed(late, UnknownMemberIdError("late"))
    assert state(member) is MemberState.JOINING
    assert member.next_heartbeat().member_epoch == JOIN_EPOCH
    assert member.owned == NONE


# -- leaving -------------------------------------------------------------------------------------


def test_leaving_is_said_once_and_nothing_is_owned() -> None:
    harness = Harness.stable(0)
    member = harness.member
    member.leave()
    assert due(member)
    assert harness.answer(LEAVE_EPOCH).member_epoch == LEAVE_EPOCH
    assert state(member) is MemberState.UNSUBSCRIBED
    assert member.owned == NONE


def test_leaving_is_over_also_without_an_answer() -> None:
    harness = Harness.stable(0)
    harness.member.leave()
    harness.member.failed(harness.member.next_heartbeat(), NetworkExceptionError("gone"))
    assert state(harness.member) is MemberState.UNSUBSCRIBED


def test_a_consumer_without_membership_leaves_nothing() -> None:
    member = Membership("m")
    member.leave()
    assert state(member) is MemberState.UNSUBSCRIBED
    assert not due(member)


def test_a_late_answer_does_not_stop_the_leaving() -> None:
    harness = Harness.stable(0)
    heartbeat = harness.member.next_heartbeat()
    harness.member.leave()
    harness.member.answered(heartbeat, answer(2, partitions(0, 1)))
    assert state(harness.member) is MemberState.LEAVING
    assert harness.member.owned == NONE


def test_a_member_whose_user_does_not_poll_leaves_until_it_does() -> None:
    harness = Harness.stable(0)
    member = harness.member
    member.overdue()
    assert state(member) is MemberState.STALE
    assert due(member)
    assert harness.answer(LEAVE_EPOCH).member_epoch == LEAVE_EPOCH
    assert state(member) is MemberState.STALE
    assert not due(member)
    assert member.must_let_go
    member.let_go()
    assert harness.answer(2, NONE).member_epoch == JOIN_EPOCH


def test_only_a_member_of_the_group_can_be_overdue() -> None:
    member = Membership("m")
    member.overdue()
    assert state(member) is MemberState.UNSUBSCRIBED


# -- everything ----------------------------------------------------------------------------------


def test_every_state_has_a_way_in_and_a_way_out() -> None:
    assert set(PREDECESSORS) == set(MemberState)
    left = frozenset[MemberState]().union(*PREDECESSORS.values())
    assert left == set(MemberState)


def test_an_illegal_step_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="no way from STABLE to JOINING"):
        Harness.stable(0).member._join()


@dataclass
class Life(Harness):
    """A member, its user, and a group coordinator that does anything at all."""

    user: frozenset[TopicIdPartition] = NONE
    epoch: int = 0

    def heartbeat(self, what: str, given: frozenset[TopicIdPartition]) -> None:
        """Let it say what it has to say, and see what becomes of it."""
        if not self.member.heartbeats:
            return
        self.epoch += 1
        heartbeat = self.member.next_heartbeat()
        assert heartbeat.owned in (None, self.user)
        assert heartbeat.full or heartbeat.member_epoch != JOIN_EPOCH
        if what == "lose":
            self.member.failed(heartbeat, NetworkExceptionError("lost"))
        elif what == "fence":
            self.member.failed(heartbeat, FencedMemberEpochError("fenced"))
        else:
            assignment = given if what == "assign" or heartbeat.full else None
            self.member.answered(heartbeat, answer(self.epoch, assignment))

    def act(self, what: str) -> None:
        """Let the user do something, or nothing if it is not the time."""
        member = self.member
        if what == "revoke":
            self.user -= member.to_revoke
            member.revoked(member.to_revoke)
        elif what == "take":
            self.user |= member.to_assign
            member.assigned(member.to_assign)
        elif what == "let go" and member.must_let_go:
            self.user = NONE
            member.let_go()
        elif what == "overdue":
            member.overdue()
        elif what == "subscribe":
            member.subscribe(["orders", f"t{self.epoch}"])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["answer", "assign", "lose", "fence"]),
            st.frozensets(st.integers(0, 3)),
            st.sampled_from(["revoke", "take", "let go", "overdue", "subscribe", "nothing"]),
        ),
        max_size=40,
    )
)
def test_a_member_never_acknowledges_what_its_user_still_holds(
    steps: list[tuple[str, frozenset[int], str]],
) -> None:
    """And whatever happened, it comes to hold what it is told to hold."""
    life = Life()
    member = life.member
    member.subscribe(["orders"])
    for what, numbers, act in steps:
        life.heartbeat(what, partitions(*numbers))
        life.act(act)
        if not member.must_let_go:
            assert member.owned == life.user
            assert not member.to_revoke or not member.to_assign
    while (
        state(member) is not MemberState.STABLE or member.owned != partitions(0, 1) or due(member)
    ):
        if member.must_let_go:
            member.let_go()
        life.answer(life.epoch + 1, partitions(0, 1))
        life.reconcile()
    assert state(member) is MemberState.STABLE
