"""The state that groups forget, on request and by themselves, and the state that they keep."""

import pytest
from group_harness import (
    ABORT,
    COMMIT,
    GROUP,
    GroupHarness,
    codes,
    rebuilt,
    state_of,
)

from semel_common.errors import (
    GroupIdNotFoundError,
    InvalidProducerEpochError,
    NotCoordinatorError,
    StaleMemberEpochError,
)
from semel_group.machine import GroupLimits

DAY_MS = 24 * 3_600_000
RETENTION_MS = 7 * DAY_MS


@pytest.fixture
def group() -> GroupHarness:
    """Return a group without members, with offsets of two partitions."""
    group = GroupHarness()
    group.commit({0: 5, 1: 6})
    return group


def same_after_replay(group: GroupHarness) -> None:
    """Check that journal and snapshot make the same machine."""
    replayed = rebuilt(enumerate(group.journal), group.limits)
    assert state_of(replayed) == state_of(group.machine)
    copied = rebuilt(list(group.machine.snapshot()), group.limits)
    assert state_of(copied) == state_of(group.machine)


# -- offsets are deleted -------------------------------------------------------------------------


def test_an_offset_is_deleted_and_the_others_stay(group: GroupHarness) -> None:
    assert group.delete_offsets(0, 3) == ()
    assert (group.committed(0), group.committed(1)) == (-1, 6)
    same_after_replay(group)


def test_deleting_a_missing_offset_writes_nothing(group: GroupHarness) -> None:
    before = len(group.journal)
    assert group.delete_offsets(2, 3) == ()
    assert group.written(before) == []


def test_offsets_of_a_topic_that_a_member_reads_stay(group: GroupHarness) -> None:
    group.join("a")
    assert codes(group.delete_offsets(0)) == ["GROUP_SUBSCRIBED_TO_TOPIC"]
    group.heartbeat("a", topics=["income"])
    assert group.delete_offsets(0) == ()
    assert group.committed(0) == -1


def test_an_unknown_partition_is_refused_alone(group: GroupHarness) -> None:
    assert codes(group.delete_offsets(9, 0)) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert group.committed(0) == -1


def test_a_deleted_offset_does_not_come_back_with_an_older_transaction(
    group: GroupHarness,
) -> None:
    group.txn_commit({0: 9, 3: 4})
    group.delete_offsets(0)
    group.marker(COMMIT)
    assert (group.committed(0), group.committed(3)) == (-1, 4)


def test_an_offset_is_deleted_that_only_a_transaction_holds(group: GroupHarness) -> None:
    group.txn_commit({2: 9, 3: 4})
    group.delete_offsets(3)
    group.marker(COMMIT)
    assert (group.committed(2), group.committed(3)) == (9, -1)
    same_after_replay(group)


def test_offsets_of_no_group_cannot_be_deleted(group: GroupHarness) -> None:
    with pytest.raises(GroupIdNotFoundError):
        group.delete_offsets(0, group_id="nobody's")


def test_offsets_of_another_instances_group_cannot_be_deleted() -> None:
    group = GroupHarness(group_coordinators=2)
    with pytest.raises(NotCoordinatorError):
        group.delete_offsets(0, group_id="group-1")


# -- groups are deleted --------------------------------------------------------------------------


def test_a_group_is_deleted_with_all_its_offsets(group: GroupHarness) -> None:
    assert group.delete() == [""]
    assert group.list() == ()
    assert isinstance(group.describe(), GroupIdNotFoundError)
    assert group.committed(0) == -1
    assert group.delete() == ["GROUP_ID_NOT_FOUND"]
    same_after_replay(group)


def test_a_group_with_members_is_not_deleted(group: GroupHarness) -> None:
    group.join("a", instance_id="s")
    assert group.delete(GROUP, "nobody's") == ["NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"]
    group.leave_for_a_while("a", "s")
    assert group.delete() == ["NON_EMPTY_GROUP"]
    group.expire("a")
    assert group.delete() == [""]
    same_after_replay(group)


def test_another_instances_group_is_not_deleted() -> None:
    group = GroupHarness(group_coordinators=2)
    assert group.delete("group-1") == ["NOT_COORDINATOR"]


@pytest.mark.parametrize("result", [COMMIT, ABORT])
def test_a_transaction_that_was_open_brings_nothing_back(
    group: GroupHarness, result: object
) -> None:
    group.txn_commit({0: 9})
    group.txn_commit({1: 7, 2: 8}, sequence=1)
    group.delete()
    assert group.list() == ()
    assert group.marker(COMMIT if result is COMMIT else ABORT) == ()
    assert group.list() == ()
    with pytest.raises(InvalidProducerEpochError):
        group.txn_commit({0: 9}, sequence=2)
    same_after_replay(group)


