"""Joint transactions: writers join, and one decision ends the transactions of all of them."""

import pytest
from joint_harness import JointHarness, name_of
from transactions_harness import A0, A1, B0, GROUP, TIMEOUT_MS, after

from semel_common.errors import (
    ConcurrentTransactionsError,
    JointOwnerMismatchError,
    ProducerFencedError,
    TransactionAbortableError,
)
from semel_coordinator.transactions.machine import (
    NO_VERSION,
    AbortReason,
    InquiryOutcome,
    JointEnded,
    Outcome,
    TransactionKey,
    TransactionState,
)

COMMITTED = JointEnded(outcome=Outcome.COMMITTED)
ABORTED = JointEnded(outcome=Outcome.ABORTED)
ALREADY = JointEnded(outcome=Outcome.COMMITTED, already_committed=True)
AGAIN = JointEnded(outcome=Outcome.COMMITTED, already_committed=True, repeated_in_run=True)


@pytest.fixture
def harness() -> JointHarness:
    return JointHarness()


# -- joining ------------------------------------------------------------------------------------


def test_each_writer_gets_a_producer_id_of_its_own(harness: JointHarness) -> None:
    first, second = harness.join("a"), harness.join("b")
    assert first.producer_id != second.producer_id
    assert first.producer_epoch == second.producer_epoch == 0
    assert [writer.writer for writer in harness.described().writers] == ["a", "b"]


def test_a_repeated_join_gets_the_same_answer_and_writes_nothing(harness: JointHarness) -> None:
    first = harness.join("a")
    harness.join("b")
    assert harness.join("a") == first
    assert not harness.records


def test_the_next_version_uses_producer_ids_again_at_the_next_epoch(harness: JointHarness) -> None:
    keys = [harness.join(each) for each in "abc"]
    harness.commit_joint({key: [A0] for key in keys})
    again = [harness.join(each, name_of(2)) for each in "xyzw"]
    assert again[:3] == [after(key) for key in keys]
    assert again[3].producer_epoch == 0
    assert again[3].producer_id not in {key.producer_id for key in keys}


def test_only_one_version_is_open_at_a_time(harness: JointHarness) -> None:
    harness.join("a", name_of(2))
    for version in (1, 3):
        with pytest.raises(ConcurrentTransactionsError, match="version 2 is open"):
            harness.join("a", name_of(version))
        with pytest.raises(ConcurrentTransactionsError):
            harness.commit_joint({}, name_of(version))
    harness.abort_joint(name=name_of(2))
    harness.join("a", name_of(1))


def test_a_committed_version_and_those_below_are_not_joined_again(harness: JointHarness) -> None:
    key = harness.join("a", name_of(5))
    harness.commit_joint({key: [A0]}, name_of(5))
    for version in (1, 5):
        for run in ("run", "newer"):
            assert harness.ask_to_join("b", name_of(version, run=run)) is None
            assert harness.keep_alive(name_of(version, run=run))
            assert not harness.records
    assert harness.ask_to_join("b", name_of(6)) is not None


def test_a_version_that_was_aborted_can_be_joined_again(harness: JointHarness) -> None:
    key = harness.join("a")
    harness.abort_joint()
    assert harness.join("b") == after(key)


# -- owners -------------------------------------------------------------------------------------


def test_another_owner_is_refused_whatever_it_asks_for(harness: JointHarness) -> None:
    """A reused id would drop its data as repeats."""
    harness.commit_joint({harness.join("a"): [A0]})
    other = name_of(1, owner="other", run="of other")
    with pytest.raises(JointOwnerMismatchError) as refused:
        harness.join("a", other)
    assert refused.value.details == {"owner": "owner"}
    for ask in (harness.keep_alive, lambda name: harness.commit_joint({}, name)):
        with pytest.raises(JointOwnerMismatchError):
            ask(other)
    with pytest.raises(JointOwnerMismatchError):
        harness.abort_joint(name=other)


