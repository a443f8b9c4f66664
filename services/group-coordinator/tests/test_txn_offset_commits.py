"""TxnOffsetCommit and its outcomes: a group moves once for each transaction that commits.

The scenarios C-170 to C-183 are those of Kafka's own tests.
"""

import pytest
from group_harness import (
    ABORT,
    CLUSTER_ID,
    COMMIT,
    GROUP,
    PRODUCER_ID,
    GroupHarness,
    codes,
    new_offsets,
    orders,
    txn_marker,
)
from hypothesis import given
from hypothesis import strategies as st

from semel_common.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InconsistentClusterIdError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    OutOfOrderSequenceNumberError,
    StaleMemberEpochError,
    ThrottlingQuotaExceededError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from semel_group.machine import GroupLimits, GroupMachine
from semel_group.machine.offsets.producer import after_commit, is_repeat, unknown_producer
from semel_group.machine.records import (
    OffsetRemoved,
    TransactionEnded,
    TxnOffsetsCommitted,
)
from semel_group.machine.values import Committer, Transaction
from semel_runtime.machine import Result
from semel_runtime.participant.coordinator_epochs import CoordinatorEpochSeen


@pytest.fixture
def group() -> GroupHarness:
    return GroupHarness()


# -- held until the outcome ----------------------------------------------------------------------


def test_offsets_of_a_transaction_are_held_and_nothing_moves(group: GroupHarness) -> None:
    """C-170."""
    group.join("a")
    group.commit({0: 5}, group.member("a"))
    before = len(group.journal)
    group.txn_commit({0: 8, 1: 9}, group.member("a"))
    assert [type(each) for each in group.written(before)] == [TxnOffsetsCommitted]
    assert [offset.committed_offset for offset in group.fetch(0, 1).offsets] == [5, -1]


def test_a_commit_marker_makes_them_current(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, metadata="mine")
    assert group.marker(COMMIT) == ()
    (fetched,) = group.fetch(0, stable=True).offsets
    assert (fetched.committed_offset, fetched.metadata) == (8, "mine")


def test_an_abort_marker_drops_them(group: GroupHarness) -> None:
    group.commit({0: 5})
    group.txn_commit({0: 8})
    group.marker(ABORT)
    assert group.committed(0) == 5


def test_all_commits_of_one_transaction_end_together(group: GroupHarness) -> None:
    group.txn_commit({0: 8, 1: 8})
    group.txn_commit({1: 9, 2: 9}, sequence=1)
    group.marker(COMMIT)
    assert [offset.committed_offset for offset in group.fetch(0, 1, 2).offsets] == [8, 9, 9]


def test_only_the_offsets_of_the_ended_transaction_move(group: GroupHarness) -> None:
    """C-174."""
    group.txn_commit({0: 50, 1: 51}, producer_id=5)
    group.txn_commit({1: 61, 2: 62}, producer_id=6)
    group.marker(COMMIT, producer_id=5)
    assert [offset.committed_offset for offset in group.fetch(0, 1, 2).offsets] == [50, 51, -1]
    assert codes(group.fetch(0, 1, 2, stable=True).offsets) == [
        "",
        "UNSTABLE_OFFSET_COMMIT",
        "UNSTABLE_OFFSET_COMMIT",
    ]


def test_a_plain_commit_that_came_later_stays(group: GroupHarness) -> None:
    """C-176."""
    group.txn_commit({0: 8, 1: 8})
    group.commit({0: 100})
    group.marker(COMMIT)
    assert [offset.committed_offset for offset in group.fetch(0, 1).offsets] == [100, 8]


