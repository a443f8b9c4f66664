"""A static member, without I/O: it takes over at its first joining, and leaves for a while."""

from aiosemel._consumer.group.membership import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatAnswer,
    Membership,
    MemberState,
    TopicIdPartition,
)
from aiosemel.errors import (
    FencedInstanceIdError,
    RequestTimedOutError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)

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


def test_a_member_takes_over_when_it_joins_for_the_first_time_only() -> None:
    member = joining()
    joins = member.next_heartbeat()
    assert joins.takes_over
    member.failed(joins, RequestTimedOutError("no answer"))
    assert answer(member, 1).takes_over
    assert not answer(member, 1).takes_over
    member.failed(member.next_heartbeat(), UnknownMemberIdError("its session was over"))
    member.let_go()
    assert not member.next_heartbeat().takes_over


def test_a_dynamic_member_takes_nothing_over() -> None:
    member = Membership("m")
    member.subscribe(["orders"])
    assert not member.next_heartbeat().takes_over


def test_a_static_member_may_leave_for_good() -> None:
    member = Membership("m", "instance", leaves_for_good=True)
    member.subscribe(["orders"])
    answer(member, 1)
    member.overdue()
    assert answer(member, LEAVE_EPOCH).member_epoch == LEAVE_EPOCH
    member.let_go()
    answer(member, 2)
    member.leave()
    assert answer(member, LEAVE_EPOCH).member_epoch == LEAVE_EPOCH


def test_a_member_that_was_replaced_ends() -> None:
    member = joining()
    answer(member, 1)
    member.failed(member.next_heartbeat(), FencedInstanceIdError("another has it"))
    assert member.state is MemberState.FATAL


def test_a_member_stands_by_while_another_has_its_instance_id() -> None:
    member = joining()
    for _ in range(2):
        member.failed(member.next_heartbeat(), UnreleasedInstanceIdError("another has it"))
        assert member.state is MemberState.JOINING
    assert answer(member, 3).member_epoch == JOIN_EPOCH
    assert member.to_assign == HELD
