"""Rules about single values: each is broken alone, and found."""

from dataclasses import replace

import pytest
from semel_checker.check import check
from semel_checker.history import Event
from semel_checker.names import Isolation, Joint, Writer
from semel_checker.observations import (
    DamageReported,
    FaultEnded,
    FaultInjected,
    FaultKind,
    FinalPartition,
)
from semel_checker.operations import Poll, Polled, Result, Send, Sent, SentRecord
from semel_checker.tests.edits import (
    answer_with,
    assert_found,
    edit_final,
    edit_operation,
    edit_return,
    hide,
    insert,
    polled,
    rules,
    show,
    without,
)
from semel_checker.tests.model import FAILED, P0, P1, TABLE, UNKNOWN, Cluster
from semel_checker.violations import Rule

PLAIN = Writer(50, 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def plain(cluster: Cluster, *values: str) -> None:
    for value in values:
        cluster.send("plain", PLAIN, P0, value, transactional=False)


def test_a_value_of_an_aborted_transaction_is_not_read(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.abort("a", writer)
    good = cluster.finish()
    assert_found(good, show(good, P0, 0, "v"), Rule.C1)


def test_a_value_of_a_refused_commit_is_not_read(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.refuse_commit("a", writer)
    good = cluster.finish()
    assert_found(good, show(good, P0, 0, "v"), Rule.C1)


def test_a_value_of_a_transaction_that_was_never_ended_is_not_read(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    good = cluster.finish()
    assert_found(good, show(good, P0, 0, "v"), Rule.C1)


def test_a_refused_send_is_not_read(cluster: Cluster) -> None:
    cluster.send("plain", PLAIN, P0, "v", outcome=FAILED, transactional=False)
    good = cluster.finish()
    bad = edit_final(show(good, P0, 0, "v"), P0, grown)
    assert_found(good, bad, Rule.C1)


def grown(final: FinalPartition) -> FinalPartition:
    end = final.high_watermark + 1
    return replace(final, last_stable_offset=end, high_watermark=end)


def test_a_writer_that_was_not_named_in_a_joint_commit_is_not_read(cluster: Cluster) -> None:
    joint = Joint("load", 1, "run")
    winner, loser = cluster.join("x", joint), cluster.join("y", joint)
    cluster.send("x", winner, P0, "v")
    cluster.send("y", loser, P0, "w")
    cluster.end_joint(joint, [winner, loser], winner)
    good = cluster.finish()
    assert_found(good, show(good, P0, 1, "w"), Rule.C1)


def test_the_aborted_index_covers_what_aborted(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v", "w")
    cluster.abort("a", writer)
    good = cluster.finish()

    def shorten(final: FinalPartition) -> FinalPartition:
        assert final.aborted is not None
        return replace(final, aborted=(final.aborted[0]._replace(first_offset=1),))

    assert_found(good, edit_final(good, P0, shorten), Rule.C1)


def test_a_transaction_does_not_read_its_own_values(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.poll("a", P0, transaction=writer)
    cluster.commit("a", writer)
    good = cluster.finish()
    bad = edit_return(good, Poll, lambda each: replace(each, result=reading(each.result, "v")))
    assert_found(good, bad, Rule.C2)


def reading(result: Result | None, value: str) -> Polled:
    found = polled(result, [(0, value)])
    return replace(found, reads=(replace(found.reads[0], next_position=1),))


def test_a_value_is_not_read_before_its_commit_is_asked_for(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.poll("reader", P0)
    cluster.commit("a", writer)
    good = cluster.finish()
    bad = edit_return(good, Poll, lambda each: replace(each, result=reading(each.result, "v")))
    assert_found(good, bad, Rule.C2)


def test_an_offset_holds_one_value(cluster: Cluster) -> None:
    plain(cluster, "v")
    cluster.send("plain", PLAIN, P1, "w", outcome=UNKNOWN, transactional=False)
    cluster.poll("reader", P0, isolation=Isolation.READ_UNCOMMITTED)
    cluster.logs[P1].clear()
    good = cluster.finish()
    bad = edit_return(
        good, Poll, lambda each: replace(each, result=polled(each.result, [(0, "w")]))
    )
    assert_found(good, bad, Rule.C3)


def test_a_conditional_append_is_where_it_asked_to_be(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    good = cluster.finish()
    good = edit_operation(good, Send, lambda send: replace(send, expected_base_offset=1))
    bad = edit_operation(good, Send, lambda send: replace(send, expected_base_offset=0))
    assert_found(good, bad, Rule.C3)


def test_a_value_is_stored_once(cluster: Cluster) -> None:
    plain(cluster, "v")
    good = cluster.finish()
    assert_found(good, edit_final(show(good, P0, 1, "v"), P0, grown), Rule.C4)


def test_a_committed_value_is_not_missing_below_another(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    good = cluster.finish()
    assert_found(good, hide(good, P0, "v"), Rule.C5, Rule.C22)


def test_a_committed_value_is_not_left_out_by_all_readers_past_it(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    cluster.poll("reader", P0)
    good = without(cluster.finish(), FinalPartition)
    bad = edit_return(
        good, Poll, lambda each: replace(each, result=polled(each.result, [(1, "w")]))
    )
    assert_found(good, bad, Rule.C5, Rule.C22)


def test_a_committed_value_is_read_in_the_end(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    good = cluster.finish()
    assert_found(good, hide(good, P0, "w"), Rule.C6, Rule.C22)


def test_a_committed_transaction_is_read_in_the_end(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.commit("a", writer)
    good = cluster.finish()
    assert_found(good, hide(good, P0, "v"), Rule.C6, Rule.C22)


def test_a_value_that_no_client_sent_is_not_read(cluster: Cluster) -> None:
    good = cluster.finish()
    assert_found(good, edit_final(show(good, P0, 0, "ghost"), P0, grown), Rule.C12)


def test_what_was_acknowledged_survives_a_crash(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    cluster.observe(FaultInjected(fault=1, kind=FaultKind.POWER_LOSS, target="broker-0"))
    good = cluster.finish()
    assert_found(good, hide(good, P0, "w"), Rule.C20, Rule.C22)


def test_read_records_are_still_there_in_the_end(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    cluster.poll("reader", P0)
    good = cluster.finish()
    assert_found(good, hide(good, P0, "w"), Rule.C20, Rule.C22)


def test_damage_is_reported(cluster: Cluster) -> None:
    fault = FaultInjected(fault=1, kind=FaultKind.CORRUPTION, target="broker-0")
    cluster.observe(fault)
    bad = list(cluster.finish())
    assert_found(insert(bad, len(bad) - 1, DamageReported(fault=1)), bad, Rule.C21)
    assert rules(insert(bad, len(bad) - 1, FaultEnded(fault=1))) == set()


@pytest.mark.parametrize(
    ("lost", "part"),
    [
        (["a", "b"], "the first 2"),
        (["d"], "the last 1"),
        (["b", "c"], "2 in the middle"),
        (["a", "b", "c", "d"], "all"),
    ],
)
def test_a_report_says_which_part_a_producer_lost(
    cluster: Cluster, lost: list[str], part: str
) -> None:
    plain(cluster, "a", "b", "c", "d")
    history = hide(cluster.finish(), P0, *lost)
    (found,) = (each for each in check(history) if each.rule is Rule.C22)
    assert found.what == f"producer 50 lost {part} of its 4 records in orders-0"


def test_a_report_shows_the_operations(cluster: Cluster) -> None:
    plain(cluster, "v", "w")
    (found,) = (v for v in check(hide(cluster.finish(), P0, "w")) if v.rule is Rule.C6)
    assert found.ops == (2,)
    assert ["Send" in line for line in found.excerpt] == [True, False]
    assert str(found).startswith("C6: w is committed, and is not read in the end\n    {")


# --- Records that may be gone ---


def test_compaction_may_take_what_a_later_record_of_the_key_replaced(cluster: Cluster) -> None:
    good = compacted(cluster)
    assert_found(good, hide(good, TABLE, "new"), Rule.C6, Rule.C22)


def compacted(cluster: Cluster) -> list[Event]:
    for value in ("old", "new"):
        writer = cluster.init("a")
        cluster.send("a", writer, TABLE, SentRecord(value, "key"))
        cluster.commit("a", writer)
        cluster.deliver_all()
    cluster.compact()
    return cluster.finish()


def test_what_an_aborted_record_replaced_stays(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, TABLE, SentRecord("old", "key"))
    writer = cluster.commit("a", writer)
    cluster.send("a", writer, TABLE, SentRecord("new", "key"))
    cluster.abort("a", writer)
    cluster.deliver_all()
    cluster.compact()
    good = cluster.finish()
    assert_found(good, hide(good, TABLE, "old"), Rule.C6, Rule.C22)


def test_deleted_records_may_be_gone_and_no_others(cluster: Cluster) -> None:
    plain(cluster, "v", "w", "x")
    cluster.delete_records(P0, 1)
    good = cluster.finish()
    assert_found(good, hide(good, P0, "w"), Rule.C5, Rule.C22)


def test_a_log_is_not_cut_without_a_request(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, TABLE, SentRecord("v"))
    cluster.commit("a", writer)
    cluster.deliver_all()
    good = cluster.finish()
    bad = edit_final(
        hide(good, TABLE, "v"), TABLE, lambda final: replace(final, log_start_offset=1)
    )
    assert_found(good, bad, Rule.C6, Rule.C22)


def test_the_answer_of_an_unknown_send_says_nothing_about_its_place(cluster: Cluster) -> None:
    plain(cluster, "v")
    good = cluster.finish()
    bad = answer_with(good, Send, Sent(base_offset=0), outcome=UNKNOWN)
    assert rules(bad) == set()