def test_an_owner_that_asks_for_a_reset_finds_nothing_committed(harness: JointHarness) -> None:
    key = harness.join("a", name_of(7))
    harness.commit_joint({key: [A0]}, name_of(7))
    old = harness.join("a", name_of(8))
    harness.add_to(old, A1)
    new = harness.join("a", name_of(0, owner="other", run="of other"), reset=True)
    assert new == after(old)
    assert harness.decided()[old].reason is AbortReason.FENCED
    assert harness.described().known.committed_version == NO_VERSION
    with pytest.raises(JointOwnerMismatchError):
        harness.join("a", name_of(8))


def test_a_delayed_reset_of_the_owner_before_does_not_take_the_id_back(
    harness: JointHarness,
) -> None:
    harness.join("a", reset=True)
    harness.join("a", name_of(0, owner="other", run="of other"), reset=True)
    with pytest.raises(ProducerFencedError):
        harness.join("late", reset=True)
    assert harness.described().known.owner == "other"


def test_a_reset_by_the_stored_owner_is_a_plain_join(harness: JointHarness) -> None:
    key = harness.join("a", reset=True)
    assert harness.join("a", reset=True) == key
    harness.commit_joint({key: [A0]})
    assert harness.ask_to_join("b", reset=True) is None


# -- runs ---------------------------------------------------------------------------------------


def test_a_new_run_fences_the_writers_of_the_one_before(harness: JointHarness) -> None:
    old = [harness.join(each) for each in "ab"]
    harness.add_to(old[0], A0)
    new = harness.join("a", name_of(run="newer"))
    assert new == after(old[0])
    assert harness.decided()[old[0]].reason is AbortReason.FENCED
    for key in old:
        with pytest.raises(ProducerFencedError):
            harness.add_to(key, A0)
    refusals = (
        lambda: harness.join("c"),
        harness.keep_alive,
        lambda: harness.commit_joint({old[0]: [A0]}),
        harness.abort_joint,
    )
    for refusal in refusals:
        with pytest.raises(ProducerFencedError) as refused:
            refusal()
        assert refused.value.details["outcome"] == "ABORTED"
    assert harness.commit_joint({new: [A0]}, name_of(run="newer")) == COMMITTED


def test_the_last_64_superseded_runs_are_refused(harness: JointHarness) -> None:
    for number in range(66):
        harness.join("a", name_of(run=str(number)))
    for number in range(1, 65):
        with pytest.raises(ProducerFencedError):
            harness.join("a", name_of(run=str(number)))
    harness.join("a", name_of(run="0"))


def test_a_superseded_run_is_told_when_its_version_was_committed_by_another(
    harness: JointHarness,
) -> None:
    """The zombie of reference/spark.md, section 4: it stalls in its commit, and wakes too late."""
    old = harness.join("a")
    new = harness.join("a", name_of(run="newer"))
    harness.commit_joint({new: [A0]}, name_of(run="newer"))
    assert harness.commit_joint({old: [A0]}, end_id="of the zombie") == ALREADY
    assert harness.abort_joint(end_id="of the zombie") == ALREADY


# -- the end ------------------------------------------------------------------------------------


def test_a_commit_is_one_decision_for_all_writers(harness: JointHarness) -> None:
    winner, loser, silent = (harness.join(each) for each in "abc")
    harness.add_to(winner, A0, A1)
    harness.add_to(loser, A0)
    assert harness.commit_joint({winner: [A0, GROUP]}) == COMMITTED
    decided = harness.decided()
    assert list(decided[winner].committing) == [A0, GROUP]
    assert list(decided[winner].aborting) == [A1]
    assert decided[winner].traceparent == "of end"
    assert list(decided[loser].aborting) == [A0]
    assert decided[loser].state is TransactionState.PREPARE_ABORT
    assert silent not in decided, "nobody has to be told"
    answers = harness.inquire((winner, A0), (winner, B0), (loser, A0), (silent, A0))
    assert [answer.outcome for answer in answers] == [
        InquiryOutcome.COMMITTED,
        *[InquiryOutcome.ABORTED] * 3,
    ]


def test_a_writer_that_has_written_nothing_may_be_named(harness: JointHarness) -> None:
    key = harness.join("a")
    assert harness.commit_joint({key: []}) == COMMITTED
    assert harness.decided() == {}


