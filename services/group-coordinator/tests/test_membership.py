"""Members come, speak, move to their targets and go: one scenario for each rule of KIP-848."""

import pytest
from group_harness import GROUP, GroupHarness, orders, partitions

from semel_common.errors import (
    CoordinatorNotAvailableError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    NotCoordinatorError,
    ThrottlingQuotaExceededError,
    UnknownMemberIdError,
    UnsupportedAssignorError,
)
from semel_common.ids import TopicPartition
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.values import GroupState, Heartbeat


@pytest.fixture
def group() -> GroupHarness:
    return GroupHarness()


@pytest.fixture
def pair(group: GroupHarness) -> GroupHarness:
    """Two members that hold two partitions each: a 0 and 1, b 2 and 3."""
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.heartbeat("a", owned=orders(0, 1))
    group.heartbeat("b", owned=())
    group.heartbeat("b", owned=orders(2, 3))
    return group


# -- joining and moving --------------------------------------------------------------------------


def test_the_first_member_is_given_everything_at_once(group: GroupHarness) -> None:
    answer = group.join("a")
    assert answer.member_epoch == 1
    assert answer.assignment == tuple(sorted(orders(0, 1, 2, 3)))
    assert answer.settled


def test_a_second_member_waits_until_the_first_has_given_up(group: GroupHarness) -> None:
    group.join("a")
    assert group.join("b").assignment == ()
    revoked = group.heartbeat("a", owned=orders(0, 1, 2, 3))
    assert revoked.assignment == tuple(sorted(orders(0, 1)))
    assert revoked.revoke_within_ms == 60_000
    assert group.heartbeat("b", owned=()).assignment is None
    assert group.held("a") == orders(0, 1, 2, 3)

    acknowledged = group.heartbeat("a", owned=orders(0, 1))
    assert acknowledged.settled
    assert acknowledged.revoke_within_ms is None
    assert group.heartbeat("b", owned=()).assignment == tuple(sorted(orders(2, 3)))
    assert group.heartbeat("b", owned=orders(2, 3)).settled


