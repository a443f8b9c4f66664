"""CommitOffsets and FetchOffsets: the callers that may move a group, and the answers."""

import pytest
from group_harness import COMMIT, GROUP, PRODUCER_ID, GroupHarness, codes, orders

from semel_common.errors import (
    GroupIdNotFoundError,
    InvalidRequestError,
    NotCoordinatorError,
    StaleMemberEpochError,
    ThrottlingQuotaExceededError,
    UnknownMemberIdError,
)
from semel_common.ids import GroupId
from semel_group.machine import GroupLimits
from semel_group.machine.values import Committer, NewOffset, TopicName
from semel_runtime.participant.inquiry import OpenTransactionAt


@pytest.fixture
def group() -> GroupHarness:
    return GroupHarness()


# -- committing ----------------------------------------------------------------------------------


def test_a_committed_offset_is_current_at_once(group: GroupHarness) -> None:
    assert group.commit({0: 5, 1: 6}, metadata="mine") == ()
    fetched = group.fetch(0, 1, 2).offsets
    assert [each.committed_offset for each in fetched] == [5, 6, -1]
    assert [each.metadata for each in fetched] == ["mine", "mine", ""]


def test_a_later_commit_replaces_an_earlier_one_even_backwards(group: GroupHarness) -> None:
    group.commit({0: 5})
    group.commit({0: 3})
    assert group.committed(0) == 3


def test_offsets_that_are_refused_do_not_hold_up_the_others(group: GroupHarness) -> None:
    offsets = [
        NewOffset(topic=TopicName("orders", ""), partition=0, committed_offset=1),
        NewOffset(topic=TopicName("orders", ""), partition=4, committed_offset=1),
        NewOffset(topic=TopicName("nothing", ""), partition=0, committed_offset=1),
        NewOffset(topic=TopicName("", "old-id"), partition=0, committed_offset=1),
        NewOffset(topic=TopicName("income", "orders-id"), partition=1, committed_offset=1),
        NewOffset(
            topic=TopicName("orders", ""), partition=2, committed_offset=1, metadata="ä" * 2049
        ),
        NewOffset(topic=TopicName("orders", "orders-id"), partition=3, committed_offset=1),
    ]
    refused = group.run(
        group.machine.committed_offsets.commit_offsets(Committer(group_id=GROUP), offsets, now_ms=0)
    )
    assert codes(refused) == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_ID",
        "OFFSET_METADATA_TOO_LARGE",
    ]
    assert [offset.committed_offset for offset in group.fetch(0, 1, 2, 3).offsets] == [1, -1, -1, 1]


def test_a_partition_with_two_offsets_is_refused(group: GroupHarness) -> None:
    offsets = [
        NewOffset(topic=TopicName("orders", ""), partition=0, committed_offset=1),
        NewOffset(topic=TopicName("", "orders-id"), partition=0, committed_offset=2),
    ]
    with pytest.raises(InvalidRequestError, match="partition 0 of topic id orders-id has two"):
        group.run(
            group.machine.committed_offsets.commit_offsets(
                Committer(group_id=GROUP), offsets, now_ms=0
            )
        )
    assert group.committed(0) == -1


def test_a_group_may_have_so_many_offsets_and_no_more() -> None:
    group = GroupHarness(limits=GroupLimits(offsets_max=2))
    group.commit({0: 1, 1: 1})
    group.commit({0: 2, 1: 2})
    with pytest.raises(ThrottlingQuotaExceededError, match="3 partitions have offsets: at most 2"):
        group.commit({2: 1})


def test_a_group_that_has_too_many_offsets_still_moves_them() -> None:
    """A transaction's offsets are counted by themselves, and then are there as well."""
    group = GroupHarness(limits=GroupLimits(offsets_max=1))
    group.commit({0: 1})
    group.txn_commit({1: 1})
    group.marker(COMMIT)
    group.commit({0: 2, 1: 2})
    assert group.committed(1) == 2
    with pytest.raises(ThrottlingQuotaExceededError, match="3 partitions have offsets: at most 1"):
        group.commit({2: 1})


