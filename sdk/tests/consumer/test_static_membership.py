"""A static member, without I/O: it leaves for a while, and stands by for its namesake."""

from aiosemel._membership import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatAnswer,
    Membership,
    MemberState,
    TopicIdPartition,
)
from aiosemel.errors import UnreleasedInstanceIdError

HELD = frozenset({TopicIdPartition("id", "orders", 0)})


def joining() -> Membership:
    member = Membership("m", "instance")
    member.subscribe(["orders"])
    return member


def answer(member: Membership, epoch: int) -> Heartbeat:
    """Let a member say what it has to say, and be answered."""
    heartbeat = member.next_heartbeat()
    assignment = HELD if epoch > 0 else None
    member.answered(
        heartbeat,
        HeartbeatAnswer(member_epoch=epoch, heartbeat_interval_ms=5, assignment=assignment),
    )
    return heartbeat


def test_a_static_member_leaves_for_a_while_only() -> None:
    member = joining()
    answer(member, 1)
    member.leave()
    assert answer(member, STATIC_LEAVE_EPOCH).member_epoch == STATIC_LEAVE_EPOCH
    assert member.state is MemberState.UNSUBSCRIBED


def test_a_static_member_whose_user_does_not_poll_is_away_until_it_does() -> None:
    member = joining()
    answer(member, 1)
    member.overdue()
    assert answer(member, STATIC_LEAVE_EPOCH).member_epoch == STATIC_LEAVE_EPOCH
    member.let_go()
    assert answer(member, 1).member_epoch == JOIN_EPOCH


def test_a_member_stands_by_while_another_has_its_instance_id() -> None:
    member = joining()
    for _ in range(2):
        member.failed(member.next_heartbeat(), UnreleasedInstanceIdError("another has it"))
        assert member.state is MemberState.JOINING
    assert answer(member, 3).member_epoch == JOIN_EPOCH
    assert member.to_assign == HELD
