"""An older copy of a group coordinator's volume: no member epoch is given twice."""

import pytest
from group_harness import GROUP, GroupHarness, orders, rebuilt, state_of

from semel_common.errors import UnknownMemberIdError
from semel_group.machine import GroupLimits

FLOOR = 1 << 50


def recover(group: GroupHarness) -> None:
    """Do what `semel recover` does."""
    image = group.machine.cluster.image
    assert image is not None
    group.run(group.machine.raise_epochs(image, FLOOR, now_ms=group.now_ms))


def test_members_join_again_under_new_epochs() -> None:
    group = GroupHarness()
    group.join("a")
    group.commit({0: 5}, group.member("a"))
    recover(group)
    with pytest.raises(UnknownMemberIdError):
        group.heartbeat("a", epoch=1)
    assert group.join("a").member_epoch > FLOOR
    assert group.held("a") == orders(0, 1, 2, 3)
    assert group.committed(0) == 5


def test_groups_that_the_copy_does_not_know_begin_above_too() -> None:
    group = GroupHarness()
    recover(group)
    assert group.join("a").member_epoch > FLOOR


def test_the_same_state_is_read_back() -> None:
    group = GroupHarness()
    group.join("a")
    recover(group)
    machine = group.machine
    assert state_of(rebuilt(machine.snapshot(), GroupLimits())) == state_of(machine)
    assert machine.membership.groups[GROUP].group.group_epoch == FLOOR