def test_an_instance_may_have_so_many_groups_with_offsets_and_no_more() -> None:
    group = GroupHarness(limits=GroupLimits(groups_max=1))
    group.commit({0: 1})
    group.commit({0: 2})
    complaint = "there are 1 groups with offsets: at most 1"
    with pytest.raises(ThrottlingQuotaExceededError, match=complaint):
        group.commit({0: 1}, Committer(group_id="another"))
    with pytest.raises(ThrottlingQuotaExceededError, match=complaint):
        group.txn_commit({0: 1}, Committer(group_id="another"))
    assert group.marker(COMMIT, groups=["another"]) == ()


def test_a_group_that_has_offsets_in_a_transaction_only_takes_its_room() -> None:
    group = GroupHarness(limits=GroupLimits(groups_max=1))
    group.txn_commit({0: 1})
    with pytest.raises(ThrottlingQuotaExceededError, match="there are 1 groups with offsets"):
        group.commit({0: 1}, Committer(group_id="another"))


def test_groups_with_fences_only_take_no_room_from_others() -> None:
    group = GroupHarness(limits=GroupLimits(groups_max=1))
    group.marker(COMMIT, groups=["ghost", "another ghost"])
    group.commit({0: 1})
    with pytest.raises(ThrottlingQuotaExceededError, match="there are 1 groups with offsets"):
        group.commit({0: 1}, Committer(group_id="ghost"))


def test_another_instance_keeps_its_groups() -> None:
    group = GroupHarness(group_coordinators=2)
    with pytest.raises(NotCoordinatorError):
        group.commit({0: 1}, Committer(group_id="group-1"))
    with pytest.raises(NotCoordinatorError):
        group.fetch(0, by=Committer(group_id="group-1"))


# -- members and others --------------------------------------------------------------------------


def test_a_caller_without_a_name_may_commit_while_a_group_has_no_members(
    group: GroupHarness,
) -> None:
    group.join("a")
    group.leave("a")
    assert group.commit({0: 5}) == ()


def test_only_members_may_commit_while_there_are_some(group: GroupHarness) -> None:
    group.join("a")
    with pytest.raises(UnknownMemberIdError, match="has members: only they may commit"):
        group.commit({0: 5})


def test_a_member_of_a_group_that_does_not_exist_is_told_so(group: GroupHarness) -> None:
    with pytest.raises(GroupIdNotFoundError, match="there is no group 'group'"):
        group.commit({0: 5}, group.member("a", 1))


def test_a_member_that_a_group_does_not_have_is_told_so(group: GroupHarness) -> None:
    group.commit({0: 5})
    with pytest.raises(UnknownMemberIdError, match="has no member 'a'"):
        group.commit({0: 5}, group.member("a", 1))


def test_a_member_commits_what_it_holds(group: GroupHarness) -> None:
    group.join("a")
    assert group.commit({0: 5}, group.member("a")) == ()
    assert group.committed(0) == 5


