"""Rules about the order of logs, groups and progress: each is broken alone, and found."""

from dataclasses import replace

import pytest
from semel_checker.history import Event
from semel_checker.names import Isolation, Source, TransactionState, Writer
from semel_checker.observations import (
    FaultEnded,
    FaultInjected,
    FaultKind,
    FaultsOver,
    FinalGroup,
    FinalTransaction,
    Positioned,
)
from semel_checker.operations import (
    CommitOffsets,
    FetchOffsets,
    GroupOffset,
    LogProbed,
    OffsetCommit,
    OffsetsFetched,
    OpenTransaction,
    Poll,
    Polled,
    PolledRecord,
    ProbeLog,
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
    polled,
    rules,
    show,
    without,
)
from semel_checker.tests.model import GROUP, OUT, P0, P1, TABLE, UNKNOWN, Cluster
from semel_checker.violations import Rule

PLAIN = Writer(50, 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def plain(cluster: Cluster, *values: str) -> None:
    for value in values:
        cluster.send("plain", PLAIN, P0, value, transactional=False)


# --- Polls and sends ---


@pytest.mark.parametrize(
    "records",
    [[(0, "a"), (2, "c")], [(0, "a"), (2, "c"), (1, "b")], [(1, "b"), (2, "c")]],
    ids=["left out", "out of order", "left out at the start"],
)
def test_a_poll_goes_forward_and_leaves_nothing_out(
    cluster: Cluster, records: list[tuple[int, str]]
) -> None:
    plain(cluster, "a", "b", "c")
    cluster.poll("reader", P0)
    good = cluster.finish()
    bad = edit_return(good, Poll, lambda each: replace(each, result=polled(each.result, records)))
    assert_found(good, bad, Rule.C7)


def test_a_poll_may_leave_out_records_that_were_cut_off_and_no_others(cluster: Cluster) -> None:
    plain(cluster, "a", "b", "c", "d")
    cluster.poll("reader", P0)
    cluster.delete_records(P0, 2)
    history = cluster.finish()

    def leaving_out(*values: str) -> list[Event]:
        kept = [each for each in enumerate("abcd") if each[1] not in values]
        return edit_return(
            history, Poll, lambda each: replace(each, result=polled(each.result, kept))
        )

    assert_found(leaving_out("a", "b"), leaving_out("a", "b", "c"), Rule.C7)


def test_a_read_of_uncommitted_records_leaves_nothing_out(cluster: Cluster) -> None:
    plain(cluster, "a", "b")
    cluster.poll("reader", P0, isolation=Isolation.READ_UNCOMMITTED)
    good = cluster.finish()
    bad = edit_return(
        good, Poll, lambda each: replace(each, result=polled(each.result, [(1, "b")]))
    )
    assert_found(good, bad, Rule.C7)


@pytest.mark.parametrize("position", [0, 2])
def test_a_poll_goes_on_where_the_one_before_ended(cluster: Cluster, position: int) -> None:
    plain(cluster, "a")
    cluster.poll("reader", P0)
    plain(cluster, "b", "c")
    cluster.poll("reader", P0)
    good = cluster.finish()
    values = ((0, "a"), (1, "b"), (2, "c"))[position:]

    def moved(result: Polled) -> Polled:
        return Polled(reads=(replace(result.reads[0], position=position),))

    bad = edit_return(
        good, Poll, lambda each: replace(each, result=moved(polled(each.result, values)))
    )
    assert_found(good, bad, Rule.C7)


def test_a_seek_may_move_a_consumer(cluster: Cluster) -> None:
    plain(cluster, "a", "b")
    cluster.poll("reader", P0)
    cluster.seek("reader", GroupOffset(P0, 0))
    cluster.poll("reader", P0)
    good = cluster.finish()
    assert_found(good, without(good, Positioned), Rule.C7)


def test_positions_that_a_recorder_cannot_tell_are_taken_from_the_records(
    cluster: Cluster,
) -> None:
    plain(cluster, "a", "b", "c")
    cluster.poll("reader", P0, limit=1)
    cluster.poll("reader", P0)
    good = cluster.finish()
    for number in (0, 1):
        good = edit_return(
            good, Poll, lambda each: replace(each, result=blind(each.result)), number=number
        )
    bad = edit_return(
        good, Poll, lambda each: replace(each, result=polled(each.result, [(2, "c")]))
    )
    assert_found(good, bad, Rule.C7)


def blind(result: object) -> Polled:
    assert isinstance(result, Polled)
    return Polled(reads=(replace(result.reads[0], position=None, next_position=None),))


def test_compaction_between_two_polls_is_no_gap(cluster: Cluster) -> None:
    for value in ("old", "new"):
        record = SentRecord(value, "key")
        cluster.send("plain", PLAIN, TABLE, record, transactional=False)
        if value == "old":
            cluster.poll("early", TABLE)
    cluster.compact()
    cluster.poll("late", TABLE)
    assert rules(cluster.finish()) == set()


@pytest.mark.parametrize(("poll", "left", "broken"), [(0, [], {Rule.C7}), (1, [(1, "new")], set())])
def test_compaction_takes_nothing_for_a_record_that_comes_later(
    cluster: Cluster, poll: int, left: list[tuple[int, str]], broken: set[Rule]
) -> None:
    for value in ("old", "new"):
        record = SentRecord(value, "key")
        cluster.send("plain", PLAIN, TABLE, record, transactional=False)
        cluster.poll(f"reader of {value}", TABLE)
    bad = edit_return(
        cluster.finish(),
        Poll,
        lambda each: replace(each, result=polled(each.result, left)),
        number=poll,
    )
    assert rules(bad) == broken


def test_sends_are_stored_in_their_order(cluster: Cluster) -> None:
    plain(cluster, "a", "b")
    good = cluster.finish()
    bad = answer_with(good, Send, Sent(base_offset=1), number=0)
    bad = answer_with(bad, Send, Sent(base_offset=0), number=1)
    swapped = (PolledRecord(0, "b"), PolledRecord(1, "a"))
    bad = edit_final(bad, P0, lambda f: replace(f, committed=swapped, uncommitted=None))
    assert_found(good, bad, Rule.C8)


# --- Groups ---


def consume(cluster: Cluster, end: int, *, value: str = "", start: int = 0) -> None:
    writer = cluster.epochs["job"]
    if value:
        source = Source(GROUP, P0, end - 1)
        cluster.send("job", writer, OUT, SentRecord(value, source=source))
    cluster.commit_offsets("job", writer, P0, start, end)
    cluster.commit("job", writer)
    cluster.deliver_all()


@pytest.fixture
def consumed(cluster: Cluster) -> list[Event]:
    plain(cluster, "a", "b")
    cluster.init("job")
    consume(cluster, 1)
    cluster.fetch_offsets("job", P0)
    consume(cluster, 2, start=1)
    cluster.fetch_offsets("job", P0)
    return cluster.finish()


@pytest.mark.parametrize("offset", [None, 1, 7])
def test_a_group_is_told_its_latest_offset(consumed: list[Event], offset: int | None) -> None:
    told = OffsetsFetched(offsets=(GroupOffset(P0, offset),))
    assert_found(consumed, answer_with(consumed, FetchOffsets, told), Rule.C13)


def test_the_last_reading_of_a_group_is_its_latest_offset(consumed: list[Event]) -> None:
    stale = (GroupOffset(P0, 1),)
    bad = edit(consumed, FinalGroup, lambda group: replace(group, offsets=stale))
    assert_found(consumed, bad, Rule.C13)


def test_offsets_of_an_aborted_transaction_are_not_told(cluster: Cluster) -> None:
    plain(cluster, "a")
    writer = cluster.init("job")
    cluster.commit_offsets("job", writer, P0, 0, 1)
    cluster.abort("job", writer)
    cluster.deliver_all()
    cluster.fetch_offsets("job", P0)
    good = cluster.finish()
    told = OffsetsFetched(offsets=(GroupOffset(P0, 1),))
    assert_found(good, answer_with(good, FetchOffsets, told), Rule.C13)


def test_offsets_are_there_where_the_records_of_their_transaction_are(cluster: Cluster) -> None:
    plain(cluster, "a")
    writer = cluster.init("job")
    cluster.send("job", writer, OUT, "derived")
    cluster.commit_offsets("job", writer, P0, 0, 1)
    cluster.commit("job", writer, UNKNOWN)
    good = cluster.finish()
    bad = edit(good, FinalGroup, lambda group: replace(group, offsets=(GroupOffset(P0, None),)))
    assert_found(good, bad, Rule.C13)


def test_a_group_passes_nothing_over(consumed: list[Event]) -> None:
    offsets = (OffsetCommit(P0, 2, 2),)
    bad = edit_operation(consumed, CommitOffsets, lambda each: replace(each, offsets=offsets))
    assert_found(consumed, bad, Rule.C13)


def test_a_record_is_consumed_by_one_transaction(consumed: list[Event]) -> None:
    offsets = (OffsetCommit(P0, 2, 0),)
    bad = edit_operation(consumed, CommitOffsets, lambda each: replace(each, offsets=offsets))
    assert_found(consumed, bad, Rule.C14)


def test_what_is_consumed_again_after_a_reset_was_asked_for(consumed: list[Event]) -> None:
    offsets = (OffsetCommit(P0, 2, 0),)
    events = edit_operation(consumed, CommitOffsets, lambda each: replace(each, offsets=offsets))
    reset = edit_operation(
        events, CommitOffsets, lambda each: replace(each, writer=None, reset=True), number=0
    )
    assert Rule.C14 not in rules(reset)


@pytest.fixture
def derived(cluster: Cluster) -> list[Event]:
    plain(cluster, "a", "b")
    cluster.init("job")
    consume(cluster, 1, value="x")
    consume(cluster, 2, value="y", start=1)
    return cluster.finish()


@pytest.mark.parametrize("offset", [0, 5])
def test_each_consumed_record_has_one_derived_record(derived: list[Event], offset: int) -> None:
    record = SentRecord("y", source=Source(GROUP, P0, offset))
    bad = edit_operation(derived, Send, lambda send: replace(send, records=(record,)))
    assert_found(derived, bad, Rule.C15)


# --- Offsets of logs ---


@pytest.fixture
def probed(cluster: Cluster) -> list[Event]:
    plain(cluster, "a")
    cluster.probe(P0)
    plain(cluster, "b")
    cluster.poll("reader", P0)
    cluster.probe(P0)
    return cluster.finish()


@pytest.mark.parametrize(
    ("stable", "high"), [(3, 2), (0, 2), (1, 2)], ids=["above", "falling", "below what was read"]
)
def test_the_last_stable_offset_is_in_the_log_and_rises(
    probed: list[Event], stable: int, high: int
) -> None:
    told = LogProbed(log_start_offset=0, last_stable_offset=stable, high_watermark=high)
    assert_found(probed, answer_with(probed, ProbeLog, told), Rule.C18)


@pytest.mark.parametrize("is_faulty", [False, True])
def test_no_transaction_is_open_longer_than_its_time(cluster: Cluster, is_faulty: bool) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.observe(FaultInjected(fault=1, kind=FaultKind.CUT, target="c", lasting=True))
    if not is_faulty:
        cluster.observe(FaultEnded(fault=1))
    cluster.now_ms += 5000
    cluster.probe(P0)
    good = cluster.finish()
    held = OpenTransaction(writer, 0, age_ms=5000)
    told = LogProbed(
        log_start_offset=0, last_stable_offset=0, high_watermark=1, open_transactions=(held,)
    )
    bad = answer_with(good, ProbeLog, told)
    assert rules(good) == set()
    assert rules(bad) == (set() if is_faulty else {Rule.C18})


def test_the_last_stable_offset_is_below_open_transactions(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.abort("a", writer)
    good = cluster.finish()
    bad = edit_final(good, P0, lambda final: replace(final, markers=(), aborted=()))
    assert_found(good, bad, Rule.C18)


# --- Progress ---


def test_all_partitions_take_transactions_once_faults_are_over(cluster: Cluster) -> None:
    cluster.observe(FaultsOver())
    for partition in (P0, P1, OUT, TABLE):
        writer = cluster.init("a")
        cluster.send("a", writer, partition, f"v{partition}")
        cluster.commit("a", writer)
    good = cluster.finish()
    bad = answer_with(good, Send, None, outcome=UNKNOWN)
    assert_found(good, bad, Rule.C23)


def test_nothing_is_held_in_the_end(cluster: Cluster) -> None:
    good = cluster.finish()
    bad = edit_final(good, P0, lambda final: replace(final, high_watermark=1))
    assert_found(good, bad, Rule.C23)


def test_no_offsets_are_pending_in_the_end(consumed: list[Event]) -> None:
    bad = edit(consumed, FinalGroup, lambda group: replace(group, pending=(Writer(9, 9),)))
    assert_found(consumed, bad, Rule.C23)


def test_every_transaction_is_decided_in_the_end(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.refuse_commit("a", writer)
    good = edit(cluster.finish(), FinalTransaction, lambda told: replace(told, reason=None))
    ongoing = TransactionState.ONGOING
    bad = edit(good, FinalTransaction, lambda told: replace(told, state=ongoing))
    assert {Rule.C23} <= rules(bad)
    assert rules(good) == set()


def test_a_prepared_transaction_may_be_held(cluster: Cluster) -> None:
    writer = cluster.init("a")
    cluster.send("a", writer, P0, "v")
    cluster.prepare("a", writer)
    history = cluster.finish()
    assert rules(history) == set()
    assert_found(history, show(history, P0, 0, "v"), Rule.C1, Rule.C18)