def test_a_commit_without_writers_commits_its_version(harness: JointHarness) -> None:
    assert harness.commit_joint({}, name_of(3)) == COMMITTED
    assert harness.ask_to_join("a", name_of(3)) is None
    key = harness.join("a", name_of(4))
    harness.add_to(key, A0)
    assert harness.commit_joint({}, name_of(4), end_id="fourth") == COMMITTED
    assert harness.decided()[key].state is TransactionState.PREPARE_ABORT
    old = harness.join("a", name_of(5))
    harness.add_to(old, A0)
    assert harness.commit_joint({}, name_of(5, run="newer"), end_id="fifth") == COMMITTED
    assert harness.decided()[old].reason is AbortReason.FENCED


def test_a_repeated_end_gets_the_stored_answer(harness: JointHarness) -> None:
    key = harness.join("a")
    harness.commit_joint({key: [A0]})
    harness.join("a", name_of(2, run="newer"))
    assert harness.commit_joint({key: [A0]}) == COMMITTED
    assert not harness.records
    assert harness.commit_joint({key: [A0]}, end_id="another") == AGAIN


def test_a_run_that_commits_a_committed_version_twice_is_told(harness: JointHarness) -> None:
    """It does the version once more, and then something else under the same name."""
    harness.commit_joint({}, name_of(1, run="one"), end_id="first")
    assert harness.commit_joint({}, name_of(1, run="one"), end_id="second") == AGAIN
    for _ in range(2):
        assert harness.commit_joint({}, name_of(1, run="two"), end_id="third") == ALREADY
        assert harness.commit_joint({}, name_of(1, run="two"), end_id="fourth") == AGAIN
        harness.restart()
    assert harness.commit_joint({}, name_of(1, run="three"), end_id="fifth") == ALREADY


def test_the_last_16_decisions_are_answered_again(harness: JointHarness) -> None:
    """An owner may hear of its commit when a successor has committed later versions already."""
    for version in range(17):
        key = harness.join("a", name_of(version))
        harness.commit_joint({key: [A0]}, name_of(version), end_id=str(version))
    harness.join("b", name_of(99))
    for restart in (False, True):
        if restart:
            harness.restart()
        assert harness.commit_joint({}, name_of(0), end_id="0") == ALREADY
        for version in range(1, 17):
            assert harness.commit_joint({}, name_of(version), end_id=str(version)) == COMMITTED


@pytest.mark.parametrize("commit", [True, False])
def test_a_decision_is_answered_again_to_its_owner_after_the_id_went_to_a_successor(
    harness: JointHarness, *, commit: bool
) -> None:
    """Else a commit would be reported as one that came to nothing."""
    key = harness.join("a")
    end, answer = (harness.commit_joint, COMMITTED) if commit else (harness.abort_joint, ABORTED)
    end({key: [A0]}, end_id="end")
    other = name_of(1, owner="other", run="of other")
    harness.commit_joint({harness.join("a", other, reset=True): [A0]}, other, end_id="of other")
    for _ in range(2):
        assert end({key: [A0]}, end_id="end") == answer
        assert not harness.records
        assert harness.commit_joint({}, other, end_id="of other") == COMMITTED
        for name, end_id in ((name_of(), "of other"), (name_of(), "new"), (name_of(2), "end")):
            with pytest.raises(JointOwnerMismatchError):
                end({}, name, end_id=end_id)
        harness.restart()


def test_another_owner_does_not_get_the_stored_answer(harness: JointHarness) -> None:
    harness.commit_joint({})
    with pytest.raises(JointOwnerMismatchError):
        harness.commit_joint({}, name_of(owner="other"))


def test_a_delayed_abort_does_not_act_on_the_next_attempt(harness: JointHarness) -> None:
    """Promise 6 of protocol.md."""
    harness.join("a")
    assert harness.abort_joint(end_id="first") == ABORTED
    again = harness.join("b")
    assert harness.abort_joint(end_id="first") == ABORTED
    assert not harness.records
    assert harness.commit_joint({again: [A0]}, end_id="second") == COMMITTED


