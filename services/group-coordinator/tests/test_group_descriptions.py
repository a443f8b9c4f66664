"""Groups as operators see them."""

from group_harness import ABORT, COMMIT, GROUP, PRODUCER_ID, START_MS, GroupHarness, orders

from semel_common.errors import GroupIdNotFoundError, NotCoordinatorError
from semel_common.ids import TopicPartition
from semel_group.machine.values import (
    GroupDescription,
    GroupListing,
    GroupState,
    MemberDescription,
    PendingDescription,
)


def test_a_group_is_described_with_members_and_pending_transactions() -> None:
    group = GroupHarness()
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.txn_commit({3: 8, 1: 7}, group.member("a"), epoch=2)
    assert group.describe() == GroupDescription(
        group_id=GROUP,
        state=GroupState.RECONCILING,
        group_epoch=2,
        assignor="uniform",
        members=(
            MemberDescription(
                member_id="a",
                instance_id="",
                member_epoch=2,
                subscribed_topics=("orders",),
                assignment=tuple(sorted(orders(0, 1))),
                target=tuple(sorted(orders(0, 1))),
            ),
            MemberDescription(
                member_id="b",
                instance_id="",
                member_epoch=2,
                subscribed_topics=("orders",),
                assignment=(),
                target=tuple(sorted(orders(2, 3))),
            ),
        ),
        pending=(
            PendingDescription(
                producer_id=PRODUCER_ID,
                producer_epoch=2,
                start_time_ms=START_MS,
                offsets=((TopicPartition("orders-id", 1), 7), (TopicPartition("orders-id", 3), 8)),
            ),
        ),
    )


def test_a_group_of_offsets_only_is_empty() -> None:
    group = GroupHarness()
    group.commit({0: 5})
    description = group.describe()
    assert isinstance(description, GroupDescription)
    assert description.state is GroupState.EMPTY
    assert description.members == ()
    assert description.pending == ()


def test_a_group_that_is_not_here_is_described_as_an_error() -> None:
    group = GroupHarness(group_coordinators=2)
    assert isinstance(group.describe("nobody's"), GroupIdNotFoundError)
    assert isinstance(group.describe("group-1"), NotCoordinatorError)


def test_groups_are_listed_by_id_with_their_states() -> None:
    group = GroupHarness()
    group.join("a", group_id="moving")
    group.join("b", group_id="moving")
    group.join("a", group_id="calm")
    group.join("a", group_id="left")
    group.leave("a", group_id="left")
    group.txn_commit({0: 1})
    assert group.list() == (
        GroupListing(group_id="calm", state=GroupState.STABLE, member_count=1),
        GroupListing(group_id=GROUP, state=GroupState.EMPTY, member_count=0),
        GroupListing(group_id="left", state=GroupState.EMPTY, member_count=0),
        GroupListing(group_id="moving", state=GroupState.RECONCILING, member_count=2),
    )


def test_a_group_of_which_only_a_fence_is_left_is_not_listed() -> None:
    group = GroupHarness()
    group.txn_commit({0: 1})
    group.marker(ABORT)
    assert group.list() == ()
    assert isinstance(group.describe(), GroupIdNotFoundError)
    group.txn_commit({0: 1}, epoch=1)
    group.marker(COMMIT, epoch=1)
    assert len(group.list()) == 1