def test_partitions_are_handed_over_one_by_one(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.heartbeat("a", owned=orders(0, 1, 3))
    assert group.heartbeat("b", owned=()).assignment == tuple(sorted(orders(2)))
    group.heartbeat("a", owned=orders(0, 1))
    assert group.heartbeat("b", owned=orders(2)).assignment == tuple(sorted(orders(2, 3)))


def test_a_member_gives_up_before_it_is_given_anything(pair: GroupHarness) -> None:
    pair.topics({"orders": 4, "income": 2})
    answer = pair.heartbeat("b", topics={"income"}, owned=orders(2, 3))
    assert answer.assignment == ()
    assert pair.heartbeat("b", owned=orders(3)).assignment == ()
    answer = pair.heartbeat("b", owned=())
    assert answer.assignment == tuple(sorted(partitions("income", 0, 1)))


@pytest.mark.parametrize(
    "kept", [orders(0, 1, 2, 3), orders(0, 1)], ids=["not given up yet", "given up"]
)
def test_a_partition_that_a_member_was_to_give_up_may_come_back_to_it(
    group: GroupHarness, kept: frozenset[TopicPartition]
) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.leave("b")
    answer = group.heartbeat("a", owned=kept)
    assert answer.settled
    assert answer.assignment == tuple(sorted(orders(0, 1, 2, 3)))


def test_a_heartbeat_without_owned_partitions_acknowledges_nothing(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    answer = group.heartbeat("a")
    assert answer.revoke_within_ms is not None
    assert group.held("a") == orders(0, 1, 2, 3)


def test_a_settled_member_that_says_so_is_answered_nothing_new(pair: GroupHarness) -> None:
    before = len(pair.journal)
    answer = pair.heartbeat("a", owned=orders(0, 1))
    assert answer.settled
    assert answer.assignment is None
    assert pair.written(before) == []


def test_a_settled_member_that_does_not_say_so_is_answered_everything(pair: GroupHarness) -> None:
    assert pair.heartbeat("a").assignment == tuple(sorted(orders(0, 1)))
    assert pair.heartbeat("a", owned=orders(0)).assignment == tuple(sorted(orders(0, 1)))


def test_another_rebalance_timeout_moves_no_partition(pair: GroupHarness) -> None:
    epoch = pair.epoch("a")
    assert pair.heartbeat("a", owned=orders(0, 1), timeout_ms=5).member_epoch == epoch
    pair.join("c")
    assert pair.heartbeat("a", owned=orders(0, 1)).revoke_within_ms == 5
    assert pair.heartbeat("b", owned=orders(2, 3)).revoke_within_ms is None


# -- why a group moves ---------------------------------------------------------------------------


def test_a_new_subscription_gives_a_new_target(pair: GroupHarness) -> None:
    pair.topics({"orders": 4, "income": 1})
    answer = pair.heartbeat("b", topics={"orders", "income"}, owned=orders(2, 3))
    assert answer.assignment == tuple(sorted(orders(2, 3) | partitions("income", 0)))


def test_a_topic_that_is_created_later_is_given_out(group: GroupHarness) -> None:
    assert group.join("a", "income").assignment == ()
    group.topics({"orders": 4, "income": 2})
    answer = group.heartbeat("a", owned=())
    assert answer.assignment == tuple(sorted(partitions("income", 0, 1)))


def test_new_partitions_of_a_topic_are_shared_out_and_nothing_moves(pair: GroupHarness) -> None:
    pair.topics({"orders": 6})
    answer = pair.heartbeat("a", owned=orders(0, 1))
    assert answer.assignment == tuple(sorted(orders(0, 1, 4)))
    answer = pair.heartbeat("b", owned=orders(2, 3))
    assert answer.assignment == tuple(sorted(orders(2, 3, 5)))


def test_ranges_move_when_a_topic_grows(pair: GroupHarness) -> None:
    pair.heartbeat("a", owned=orders(0, 1), assignor="range")
    pair.topics({"orders": 6})
    assert pair.heartbeat("a", owned=orders(0, 1)).assignment == tuple(sorted(orders(0, 1)))
    assert pair.heartbeat("b", owned=orders(2, 3)).revoke_within_ms is not None
    answer = pair.heartbeat("b", owned=orders(3))
    assert answer.assignment == tuple(sorted(orders(3, 4, 5)))
    assert pair.heartbeat("a", owned=orders(0, 1)).assignment == tuple(sorted(orders(0, 1, 2)))


def test_partitions_of_a_deleted_topic_are_taken_away(pair: GroupHarness) -> None:
    pair.topics({})
    answer = pair.heartbeat("a", owned=orders(0, 1))
    assert answer.assignment == ()
    assert answer.revoke_within_ms is not None
    assert pair.heartbeat("a", owned=()).settled


def test_a_topic_without_subscribers_moves_no_partition(pair: GroupHarness) -> None:
    pair.topics({"orders": 4, "income": 1})
    before = len(pair.journal)
    assert pair.heartbeat("a", owned=orders(0, 1)).settled
    assert pair.written(before) == []


def test_asking_for_an_assignor_gives_a_new_target(pair: GroupHarness) -> None:
    epoch = pair.epoch("a")
    answer = pair.heartbeat("a", owned=orders(0, 1), assignor="range")
    assert answer.member_epoch == epoch + 1
    assert answer.settled


def test_an_unknown_assignor_is_refused(group: GroupHarness) -> None:
    with pytest.raises(UnsupportedAssignorError, match="no assignor is called 'random'"):
        group.heartbeat("a", 0, topics=(), timeout_ms=1, assignor="random")


# -- going ---------------------------------------------------------------------------------------


def test_what_a_leaving_member_held_is_free_at_once(pair: GroupHarness) -> None:
    left = pair.leave("a")
    assert (left.member_epoch, left.assignment) == (-1, None)
    assert left.settled, "who is gone is not asked to come back soon"
    answer = pair.heartbeat("b", owned=orders(2, 3))
    assert answer.assignment == tuple(sorted(orders(0, 1, 2, 3)))


def test_leaving_twice_is_no_error(pair: GroupHarness) -> None:
    pair.leave("a")
    before = len(pair.journal)
    assert pair.leave("a").member_epoch == -1
    assert pair.leave("a", group_id="nobody's").member_epoch == -1
    assert pair.written(before) == []


def test_what_an_expired_member_held_is_free_at_once(pair: GroupHarness) -> None:
    assert pair.expire("a")
    assert not pair.expire("a")
    assert pair.heartbeat("b", owned=orders(2, 3)).settled
    with pytest.raises(UnknownMemberIdError, match="has no member 'a'"):
        pair.heartbeat("a", owned=orders(0, 1))


def test_the_group_epoch_goes_on_after_everybody_left(pair: GroupHarness) -> None:
    epoch = pair.epoch("a")
    pair.leave("a")
    pair.leave("b")
    assert pair.machine.membership.groups[GROUP].state is GroupState.EMPTY
    assert pair.join("c").member_epoch == epoch + 3


# -- lost answers and wrong epochs ---------------------------------------------------------------


def test_a_join_whose_answer_was_lost_is_answered_again(group: GroupHarness) -> None:
    first = group.join("a")
    before = len(group.journal)
    assert group.join("a") == first
    assert group.written(before) == []


def test_a_late_join_acknowledges_nothing(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    answer = group.join("a")
    assert answer.assignment == tuple(sorted(orders(0, 1)))
    assert answer.revoke_within_ms is not None
    assert group.held("a") == orders(0, 1, 2, 3)


def test_a_member_whose_answer_was_lost_is_not_fenced(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    lost = group.heartbeat("a", 1, owned=orders(0, 1, 2, 3))
    before = len(group.journal)
    assert group.heartbeat("a", 1, owned=orders(0, 1, 2, 3)) == lost
    assert group.written(before) == []


def test_a_repeat_is_answered_the_same_while_the_group_moves_on(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    lost = group.heartbeat("a", 1, owned=orders(0, 1, 2, 3))
    group.join("c")
    for _ in range(3):
        again = group.heartbeat("a", 1, owned=orders(0, 1, 2, 3))
        assert again.member_epoch == lost.member_epoch
        assert again.assignment == lost.assignment


def test_a_repeat_may_still_change_the_subscription(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", 1, owned=orders(0, 1, 2, 3))
    group.heartbeat("a", 1, owned=orders(0, 1, 2, 3), topics=())
    assert group.heartbeat("b", owned=()).member_epoch == 3
    assert group.heartbeat("a", 2, owned=orders(0, 1, 2, 3)).assignment == ()


def test_a_heartbeat_of_an_older_epoch_cannot_acknowledge(group: GroupHarness) -> None:
    """It was sent before its partitions were taken, and came late."""
    group.join("a")
    group.join("b")
    group.heartbeat("a", 1, owned=orders(0, 1, 2, 3))
    group.heartbeat("a", 1, owned=())
    assert group.held("a") == orders(0, 1, 2, 3)


@pytest.mark.parametrize("epoch", [1, 9])
def test_an_epoch_that_was_not_given_last_is_fenced(pair: GroupHarness, epoch: int) -> None:
    pair.join("c")
    pair.heartbeat("a", owned=orders(0, 1))
    assert pair.epoch("a") == 3
    with pytest.raises(FencedMemberEpochError, match=f"has epoch {epoch}: the group gave it 3"):
        pair.heartbeat("a", epoch, owned=orders(0, 1))


def test_a_member_that_owns_what_it_was_not_given_is_fenced(pair: GroupHarness) -> None:
    with pytest.raises(FencedMemberEpochError, match="owns 1 partitions that the group did not"):
        pair.heartbeat("a", owned=orders(0, 1, 2))


def test_a_fenced_member_may_join_again_and_keeps_what_it_held(pair: GroupHarness) -> None:
    answer = pair.join("a")
    assert answer.assignment == tuple(sorted(orders(0, 1)))
    assert pair.heartbeat("a", owned=orders(0, 1)).settled


def test_an_unknown_member_is_refused(group: GroupHarness) -> None:
    with pytest.raises(UnknownMemberIdError, match="group 'group' has no member 'a'"):
        group.heartbeat("a", 3)
    group.join("b")
    with pytest.raises(UnknownMemberIdError):
        group.heartbeat("a", 3)


# -- limits and places ---------------------------------------------------------------------------


def test_a_full_group_takes_no_member_more() -> None:
    group = GroupHarness(limits=GroupLimits(group_size_max=1))
    group.join("a")
    with pytest.raises(GroupMaxSizeReachedError, match="has 1 members: at most 1"):
        group.join("b")
    assert group.join("a").settled


def test_a_full_instance_takes_no_group_more() -> None:
    group = GroupHarness(limits=GroupLimits(groups_max=1))
    group.join("a")
    group.join("b")
    with pytest.raises(ThrottlingQuotaExceededError, match="there are 1 groups: at most 1"):
        group.join("a", group_id="another")


def test_a_group_of_another_instance_is_refused() -> None:
    group = GroupHarness(group_coordinators=2)
    with pytest.raises(NotCoordinatorError, match="group coordinator 1 is in charge of group"):
        group.join("a", group_id="group-1")


def test_nothing_is_decided_before_the_cluster_is_known() -> None:
    machine = GroupMachine(0, GroupLimits())
    heartbeat = Heartbeat(group_id=GROUP, member_id="a", member_epoch=0)
    with pytest.raises(CoordinatorNotAvailableError):
        machine.consumer_group_heartbeat(heartbeat)
