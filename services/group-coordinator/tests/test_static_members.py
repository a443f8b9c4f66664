"""Static members: an instance id belongs to one member at a time, and its share waits for it."""

import pytest
from group_harness import GROUP, GroupHarness, codes, orders, partitions

from semel_common.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from semel_group.machine import GroupLimits
from semel_group.machine.values import GroupDescription, GroupState


@pytest.fixture
def group() -> GroupHarness:
    """Return a group of a dynamic member with partitions 0 and 1, and a static one with 2 and 3."""
    group = GroupHarness()
    group.join("a")
    group.join("s1", instance_id="s")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.heartbeat("a", owned=orders(0, 1))
    group.heartbeat("s1", owned=(), instance_id="s")
    assert group.heartbeat("s1", owned=orders(2, 3), instance_id="s").settled
    return group


def test_nothing_moves_while_a_static_member_is_away(group: GroupHarness) -> None:
    assert group.leave_for_a_while("s1", "s").member_epoch == -2
    answer = group.heartbeat("a", owned=orders(0, 1))
    assert answer.settled
    assert answer.assignment is None
    assert group.held("s1") == orders()


def test_who_comes_with_its_instance_id_gets_its_share_at_once(group: GroupHarness) -> None:
    epoch = group.epoch("s1")
    group.leave_for_a_while("s1", "s")
    answer = group.join("s2", instance_id="s")
    assert answer.member_epoch == epoch
    assert answer.assignment == tuple(sorted(orders(2, 3)))
    assert answer.settled
    assert group.heartbeat("a", owned=orders(0, 1)).settled


def test_the_same_member_may_come_back_too(group: GroupHarness) -> None:
    group.leave_for_a_while("s1", "s")
    answer = group.join("s1", instance_id="s")
    assert answer.assignment == tuple(sorted(orders(2, 3)))
    assert group.join("s1", instance_id="s") == answer


def test_an_instance_id_in_use_is_not_released(group: GroupHarness) -> None:
    with pytest.raises(UnreleasedInstanceIdError, match="'s' belongs to member 's1'"):
        group.join("s2", instance_id="s")


def test_a_member_that_takes_over_has_the_share_of_the_killed_one_at_once(
    group: GroupHarness,
) -> None:
    """It has not left: it was killed, and its session goes on."""
    old, epoch = group.member("s1"), group.epoch("s1")
    answer = group.join("s2", instance_id="s", takes_over=True)
    assert answer.member_epoch == epoch
    assert answer.assignment == tuple(sorted(orders(2, 3)))
    assert answer.settled
    assert group.join("s2", instance_id="s", takes_over=True) == answer
    assert group.heartbeat("a", owned=orders(0, 1)).settled
    with pytest.raises(FencedInstanceIdError, match="another process has joined"):
        group.heartbeat("s1", old.member_epoch, owned=orders(2, 3), instance_id="s")
    with pytest.raises(UnknownMemberIdError):
        group.commit({2: 5}, old)


def test_a_member_that_takes_over_may_read_other_topics(group: GroupHarness) -> None:
    group.topics({"orders": 4, "income": 2})
    answer = group.join("s2", "income", instance_id="s", takes_over=True)
    assert answer.assignment == tuple(sorted(partitions("income", 0, 1)))
    assert "s1" not in group.machine.membership.groups[GROUP].members
    assert group.heartbeat("a", owned=orders(0, 1)).assignment == tuple(sorted(orders(0, 1, 2, 3)))


def test_a_member_takes_over_no_name_without_a_holder(group: GroupHarness) -> None:
    assert group.join("t1", instance_id="t", takes_over=True).member_epoch > 0
    assert group.held("s1") == orders(2, 3)


def test_an_instance_id_is_free_once_its_member_is_gone(group: GroupHarness) -> None:
    group.expire("s1")
    assert group.join("s2", instance_id="s").member_epoch > 0


def test_a_member_that_was_replaced_is_fenced(group: GroupHarness) -> None:
    old = group.member("s1")
    group.leave_for_a_while("s1", "s")
    group.join("s2", instance_id="s")
    before = len(group.journal)
    for epoch in (old.member_epoch, -1, -2):
        with pytest.raises(FencedInstanceIdError, match="belongs to member 's2' by now"):
            group.heartbeat("s1", epoch, owned=orders(2, 3), instance_id="s")
    with pytest.raises(UnknownMemberIdError):
        group.commit({2: 5}, old)
    with pytest.raises(UnreleasedInstanceIdError):
        group.join("s1", instance_id="s")
    assert group.written(before) == []


def test_a_member_that_is_away_commits_nothing(group: GroupHarness) -> None:
    old = group.member("s1")
    group.leave_for_a_while("s1", "s")
    with pytest.raises(StaleMemberEpochError):
        group.commit({2: 5}, old)
    with pytest.raises(StaleMemberEpochError):
        group.fetch(2, by=old)


