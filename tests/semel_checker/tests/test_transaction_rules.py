"""Rules about transactions as a whole: each is broken alone, and found."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from semel_checker.check import check
from semel_checker.history import Invoked
from semel_checker.names import AbortReason, Joint, Outcome, Source, TransactionState
from semel_checker.observations import Assigned, FinalPartition, FinalTransaction, StoredMarker
from semel_checker.operations import (
    AskOutcome,
    CommitOffsets,
    EndJoint,
    EndTransaction,
    Joined,
    JointEnded,
    JoinTransaction,
    OffsetCommit,
    OutcomeTold,
    Poll,
    Send,
    Sent,
    SentRecord,
)
from semel_checker.tests.edits import (
    answer_with,
    assert_found,
    edit,
    edit_final,
    edit_operation,
    edit_return,
    hide,
    polled,
    rules,
    show,
    without,
)
from semel_checker.tests.model import FAILED, GROUP, OK, OUT, P0, P1, UNKNOWN, Cluster
from semel_checker.violations import Rule

Change = Callable[[FinalPartition], FinalPartition]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_transactions_do_not_read_each_other_in_a_circle(cluster: Cluster) -> None:
    a, b = cluster.init("a"), cluster.init("b")
    cluster.send("b", b, P0, SentRecord("w"))
    cluster.send("a", a, OUT, SentRecord("v", source=Source("g", P0, 0)))
    cluster.commit("b", b)
    cluster.commit("a", a)
    good = cluster.finish()
    circular = SentRecord("w", source=Source("g", OUT, 0))
    bad = edit_operation(good, Send, lambda send: replace(send, records=(circular,)), number=0)
    assert_found(good, bad, Rule.C9)


@pytest.mark.parametrize("outcome", [OK, UNKNOWN])
def test_a_committed_transaction_is_not_torn(cluster: Cluster, outcome: Outcome) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.send("a", writer, P1, "w")
    cluster.commit("a", writer, outcome)
    good = cluster.finish()
    assert_found(good, hide(good, P1, "w"), Rule.C10)


def test_a_joint_transaction_is_not_torn(cluster: Cluster) -> None:
    joint = Joint("load", 1, "run")
    writers = [cluster.join(name, joint) for name in ("x", "y")]
    cluster.send("x", writers[0], P0, "v")
    cluster.send("y", writers[1], P1, "w")
    cluster.end_joint(joint, writers, *writers)
    good = cluster.finish()
    assert_found(good, hide(good, P1, "w"), Rule.C10)


def test_a_transaction_that_was_seen_is_seen_by_all_readers_past_it(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.send("a", writer, P1, "w")
    cluster.commit("a", writer)
    cluster.deliver_all()
    cluster.poll("reader", P0)
    cluster.poll("reader", P1)
    good = cluster.finish()
    bad = edit_return(good, Poll, lambda each: replace(each, result=polled(each.result, [])))
    assert_found(good, bad, Rule.C11)


def test_a_reader_may_wait_below_a_transaction_that_was_seen_elsewhere(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.send("a", writer, P1, "w")
    cluster.commit("a", writer)
    cluster.deliver()
    cluster.poll("reader", P0)
    cluster.poll("reader", P1)
    assert rules(cluster.finish()) == set()


# --- Fences ---


def test_a_fenced_epoch_does_not_commit(cluster: Cluster) -> None:
    old = cluster.init("a")
    cluster.init("a")
    cluster.call("a", EndTransaction(writer=old, commit=True), FAILED)
    good = without(cluster.finish(), FinalTransaction)
    assert_found(good, answer_with(good, EndTransaction, None), Rule.C16)


def test_a_commit_that_was_asked_for_before_the_fence_may_be_repeated(cluster: Cluster) -> None:
    old = cluster.init("a")
    cluster.send("a", old, P0, "v")
    cluster.commit("a", old, UNKNOWN)
    cluster.init("a")
    cluster.call("a", EndTransaction(writer=old, commit=True))
    assert rules(cluster.finish()) == set()


def test_a_prepared_transaction_may_be_completed_by_a_successor(cluster: Cluster) -> None:
    old = cluster.init("a")
    cluster.send("a", old, P0, "v")
    cluster.prepare("a", old)
    successor = cluster.init("a", keep_prepared=True)
    cluster.complete("a", old, successor, commit=True)
    assert rules(cluster.finish()) == set()


def test_a_record_of_a_fenced_epoch_is_not_read(cluster: Cluster) -> None:
    old = cluster.init("a")
    cluster.init("a")
    cluster.send("a", old, P0, "v", transactional=False, outcome=UNKNOWN)
    bad = cluster.finish()
    assert_found(hide(bad, P0, "v"), bad, Rule.C16)


def test_a_partition_that_stored_a_newer_epoch_takes_nothing_older(cluster: Cluster) -> None:
    old = cluster.init("a")
    new = cluster.init("a")
    cluster.send("a", new, P0, "w")
    cluster.send("a", old, P0, "v", outcome=FAILED)
    cluster.commit("a", new)
    good = cluster.finish()
    assert_found(good, answer_with(good, Send, Sent(base_offset=1000)), Rule.C16)


def test_a_group_that_took_a_newer_epoch_takes_nothing_older(cluster: Cluster) -> None:
    old = cluster.init("a")
    new = cluster.init("a")
    cluster.commit_offsets("a", new, P0, 0, 1)
    cluster.commit("a", new)
    offsets = (OffsetCommit(P0, 1, 0),)
    cluster.call("a", CommitOffsets(group=GROUP, offsets=offsets, writer=old), FAILED)
    good = cluster.finish()
    assert_found(good, answer_with(good, CommitOffsets, None), Rule.C16)


def test_an_epoch_is_given_to_one_process(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.send("a", writer, P0, "w")
    cluster.commit("a", writer)
    good = cluster.finish()
    last = max(
        index
        for index, event in enumerate(good)
        if isinstance(event.what, Invoked) and isinstance(event.what.operation, Send)
    )
    bad = [*good[:last], replace(good[last], process="a'"), *good[last + 1 :]]
    assert_found(good, bad, Rule.C16)


def test_a_member_that_lost_a_partition_commits_nothing_for_it(cluster: Cluster) -> None:
    writer = cluster.init("a")
    for member, member_epoch in (("one", 1), ("two", 2)):
        cluster.observe(
            Assigned(
                consumer=member,
                group=GROUP,
                member=member,
                member_epoch=member_epoch,
                partitions=(P0,),
            )
        )
    operation = CommitOffsets(
        group=GROUP,
        offsets=(OffsetCommit(P0, 1, 0),),
        writer=writer,
        member="one",
        member_epoch=1,
    )
    cluster.call("a", operation, FAILED)
    cluster.abort("a", writer)
    good = cluster.finish()
    assert_found(good, answer_with(good, CommitOffsets, None), Rule.C16)


# --- Outcomes ---


def test_a_late_commit_does_not_end_the_next_transaction(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    writer = cluster.commit("a", writer)
    cluster.send("a", writer, P0, "w")
    good = cluster.finish()
    assert_found(good, show(good, P0, 1, "w"), Rule.C17)


def test_a_late_abort_does_not_end_the_next_transaction(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    writer = cluster.abort("a", writer)
    cluster.send("a", writer, P0, "w")
    cluster.refuse_commit("a", writer)
    good = cluster.finish()
    bad = edit(
        good,
        FinalTransaction,
        lambda told: replace(told, reason=AbortReason.CLIENT) if told.writer == writer else None,
    )
    assert_found(good, bad, Rule.C17)


def test_a_transaction_is_not_committed_unasked(cluster: Cluster) -> None:
    writer = cluster.init("a")
    writer = cluster.abort("a", writer)
    cluster.send("a", writer, P0, "w")
    cluster.ask("operator", writer)
    good = cluster.finish()
    told = OutcomeTold(state=TransactionState.COMMITTED)
    bad = answer_with(good, AskOutcome, told)
    assert_found(good, bad, Rule.C17, Rule.C19)


def test_a_coordinator_agrees_with_the_client(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.commit("a", writer)
    cluster.ask("operator", writer)
    good = cluster.finish()
    bad = answer_with(good, AskOutcome, OutcomeTold(state=TransactionState.ABORTED))
    assert_found(good, bad, Rule.C19)


def test_a_decided_transaction_is_not_called_ongoing(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.commit("a", writer)
    cluster.ask("operator", writer)
    good = cluster.finish()
    bad = answer_with(good, AskOutcome, OutcomeTold(state=TransactionState.ONGOING))
    assert_found(good, bad, Rule.C19)


def test_a_marker_has_the_decided_outcome(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.commit("a", writer)
    good = cluster.finish()
    aborting = (StoredMarker(1, writer, commit=False),)
    bad = edit_final(good, P0, lambda final: replace(final, markers=aborting))
    assert rules(good) == set()
    assert Rule.C19 in rules(bad)


def test_a_transaction_has_one_marker_in_a_partition(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.commit("a", writer)
    good = cluster.finish()
    twice = (StoredMarker(1, writer, commit=True), StoredMarker(2, writer, commit=True))
    assert_found(good, edit_final(good, P0, lambda f: replace(f, markers=twice)), Rule.C19)


def test_a_committed_transaction_has_a_marker_in_each_partition(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.commit("a", writer)
    good = cluster.finish()
    bad = edit(good, FinalTransaction, lambda told: replace(told, partitions=(P0,)))
    assert_found(good, bad, Rule.C19)


def test_a_joint_version_is_committed_once(cluster: Cluster) -> None:
    for run in ("one", "two"):
        joint = Joint("load", 1, run)
        cluster.call("driver", EndJoint(joint=joint, owner="job", commit=True, writers=()))
    bad = cluster.finish()
    good = answer_with(bad, EndJoint, JointEnded(already_committed=True))
    assert_found(good, bad, Rule.C19)


def test_a_fenced_run_commits_no_joint_version(cluster: Cluster) -> None:
    older, newer = Joint("load", 1, "older"), Joint("load", 1, "newer")
    cluster.join("x", older)
    cluster.join("y", newer)
    cluster.end_joint(older, [])
    bad = cluster.finish()
    good = answer_with(bad, EndJoint, JointEnded(already_committed=True))
    assert_found(good, bad, Rule.C16)


def test_a_run_may_commit_what_it_asked_for_before_a_newer_one_joined(cluster: Cluster) -> None:
    cluster.join("x", Joint("load", 1, "older"))
    cluster.end_joint(Joint("load", 1, "older"), [])
    cluster.join("y", Joint("load", 2, "newer"))
    assert check(cluster.finish()) == []


def test_a_committed_joint_version_is_not_joined(cluster: Cluster) -> None:
    joint = Joint("load", 1, "one")
    cluster.end_joint(joint, [])
    cluster.join("x", Joint("load", 1, "two"))
    bad = cluster.finish()
    good = answer_with(bad, JoinTransaction, Joined(writer=None, already_committed=True))
    assert_found(good, bad, Rule.C19)


def test_a_joint_version_is_not_called_committed_before_it_is(cluster: Cluster) -> None:
    cluster.join("x", Joint("load", 1, "one"))
    good = cluster.finish()
    bad = answer_with(good, JoinTransaction, Joined(writer=None, already_committed=True))
    assert_found(good, bad, Rule.C19)


def test_no_caller_is_answered_under_the_joint_id_of_another_owner(cluster: Cluster) -> None:
    cluster.join("x", Joint("load", 1, "one"))
    cluster.end_joint(Joint("load", 1, "one"), [])
    cluster.join("y", Joint("load", 2, "two"))
    good = cluster.finish()
    bad = edit_operation(good, JoinTransaction, lambda join: replace(join, owner="other"), number=1)
    assert_found(good, bad, Rule.C17)