def test_markers_out_of_order_leave_the_later_transaction_s_offset(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.txn_commit({0: 9}, epoch=1)
    group.marker(COMMIT, epoch=1)
    group.marker(COMMIT, epoch=0)
    assert group.committed(0) == 9


def test_a_removed_offset_takes_what_transactions_hold_along(group: GroupHarness) -> None:
    """C-177."""
    group.commit({0: 5, 1: 5})
    group.txn_commit({0: 8, 1: 8})
    group.txn_commit({0: 9}, sequence=1)
    removed = [OffsetRemoved(group_id=GROUP, partition=order) for order in orders(0)]
    group.run(Result(None, removed))
    assert group.committed(0) == -1
    assert codes(group.fetch(0, 1, stable=True).offsets) == ["", "UNSTABLE_OFFSET_COMMIT"]
    group.marker(COMMIT)
    assert [offset.committed_offset for offset in group.fetch(0, 1).offsets] == [-1, 8]


def test_a_transaction_whose_offsets_are_all_removed_is_still_open(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.run(Result(None, [OffsetRemoved(group_id=GROUP, partition=order) for order in orders(0)]))
    group.now_ms += 5
    group.txn_commit({1: 8}, sequence=1)
    (committed,) = [each for each in group.journal if isinstance(each, TxnOffsetsCommitted)][1:]
    assert committed.start_time_ms == group.now_ms - 5
    assert codes(group.fetch(0, 1, stable=True).offsets) == ["", "UNSTABLE_OFFSET_COMMIT"]


# -- who commits ---------------------------------------------------------------------------------


def test_an_unknown_group_is_made_only_for_commits_without_an_epoch(
    group: GroupHarness,
) -> None:
    """C-171."""
    with pytest.raises(GroupIdNotFoundError):
        group.txn_commit({0: 8}, group.member("a", 1))
    group.txn_commit({0: 8})
    group.marker(COMMIT)
    assert group.committed(0) == 8


def test_a_fenced_member_holds_nothing(group: GroupHarness) -> None:
    group.join("a")
    member = group.member("a")
    group.expire("a")
    with pytest.raises(UnknownMemberIdError):
        group.txn_commit({0: 8}, member)
    assert group.to_inquire() == []


def test_partitions_that_the_member_does_not_hold_are_refused_with_all_others(
    group: GroupHarness,
) -> None:
    group.join("a")
    group.join("b")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.heartbeat("a", owned=orders(0, 1))
    before = len(group.journal)
    with pytest.raises(StaleMemberEpochError, match="does not hold partition 2 of topic id"):
        group.txn_commit({0: 8, 2: 8}, group.member("a"))
    assert group.written(before) == []


def test_a_member_may_end_its_transaction_before_it_gives_up(group: GroupHarness) -> None:
    group.join("a")
    group.join("b")
    member = group.member("a")
    group.heartbeat("a", owned=orders(0, 1, 2, 3))
    group.txn_commit({0: 8, 3: 8}, member)
    group.heartbeat("a", owned=orders(0, 1))
    group.heartbeat("b", owned=())
    assert codes(group.fetch(3, stable=True, by=group.member("b")).offsets) == [
        "UNSTABLE_OFFSET_COMMIT"
    ]
    group.marker(COMMIT)
    (fetched,) = group.fetch(3, stable=True, by=group.member("b")).offsets
    assert fetched.committed_offset == 8


def test_one_offset_that_is_wrong_refuses_all(group: GroupHarness) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        group.txn_commit({0: 8, 4: 8})
    with pytest.raises(OffsetMetadataTooLargeError, match="has 4097 bytes: at most 4096"):
        group.txn_commit({0: 8}, metadata="x" * 4097)
    assert group.fetch(0, stable=True).unstable == frozenset()


# -- steps 2 to 5 --------------------------------------------------------------------------------


@given(st.integers(0, 12), st.integers(0, 14))
def test_one_of_the_last_five_is_a_repeat_and_the_next_is_new(last: int, sequence: int) -> None:
    group = GroupHarness()
    for each in range(last + 1):
        group.txn_commit({0: each}, sequence=each)
    before = len(group.journal)
    if last - 4 <= sequence <= last:
        group.txn_commit({0: sequence}, sequence=sequence)
        assert group.written(before) == []
        used = f"base sequence {sequence} .* was used for something else"
        with pytest.raises(OutOfOrderSequenceNumberError, match=used):
            group.txn_commit({0: 99}, sequence=sequence)
        assert group.written(before) == []
    elif sequence == last + 1:
        group.txn_commit({0: 99}, sequence=sequence)
        assert len(group.written(before)) == 1
    else:
        expected = f"base sequence {sequence} .* is not the expected {last + 1}"
        with pytest.raises(OutOfOrderSequenceNumberError, match=expected):
            group.txn_commit({0: 99}, sequence=sequence)


def test_a_repeat_may_name_its_offsets_in_another_order(group: GroupHarness) -> None:
    group.txn_commit({0: 1, 1: 2}, metadata="m")
    before = len(group.journal)
    group.txn_commit({1: 2, 0: 1}, metadata="m")
    for offsets, metadata in (({0: 1}, "m"), ({0: 2, 1: 1}, "m"), ({0: 1, 1: 2}, "n")):
        with pytest.raises(OutOfOrderSequenceNumberError, match="was used for something else"):
            group.txn_commit(offsets, metadata=metadata)
    assert group.written(before) == []


def test_commits_of_an_older_journal_are_known_by_their_sequence_alone() -> None:
    state = after_commit(unknown_producer("g", 1), 0, 0, None)
    state = after_commit(state, 0, 1, 7)
    assert is_repeat(state, Transaction(1, 0), 0, crc32c=99)
    assert is_repeat(state, Transaction(1, 0), 1, crc32c=7)
    with pytest.raises(OutOfOrderSequenceNumberError):
        is_repeat(state, Transaction(1, 0), 1, crc32c=8)


def test_a_repeat_is_answered_even_if_the_member_is_gone(group: GroupHarness) -> None:
    group.join("a")
    member = group.member("a")
    group.txn_commit({0: 8}, member)
    group.expire("a")
    before = len(group.journal)
    group.txn_commit({0: 8}, member)
    assert group.written(before) == []


def test_a_repeat_after_the_outcome_holds_nothing(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.marker(ABORT)
    group.txn_commit({0: 8})
    assert group.fetch(0, stable=True).unstable == frozenset()


def test_an_epoch_below_the_fence_is_refused(group: GroupHarness) -> None:
    group.marker(ABORT, epoch=3)
    with pytest.raises(
        InvalidProducerEpochError, match=r"producer epoch 3 .* is below the fence 4"
    ):
        group.txn_commit({0: 8}, epoch=3)
    group.txn_commit({0: 8}, epoch=4)


def test_an_epoch_older_than_the_highest_seen_is_refused(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=2)
    with pytest.raises(InvalidProducerEpochError, match=r"producer epoch 1 .* is older than 2"):
        group.txn_commit({0: 7}, epoch=1)


def test_a_newer_epoch_begins_at_sequence_0(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    with pytest.raises(OutOfOrderSequenceNumberError, match="is not the expected 0"):
        group.txn_commit({0: 9}, epoch=1, sequence=1)
    group.txn_commit({0: 9}, epoch=1, sequence=0)


def test_each_group_counts_for_itself(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.txn_commit({0: 8}, Committer(group_id="another"))
    group.marker(COMMIT, groups=["another"])
    assert group.committed(0) == -1


# -- markers -------------------------------------------------------------------------------------


def test_a_repeated_marker_writes_nothing(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    group.marker(COMMIT)
    before = len(group.journal)
    assert group.marker(COMMIT) == ()
    assert group.written(before) == []


def test_a_marker_for_a_transaction_that_is_not_open_raises_the_fence(group: GroupHarness) -> None:
    before = len(group.journal)
    assert group.marker(ABORT) == ()
    assert group.written(before) == [
        CoordinatorEpochSeen(transaction_log_partition=7, coordinator_epoch=1),
        TransactionEnded(
            group_id=GROUP,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            committed=False,
            ended_ms=group.now_ms,
        ),
    ]


def test_a_late_marker_of_an_older_epoch_lowers_no_fence(group: GroupHarness) -> None:
    group.txn_commit({0: 8}, epoch=0)
    group.marker(ABORT, epoch=5)
    group.marker(COMMIT, epoch=0)
    assert group.committed(0) == 8
    with pytest.raises(InvalidProducerEpochError, match="is below the fence 6"):
        group.txn_commit({0: 9}, epoch=5)


def test_the_marker_of_a_deposed_coordinator_writes_nothing(group: GroupHarness) -> None:
    """C-182."""
    group.txn_commit({0: 8})
    group.marker(ABORT, producer_id=PRODUCER_ID + 1, coordinator_epoch=4)
    before = len(group.journal)
    refused = group.marker(COMMIT, coordinator_epoch=3, groups=[GROUP, "another"])
    assert codes(refused) == ["TRANSACTION_COORDINATOR_FENCED"] * 2
    assert group.written(before) == []


def test_one_request_cannot_lower_the_coordinator_epoch(group: GroupHarness) -> None:
    group.txn_commit({0: 8})
    markers = [txn_marker(COMMIT, epoch=9, coordinator_epoch=5), txn_marker(COMMIT)]
    taken, fenced = group.run(
        group.machine.transactions.write_txn_markers(CLUSTER_ID, markers, now_ms=0)
    )
    assert (taken, codes(fenced)) == ((), ["TRANSACTION_COORDINATOR_FENCED"])
    assert codes(group.marker(COMMIT, coordinator_epoch=4)) == ["TRANSACTION_COORDINATOR_FENCED"]
    assert group.committed(0) == -1


def test_coordinator_epochs_belong_to_the_transaction_log_partition(group: GroupHarness) -> None:
    group.marker(ABORT, coordinator_epoch=4)
    assert group.marker(ABORT, producer_id=(8 << 48) | 1, coordinator_epoch=1) == ()


def test_many_markers_are_answered_each(group: GroupHarness) -> None:
    """C-125, for groups."""
    group.txn_commit({0: 8}, epoch=0)
    group.txn_commit({1: 9}, epoch=1)
    markers = [
        txn_marker(COMMIT, epoch=0),
        txn_marker(ABORT, producer_id=9),
        txn_marker(COMMIT, epoch=1),
        txn_marker(COMMIT, epoch=1),
    ]
    before = len(group.journal)
    assert group.run(
        group.machine.transactions.write_txn_markers(CLUSTER_ID, markers, now_ms=0)
    ) == (
        (),
        (),
        (),
        (),
    )
    assert len(group.written(before)) == 5
    assert [offset.committed_offset for offset in group.fetch(0, 1).offsets] == [8, 9]


def test_a_marker_for_a_group_of_another_instance_is_refused_for_that_group() -> None:
    """C-126."""
    group = GroupHarness(group_coordinators=2)
    ours = Committer(group_id="another")
    group.txn_commit({0: 8}, ours)
    refused = group.marker(COMMIT, groups=["group-1", "another"])
    assert [(each.group_id, each.error.code.name) for each in refused] == [
        ("group-1", "NOT_COORDINATOR")
    ]
    assert group.fetch(0, by=ours).offsets[0].committed_offset == 8


def test_markers_of_another_cluster_are_refused(group: GroupHarness) -> None:
    """C-183: what cannot be verified is not written."""
    before = len(group.journal)
    with pytest.raises(InconsistentClusterIdError, match="belongs to cluster cluster, not to 'x'"):
        group.run(group.machine.transactions.write_txn_markers("x", [txn_marker(COMMIT)], now_ms=0))
    assert group.written(before) == []


def test_markers_wait_until_the_cluster_is_known() -> None:
    """C-180: a service that is not part of its cluster yet."""
    machine = GroupMachine(0, GroupLimits())
    with pytest.raises(CoordinatorNotAvailableError):
        machine.transactions.write_txn_markers(CLUSTER_ID, [txn_marker(COMMIT)], now_ms=0)
    assert machine.deletion.remove_deleted_topics([GROUP], 10) == Result(0)


# -- limits --------------------------------------------------------------------------------------


def test_a_group_holds_so_many_transactions_and_no_more() -> None:
    group = GroupHarness(limits=GroupLimits(pending_transactions_max=1))
    group.txn_commit({0: 8})
    group.txn_commit({0: 9}, sequence=1)
    with pytest.raises(ThrottlingQuotaExceededError, match="has 1 open transactions: at most 1"):
        group.txn_commit({0: 8}, epoch=1)
    group.marker(COMMIT)
    group.txn_commit({0: 10}, epoch=1)


def test_a_group_knows_so_many_producers_and_no_more() -> None:
    group = GroupHarness(limits=GroupLimits(producers_max=1))
    group.txn_commit({0: 8}, producer_id=1)
    with pytest.raises(ThrottlingQuotaExceededError, match="knows 1 producers: at most 1"):
        group.txn_commit({0: 8}, producer_id=2)
    group.txn_commit({0: 8}, producer_id=1, epoch=1)
    assert group.marker(ABORT, producer_id=2) == ()


def test_a_transaction_holds_so_many_offsets_and_no_more() -> None:
    group = GroupHarness(limits=GroupLimits(offsets_max=2))
    group.txn_commit({0: 8, 1: 8})
    with pytest.raises(ThrottlingQuotaExceededError, match="3 partitions have offsets: at most 2"):
        group.txn_commit({2: 8}, sequence=1)


def test_another_instance_s_group_is_not_written() -> None:
    group = GroupHarness(group_coordinators=2)
    with pytest.raises(NotCoordinatorError):
        group.txn_commit({0: 8}, Committer(group_id="group-1"))


def test_a_partition_named_twice_refuses_the_request(group: GroupHarness) -> None:
    offsets = [*new_offsets({0: 8}), *new_offsets({0: 9})]
    transaction = txn_marker(COMMIT).transaction
    committer, machine = Committer(group_id=GROUP), group.machine.committed_offsets
    with pytest.raises(InvalidRequestError, match="has two offsets"):
        group.run(machine.txn_offset_commit(committer, transaction, 0, offsets, now_ms=0))


def test_a_producer_id_that_no_coordinator_gives_out_is_refused(group: GroupHarness) -> None:
    """Otherwise its outcome would be unknown, and the group would wait for ever."""
    group.txn_commit({0: 8}, producer_id=49 << 48 | 1)
    with pytest.raises(InvalidProducerIdMappingError, match="partition 50 of 50"):
        group.txn_commit({1: 8}, producer_id=50 << 48 | 1)