def test_a_transaction_goes_on_after_its_group_was_deleted(group: GroupHarness) -> None:
    group.txn_commit({0: 9})
    group.delete()
    group.txn_commit({1: 7}, sequence=1)
    group.marker(COMMIT)
    assert (group.committed(0), group.committed(1)) == (-1, 7)


def test_a_group_made_again_goes_on_above_every_epoch_that_was_given() -> None:
    group = GroupHarness()
    group.join("a")
    group.join("b")
    group.leave("b")
    group.leave("a")
    group.commit({0: 5})
    late = group.member("a", 1)
    group.delete()
    assert group.join("a").member_epoch == 5
    with pytest.raises(StaleMemberEpochError):
        group.run(group.machine.committed_offsets.fetch_offsets(late, [], require_stable=False))
    assert codes(group.commit({0: 5}, late)) == ["STALE_MEMBER_EPOCH"]
    same_after_replay(group)


def test_the_epochs_of_every_deleted_group_are_remembered() -> None:
    group = GroupHarness()
    for name, members in (("long", "abc"), ("short", "a")):
        for member_id in members:
            group.join(member_id, group_id=name)
            group.leave(member_id, name)
    group.delete("long", "short")
    assert group.join("a", group_id="short").member_epoch == 7
    same_after_replay(group)


# -- offsets expire ------------------------------------------------------------------------------


def test_offsets_expire_after_their_retention(group: GroupHarness) -> None:
    group.now_ms += DAY_MS
    group.commit({1: 7})
    group.now_ms += RETENTION_MS - DAY_MS - 1
    assert group.expire_offsets() == 0
    group.now_ms += 1
    assert group.expire_offsets() == 1
    assert (group.committed(0), group.committed(1)) == (-1, 7)
    group.now_ms += DAY_MS
    assert group.expire_offsets() == 1
    assert group.list() == ()
    same_after_replay(group)


def test_no_offset_of_a_topic_that_a_member_reads_expires(group: GroupHarness) -> None:
    group.join("a")
    group.now_ms += 2 * RETENTION_MS
    assert group.expire_offsets() == 0
    assert group.committed(0) == 5


def test_a_group_that_stood_still_keeps_its_offsets_from_when_it_became_empty(
    group: GroupHarness,
) -> None:
    group.join("a")
    group.now_ms += 2 * RETENTION_MS
    group.leave("a")
    group.now_ms += RETENTION_MS - 1
    assert group.expire_offsets() == 0
    group.now_ms += 1
    assert [group.expire_offsets(), group.expire_offsets()] == [2, 1], "the group itself follows"
    assert group.list() == ()
    same_after_replay(group)


def test_offsets_of_a_topic_without_readers_expire(group: GroupHarness) -> None:
    group.topics({"orders": 4, "income": 1})
    group.join("a", "orders", "income")
    group.now_ms += RETENTION_MS
    group.heartbeat("a", topics=["income"])
    group.now_ms += RETENTION_MS
    assert group.expire_offsets() == 2
    assert group.committed(0) == -1


def test_a_group_that_reads_a_topic_again_keeps_its_offsets(group: GroupHarness) -> None:
    group.topics({"orders": 4, "income": 1})
    group.join("a", "orders", "income")
    group.heartbeat("a", topics=["income"])
    group.heartbeat("a", topics=["orders"])
    group.now_ms += RETENTION_MS
    assert group.expire_offsets() == 0
    group.heartbeat("a", topics=["orders", "income"])
    unsubscribed = group.machine.membership.groups[GROUP].group.unsubscribed
    assert unsubscribed == {}


def test_what_a_transaction_may_still_move_does_not_expire(group: GroupHarness) -> None:
    """C-179."""
    group.txn_commit({0: 9})
    group.now_ms += RETENTION_MS
    assert group.expire_offsets() == 1
    assert (group.committed(0), group.committed(1)) == (5, -1)
    group.marker(ABORT)
    assert group.expire_offsets() == 1


def test_a_group_is_forgotten_once_it_has_neither_members_nor_offsets() -> None:
    group = GroupHarness()
    group.join("a")
    assert group.expire_offsets() == 0
    group.leave("a")
    group.txn_commit({0: 9})
    assert group.expire_offsets() == 0
    group.marker(ABORT)
    assert group.expire_offsets() == 1
    assert group.machine.membership.groups == {}


def test_offsets_expire_in_bounded_steps(group: GroupHarness) -> None:
    group.now_ms += RETENTION_MS
    assert [group.expire_offsets(1), group.expire_offsets(1), group.expire_offsets(1)] == [1, 1, 0]


def test_the_retention_is_a_limit() -> None:
    group = GroupHarness(limits=GroupLimits(offsets_retention_ms=10))
    group.commit({0: 5})
    group.now_ms += 10
    assert group.expire_offsets() == 1