def test_what_was_committed_before_is_where_the_successor_begins(group: GroupHarness) -> None:
    assert codes(group.commit({2: 5}, group.member("s1"))) == []
    group.leave_for_a_while("s1", "s")
    group.join("s2", instance_id="s")
    (offset,) = group.fetch(2, by=group.member("s2")).offsets
    assert offset.committed_offset == 5


def test_a_late_heartbeat_does_not_bring_back_an_absent_member(group: GroupHarness) -> None:
    epoch = group.epoch("s1")
    group.leave_for_a_while("s1", "s")
    with pytest.raises(FencedMemberEpochError):
        group.heartbeat("s1", epoch, owned=orders(2, 3), instance_id="s")


def test_leaving_for_a_while_twice_is_no_error(group: GroupHarness) -> None:
    group.leave_for_a_while("s1", "s")
    before = len(group.journal)
    assert group.leave_for_a_while("s1", "s").member_epoch == -2
    assert group.leave_for_a_while("nobody", "nobody's").member_epoch == -2
    assert group.leave_for_a_while("a", "nobody's").member_epoch == -2
    assert group.written(before) == []


def test_a_static_member_may_leave_for_good(group: GroupHarness) -> None:
    group.heartbeat("s1", -1, instance_id="s")
    answer = group.heartbeat("a", owned=orders(0, 1))
    assert answer.assignment == tuple(sorted(orders(0, 1, 2, 3)))


def test_who_stays_away_too_long_loses_its_share(group: GroupHarness) -> None:
    group.leave_for_a_while("s1", "s")
    assert group.expire("s1")
    answer = group.heartbeat("a", owned=orders(0, 1))
    assert answer.assignment == tuple(sorted(orders(0, 1, 2, 3)))


def test_what_is_to_go_from_a_member_that_is_away_goes_at_once(group: GroupHarness) -> None:
    group.leave_for_a_while("s1", "s")
    assert group.join("b").assignment == tuple(sorted(orders(3)))
    group.join("s2", instance_id="s")
    assert group.held("s2") == orders(2)


def test_who_comes_back_with_another_subscription_moves_the_group(group: GroupHarness) -> None:
    group.topics({"orders": 4, "income": 1})
    group.heartbeat("a", owned=orders(0, 1))
    epoch = group.epoch("a")
    group.leave_for_a_while("s1", "s")
    answer = group.join("s2", "income", instance_id="s")
    assert answer.member_epoch == epoch + 1
    assert group.machine.membership.groups[GROUP].members.keys() == {"a", "s2"}


def test_a_topic_that_grew_meanwhile_is_shared_out(group: GroupHarness) -> None:
    group.leave_for_a_while("s1", "s")
    group.topics({"orders": 6})
    answer = group.join("s2", instance_id="s")
    assert answer.assignment == tuple(sorted(orders(2, 3, 4)))


def test_a_static_member_in_a_full_group_may_come_back() -> None:
    group = GroupHarness(limits=GroupLimits(group_size_max=1))
    group.join("s1", instance_id="s")
    group.leave_for_a_while("s1", "s")
    assert group.join("s2", instance_id="s").settled
    with pytest.raises(GroupMaxSizeReachedError):
        group.join("b")


def test_ranges_follow_instance_ids_over_restarts() -> None:
    group = GroupHarness()
    for member_id, instance_id in (("z", "s-0"), ("a", "s-1")):
        group.join(member_id, instance_id=instance_id, assignor="range")
    target = group.machine.membership.groups[GROUP].group.target
    assert target == {"z": orders(0, 1), "a": orders(2, 3)}
    group.join("b")
    target = group.machine.membership.groups[GROUP].group.target
    assert target == {"z": orders(0, 1), "a": orders(2), "b": orders(3)}


def test_an_unknown_instance_id_is_no_member(group: GroupHarness) -> None:
    with pytest.raises(UnknownMemberIdError, match="no member with instance id 't'"):
        group.heartbeat("a", 2, instance_id="t")


def test_a_member_keeps_its_instance_id(group: GroupHarness) -> None:
    with pytest.raises(InvalidRequestError, match="is there with ''"):
        group.join("a", instance_id="t")
    with pytest.raises(InvalidRequestError, match="is there with 's'"):
        group.join("s1", instance_id="t")


def test_operators_see_the_absent_members(group: GroupHarness) -> None:
    group.leave_for_a_while("s1", "s")
    description = group.describe()
    assert isinstance(description, GroupDescription)
    assert description.state is GroupState.STABLE
    away = description.members[1]
    assert (away.instance_id, away.member_epoch, away.assignment) == ("s", -2, ())
    assert away.target == tuple(sorted(orders(2, 3)))