def test_a_member_commits_what_it_is_about_to_give_up(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    assert group.commit({3: 5}, group.member("a")) == ()


def test_a_member_may_not_commit_what_it_has_given_up(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.heartbeat("a", owned=orders(0, 1))
    refused = group.commit({0: 5, 3: 5}, group.member("a"))
    assert codes(refused) == ["STALE_MEMBER_EPOCH"]
    assert group.committed(0) == 5
    assert group.committed(3) == -1


def test_an_older_epoch_does_for_what_the_member_held_already_then(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    assert group.epoch("a") == 2
    assert group.commit({0: 5, 3: 5}, group.member("a", 1)) == ()


def test_an_older_epoch_does_not_do_for_what_was_gone_in_between(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.heartbeat("a", owned=orders(0, 1))
    group.leave("b")
    group.heartbeat("a", owned=orders(0, 1))
    assert group.held("a") == orders(0, 1, 2, 3)
    refused = group.commit({1: 5, 2: 5}, group.member("a", 2))
    assert codes(refused) == ["STALE_MEMBER_EPOCH"]
    assert group.commit({2: 5}, group.member("a", 3)) == ()


def test_an_epoch_from_the_future_is_refused(group: GroupHarness) -> None:
    group.join("a")
    with pytest.raises(StaleMemberEpochError, match="commits at epoch 2, but is at epoch 1"):
        group.commit({0: 5}, group.member("a", 2))


# -- fetching ------------------------------------------------------------------------------------


def test_an_unknown_group_has_no_offsets(group: GroupHarness) -> None:
    assert [offset.committed_offset for offset in group.fetch(0, 3).offsets] == [-1, -1]
    assert group.fetch().offsets == ()


def test_partitions_that_do_not_exist_are_answered_as_errors(group: GroupHarness) -> None:
    group.commit({0: 5})
    assert codes(group.fetch(0, 4).offsets) == ["", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert codes(group.fetch(0, topic=TopicName("nothing", "")).offsets) == [
        "UNKNOWN_TOPIC_OR_PARTITION"
    ]
    assert codes(group.fetch(0, topic=TopicName("", "old-id")).offsets) == ["UNKNOWN_TOPIC_ID"]


def test_names_and_ids_of_topics_are_both_answered(group: GroupHarness) -> None:
    group.commit({0: 5})
    for name in (TopicName("", "orders-id"), TopicName("orders", "")):
        (fetched,) = group.fetch(0, topic=name).offsets
        assert fetched.topic == TopicName("orders", "orders-id")


def test_all_offsets_of_a_group_come_in_order(group: GroupHarness) -> None:
    group.commit({2: 7, 0: 5})
    assert [(offset.partition, offset.committed_offset) for offset in group.fetch().offsets] == [
        (0, 5),
        (2, 7),
    ]


def test_pending_offsets_are_unstable_for_their_partitions_only(group: GroupHarness) -> None:
    """C-173, the form that names partitions."""
    group.commit({0: 5, 1: 6})
    group.txn_commit({0: 8})
    fetched = group.fetch(0, 1, stable=True)
    assert codes(fetched.offsets) == ["UNSTABLE_OFFSET_COMMIT", ""]
    assert [offset.committed_offset for offset in fetched.offsets] == [-1, 6]
    assert fetched.unstable == {OpenTransactionAt(GroupId(GROUP), PRODUCER_ID, 0)}
    assert [offset.committed_offset for offset in group.fetch(0, 1).offsets] == [5, 6]


def test_pending_offsets_are_unstable_among_all_offsets_too(group: GroupHarness) -> None:
    """C-173, the form that asks for everything."""
    group.commit({1: 6})
    group.txn_commit({0: 8}, producer_id=1)
    group.txn_commit({0: 9}, producer_id=2)
    fetched = group.fetch(stable=True)
    assert codes(fetched.offsets) == ["UNSTABLE_OFFSET_COMMIT", ""]
    assert len(fetched.unstable) == 2
    assert [offset.partition for offset in group.fetch().offsets] == [1]


def test_only_a_current_member_reads_as_a_member(group: GroupHarness) -> None:
    group.join("a")
    assert group.fetch(0, by=group.member("a")).offsets
    with pytest.raises(StaleMemberEpochError, match="has epoch 0: the group gave it 1"):
        group.fetch(0, by=group.member("a", 0))
    with pytest.raises(StaleMemberEpochError):
        group.fetch(0, by=group.member("a", 2))
    with pytest.raises(UnknownMemberIdError):
        group.fetch(0, by=group.member("b", 1))
    with pytest.raises(GroupIdNotFoundError):
        group.fetch(0, by=group.member("b", 1, "another"))


def test_anybody_may_read_a_group_with_members(group: GroupHarness) -> None:
    group.join("a")
    assert codes(group.fetch(0).offsets) == [""]


# -- deleted topics ------------------------------------------------------------------------------


def test_offsets_of_a_deleted_topic_are_forgotten(group: GroupHarness) -> None:
    group.commit({0: 5, 1: 5})
    group.txn_commit({1: 8, 2: 8})
    group.topics({"income": 1})
    assert group.fetch().offsets == ()
    assert group.forget_deleted_topics() == 3
    group.topics({"orders": 4})
    group.marker(COMMIT)
    assert group.fetch().offsets == ()


def test_offsets_of_deleted_topics_go_in_bounded_steps(group: GroupHarness) -> None:
    group.commit({0: 5, 1: 5, 2: 5})
    group.topics({})
    assert [group.forget_deleted_topics(2) for _ in range(3)] == [2, 1, 0]


def test_offsets_of_topics_that_are_there_stay(group: GroupHarness) -> None:
    group.commit({0: 5})
    assert group.forget_deleted_topics() == 0
    assert group.committed(0) == 5