def test_an_abort_names_who_must_be_told_besides(harness: JointHarness) -> None:
    first, second = harness.join("a"), harness.join("b")
    harness.add_to(first, A0)
    stranger = TransactionKey(first.producer_id, 9)
    assert harness.abort_joint({first: [A1], second: [B0], stranger: [GROUP]}) == ABORTED
    decided = harness.decided()
    assert list(decided[first].aborting) == [A0, A1]
    assert list(decided[second].aborting) == [B0]
    assert decided[first].reason is AbortReason.CLIENT


@pytest.mark.parametrize("before", ["nothing", "a version that is over", "another version"])
def test_an_abort_of_nothing_is_done_for_good(harness: JointHarness, before: str) -> None:
    """However late its repeat comes: promise 6 of protocol.md."""
    if before != "nothing":
        harness.join("a", name_of(2))
    if before == "a version that is over":
        harness.tick_joint(after_ms=TIMEOUT_MS)
    assert harness.abort_joint(end_id="abort") == ABORTED
    assert not harness.machine.markers.pending()
    if before == "another version":
        assert harness.described().known.open_version == 2
        harness.abort_joint(name=name_of(2), end_id="of the other")
    key = harness.join("b")
    harness.add_to(key, A0)
    for restart in (False, True):
        if restart:
            harness.restart()
        assert harness.abort_joint(end_id="abort") == ABORTED
        assert not harness.records
    assert harness.commit_joint({key: [A0]}, end_id="commit") == COMMITTED


@pytest.mark.parametrize("version", [1, 2])
def test_what_the_abort_of_a_newer_run_says_stays_true(harness: JointHarness, version: int) -> None:
    """The run before it cannot commit the version any more."""
    key = harness.join("a")
    harness.add_to(key, A0)
    assert harness.abort_joint(name=name_of(version, run="newer"), end_id="abort") == ABORTED
    assert harness.decided()[key].reason is AbortReason.FENCED
    for _ in range(2):
        with pytest.raises(ProducerFencedError):
            harness.commit_joint({key: [A0]})
        with pytest.raises(ProducerFencedError):
            harness.join("b")
        harness.restart()
    again = harness.join("a", name_of(1, run="newer"))
    assert harness.commit_joint({again: [A0]}, name_of(1, run="newer")) == COMMITTED


def test_an_abort_of_a_committed_version_does_nothing_and_says_so(harness: JointHarness) -> None:
    harness.commit_joint({harness.join("a"): [A0]})
    assert harness.abort_joint(end_id="late") == ALREADY
    assert not harness.records


@pytest.mark.parametrize("epochs", [-1, 1, 5])
def test_a_commit_that_names_a_writer_that_is_not_live_is_a_definite_abort(
    harness: JointHarness, epochs: int
) -> None:
    harness.join("before", name_of(0))
    harness.abort_joint(name=name_of(0))
    live, other = harness.join("a"), harness.join("b")
    with pytest.raises(TransactionAbortableError) as refused:
        harness.commit_joint({other: [A0], after(live, epochs): [A0]})
    assert refused.value.details["outcome"] == "ABORTED"
    assert harness.commit_joint({live: [A0]}) == COMMITTED


def test_a_commit_names_no_producer_of_another_id(harness: JointHarness) -> None:
    producer = harness.init()
    live = harness.join("a")
    unknown = TransactionKey(live.producer_id + 100, 0)
    for stranger in (producer, unknown):
        with pytest.raises(TransactionAbortableError):
            harness.commit_joint({live: [A0], stranger: [A0]})


def test_a_late_commit_names_writers_of_an_attempt_that_was_aborted(harness: JointHarness) -> None:
    old = harness.join("a")
    harness.abort_joint(end_id="first")
    with pytest.raises(TransactionAbortableError) as refused:
        harness.commit_joint({old: [A0]}, end_id="second")
    assert refused.value.details == {"outcome": "ABORTED", "reason": "CLIENT"}
    new = harness.join("b")
    with pytest.raises(TransactionAbortableError, match="no live writer: CLIENT"):
        harness.commit_joint({old: [A0]}, end_id="second")
    assert harness.commit_joint({new: [A0]}, end_id="third") == COMMITTED
