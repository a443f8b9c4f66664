"""Joint transactions over time: time-outs, inquiry, restarts, limits, and beside other ids."""

from collections.abc import Callable

import pytest
from joint_harness import JointHarness, name_of
from transactions_harness import A0, A1, B0, GROUP, TIMEOUT_MS, after, state_of

from semel_common.errors import (
    ConcurrentTransactionsError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    NotCoordinatorError,
    ThrottlingQuotaExceededError,
    TransactionAbortableError,
)
from semel_common.ids import Participant
from semel_coordinator.transactions.machine import (
    AbortReason,
    InquiryOutcome,
    JointEnded,
    JointName,
    JoinTxn,
    KnownOutcome,
    Outcome,
    TransactionKey,
    TransactionLimits,
    TransactionName,
)
from semel_coordinator.transactions.machine.joint.joint_table import JointAnswer
from semel_coordinator.transactions.machine.joint.joint_table import refused as error_of

COMMITTED = JointEnded(outcome=Outcome.COMMITTED)


@pytest.fixture
def harness() -> JointHarness:
    return JointHarness()


# -- time ---------------------------------------------------------------------------------------


def test_a_version_times_out_as_a_whole(harness: JointHarness) -> None:
    first, second = harness.join("a"), harness.join("b")
    harness.add_to(first, A0)
    assert harness.tick_joint(after_ms=TIMEOUT_MS - 1) == ()
    assert harness.tick() == (), "a writer is not timed out by itself"
    (timed_out,) = harness.tick_joint(after_ms=1)
    assert (timed_out.txn_version, timed_out.writers) == (1, 2)
    assert harness.decided()[first].reason is AbortReason.TIMED_OUT
    with pytest.raises(TransactionAbortableError) as refused:
        harness.commit_joint({second: [A0]})
    assert refused.value.details == {"outcome": "ABORTED", "reason": "TIMED_OUT"}
    with pytest.raises(TransactionAbortableError, match="TIMED_OUT"):
        harness.keep_alive()
    with pytest.raises(TransactionAbortableError) as refused:
        harness.add_to(second, A0)
    assert refused.value.details == {"outcome": "ABORTED", "reason": "TIMED_OUT"}
    assert harness.tick_joint() == ()


def test_keeping_it_alive_puts_the_timeout_off(harness: JointHarness) -> None:
    """Over a restart too."""
    key = harness.join("a")
    for _ in range(3):
        harness.now_ms += TIMEOUT_MS - 1
        assert not harness.keep_alive()
        harness.restart()
        assert harness.tick_joint() == ()
    assert harness.commit_joint({key: [A0]}) == COMMITTED


def test_the_timeout_of_a_version_counts_from_when_it_was_opened(harness: JointHarness) -> None:
    """However long the version before had no sign of life."""
    harness.commit_joint({harness.join("a"): [A0]})
    harness.now_ms += 2 * TIMEOUT_MS
    harness.join("b", name_of(2))
    assert harness.tick_joint(after_ms=TIMEOUT_MS - 1) == ()
    (timed_out,) = harness.tick_joint(after_ms=1)
    assert timed_out.txn_version == 2


def test_only_an_open_version_can_be_kept_alive(harness: JointHarness) -> None:
    with pytest.raises(TransactionAbortableError):
        harness.keep_alive()
    harness.join("a")
    for name in (name_of(2), name_of(run="newer")):
        with pytest.raises(TransactionAbortableError):
            harness.keep_alive(name)
    harness.abort_joint()
    harness.commit_joint({}, name_of(1), end_id="empty")
    with pytest.raises(TransactionAbortableError):
        harness.keep_alive(name_of(2))


def test_a_version_that_only_the_first_of_a_new_owner_opened_has_no_reason_yet(
    harness: JointHarness,
) -> None:
    harness.commit_joint({harness.join("a"): [A0]})
    with pytest.raises(TransactionAbortableError) as refused:
        harness.keep_alive(name_of(2))
    assert refused.value.details == {"outcome": "ABORTED"}


def test_a_clock_that_went_far_back_ends_a_version(harness: JointHarness) -> None:
    harness.join("a")
    assert len(harness.tick_joint(after_ms=-TIMEOUT_MS)) == 1


# -- inquiry ------------------------------------------------------------------------------------


def test_an_inquiry_for_a_live_writer_registers_the_participant(harness: JointHarness) -> None:
    key = harness.join("a")
    harness.now_ms += 1_000
    harness.keep_alive()
    harness.now_ms += 500
    (answer,) = harness.inquire((key, A0))
    assert answer.outcome is InquiryOutcome.ONGOING
    assert answer.time_left_ms == TIMEOUT_MS - 500
    harness.inquire((key, A0))
    assert not harness.records
    harness.abort_joint()
    assert list(harness.decided()[key].aborting) == [A0]


def test_an_inquiry_ends_a_version_that_is_timed_out_for_all_its_writers(
    harness: JointHarness,
) -> None:
    first, second, third = (harness.join(each) for each in "abc")
    harness.add_to(third, B0)
    harness.now_ms += TIMEOUT_MS
    answers = harness.inquire((first, A0), (second, A1), (first, A1))
    assert {answer.outcome for answer in answers} == {InquiryOutcome.ABORTED}
    decided = harness.decided()
    assert list(decided[first].aborting) == [A0, A1]
    assert list(decided[second].aborting) == [A1]
    assert list(decided[third].aborting) == [B0]
    assert not harness.described().writers


def test_an_epoch_that_no_writer_has_yet_is_given_to_none_after_an_inquiry(
    harness: JointHarness,
) -> None:
    """A hostile client wrote with the next epoch: what it wrote must not meet a real writer."""
    key = harness.join("a")
    harness.commit_joint({key: [A0]})
    (answer,) = harness.inquire((after(key), A1))
    assert answer.outcome is InquiryOutcome.ABORTED
    assert harness.join("a", name_of(2)) == after(key, 2)
    (answer,) = harness.inquire((after(key, 9), A1))
    assert answer.outcome is InquiryOutcome.NEVER_GIVEN


def test_an_inquiry_waits_where_there_is_no_room(harness: JointHarness) -> None:
    harness = JointHarness(limits=TransactionLimits(participants_max=1))
    key = harness.join("a")
    harness.add_to(key, A0)
    (answer,) = harness.inquire((key, A1))
    assert answer.outcome is InquiryOutcome.LATER


# -- restarts -----------------------------------------------------------------------------------


def test_an_id_without_writers_is_restored_from_a_snapshot(harness: JointHarness) -> None:
    harness.commit_joint({})
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, record)
    assert state_of(restored) == state_of(harness.machine)


def test_only_an_answer_that_is_an_error_is_raised(harness: JointHarness) -> None:
    errors = (
        JointAnswer.COMMIT_EMPTY,
        JointAnswer.COMMIT_NEW,
        JointAnswer.NOT_OPEN,
        JointAnswer.CONCURRENT_TRANSACTIONS,
        JointAnswer.PRODUCER_FENCED,
        JointAnswer.OWNER_MISMATCH,
    )
    harness.join("a")
    joint = harness.machine._state.joints.by_id["joint"]
    for answer in JointAnswer:
        if answer in errors:
            assert "'joint'" in str(error_of(joint, name_of(), answer))
        else:
            with pytest.raises(AssertionError, match="is no error"):
                error_of(joint, name_of(), answer)


# -- beside other transactions ------------------------------------------------------------------


def test_an_id_has_either_a_producer_or_joint_transactions(harness: JointHarness) -> None:
    harness.init("joint")
    with pytest.raises(InvalidRequestError, match="the transactional id of a producer"):
        harness.join("a")
    with pytest.raises(InvalidRequestError, match="the transactional id of a producer"):
        harness.commit_joint({})
    harness = JointHarness()
    key = harness.join("a")
    calls: list[Callable[[], object]] = [
        lambda: harness.init("joint"),
        lambda: harness.commit(key, [A0], transactional_id="joint"),
        lambda: harness.abort(key, [A0], transactional_id="joint"),
    ]
    for call in calls:
        with pytest.raises(InvalidRequestError, match="an id of joint transactions"):
            call()


def test_an_id_that_carries_a_version_does_not_expire(harness: JointHarness) -> None:
    key = harness.join("a")
    harness.commit_joint({key: [A0]})
    harness.complete(key)
    harness.now_ms += 10**12
    expiry = harness.machine.expiry
    producers = harness.run(expiry.producer_ids())
    assert harness.run(expiry.expire_transactional_ids(producers, now_ms=harness.now_ms)) == ()
    assert harness.ask_to_join("b") is None


def test_a_writer_registers_only_while_it_is_live(harness: JointHarness) -> None:
    key = harness.join("a")
    harness.commit_joint({key: [A0]})
    with pytest.raises(TransactionAbortableError) as refused:
        harness.add_to(key, A0)
    assert refused.value.details == {"outcome": "COMMITTED"}
    with pytest.raises(TransactionAbortableError) as refused:
        harness.add_to(TransactionKey(99, 0), A0)
    assert refused.value.details == {}


@pytest.mark.parametrize("ask", ["join", "keep_alive", "commit", "abort"])
def test_another_instance_is_in_charge(ask: str) -> None:
    refused = 0
    for instance_id in range(2):
        harness = JointHarness(instance_id=instance_id, coordinators=2)
        asked: dict[str, Callable[[], object]] = {
            "join": lambda: harness.join("a"),  # noqa: B023 - called at once
            "keep_alive": harness.keep_alive,
            "commit": lambda: harness.commit_joint({}),  # noqa: B023 - called at once
            "abort": harness.abort_joint,
        }
        try:
            asked[ask]()
        except NotCoordinatorError:
            refused += 1
        except TransactionAbortableError:
            pass
    assert refused == 1


def test_the_outcome_of_a_writer_can_be_asked_for(harness: JointHarness) -> None:
    """By its producer id: the transactional id has many."""
    first, second = harness.join("a"), harness.join("b")
    harness.commit_joint({first: [A0]})
    third = harness.join("c", name_of(2))
    harness.now_ms += 1_000
    asked = {
        first: KnownOutcome.COMMITTED,
        second: KnownOutcome.ABORTED,
        third: KnownOutcome.ONGOING,
        after(second): KnownOutcome.NEVER_GIVEN,
    }
    for key, outcome in asked.items():
        name = TransactionName(
            transactional_id="joint",
            producer_id=key.producer_id,
            producer_epoch=key.producer_epoch,
        )
        answer = harness.run(harness.machine.get_transaction_outcome(name, now_ms=harness.now_ms))
        assert answer.outcome is outcome
        assert answer.time_left_ms == (TIMEOUT_MS - 1_000 if key == third else 0)
    name = TransactionName(transactional_id="joint", producer_id=None, producer_epoch=0)
    with pytest.raises(InvalidRequestError, match="name one"):
        harness.machine.get_transaction_outcome(name, now_ms=harness.now_ms)


# -- limits -------------------------------------------------------------------------------------


def test_timeouts_are_checked(harness: JointHarness) -> None:
    call = JoinTxn(name=name_of(), writer="a", timeout_ms=0)
    with pytest.raises(InvalidTransactionTimeoutError):
        harness.machine.joint.join_txn(call, now_ms=harness.now_ms)


def test_ids_and_writers_are_limited() -> None:
    harness = JointHarness(limits=TransactionLimits(transactional_ids_max=1))
    harness.init("app")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.join("a")
    harness = JointHarness(limits=TransactionLimits(transactional_ids_max=1))
    harness.join("a")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.init("app")
    harness = JointHarness(limits=TransactionLimits(joint_writers_max=2))
    harness.join("a")
    harness.join("b")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.join("c")
    harness = JointHarness(limits=TransactionLimits(all_joint_writers_max=1))
    harness.join("a")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.join("b")


def test_a_commit_past_the_limits_is_refused_and_an_abort_is_not() -> None:
    harness = JointHarness(limits=TransactionLimits(transactions_max=1, all_participants_max=3))
    first, second = harness.join("a"), harness.join("b")
    harness.add_to(first, A0)
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.commit_joint({first: [A0], second: [A0]})
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.commit_joint({first: [A0, A1, B0, GROUP]})
    harness.abort_joint({first: [A1], second: [A0]})
    assert list(harness.decided()[first].aborting) == [A0]
    assert second not in harness.decided()


def test_a_commit_waits_when_too_many_of_a_writers_transactions_wait_for_markers() -> None:
    harness = JointHarness(limits=TransactionLimits(incomplete_transactions_max=2))
    key = harness.join("a", name_of(0))
    harness.commit_joint({key: [A0]}, name_of(0))
    harness.commit_joint({harness.join("a", name_of(1)): [A0]}, name_of(1))
    last = harness.join("a", name_of(2))
    with pytest.raises(ConcurrentTransactionsError):
        harness.commit_joint({last: [A0]}, name_of(2))
    assert harness.machine.joint.incomplete_writer("joint") == key.producer_id
    harness.complete(key)
    assert harness.commit_joint({last: [A0]}, name_of(2)) == COMMITTED
    harness.complete(*harness.decided())
    assert harness.machine.joint.incomplete_writer("joint") is None
    assert harness.machine.joint.incomplete_writer("unknown") is None


def joined(harness: JointHarness, number: int, *participants: Participant) -> TransactionKey:
    """The one writer of another id, which has registered these."""
    transactional_id = f"joint-{number}"
    name = JointName(transactional_id=transactional_id, txn_version=1, owner="o", run="r")
    call = JoinTxn(name=name, writer="w", timeout_ms=TIMEOUT_MS)
    key = harness.run(harness.machine.joint.join_txn(call, now_ms=harness.now_ms))
    assert key is not None
    harness.add(key, *participants, transactional_id=transactional_id)
    return key


def test_one_tick_ends_versions_of_a_limited_number_of_participants() -> None:
    limits = TransactionLimits(participants_max=4, step_participants_max=3)
    harness = JointHarness(limits=limits)
    written: list[list[Participant]] = [[A0], [A0, B0], [A0], [A0, A1, B0, GROUP]]
    for number, participants in enumerate(written):
        joined(harness, number, *participants)
    harness.now_ms += TIMEOUT_MS
    assert [len(harness.tick_joint()) for _ in range(4)] == [2, 1, 1, 0]


def test_one_inquiry_ends_what_one_step_takes_and_the_others_are_told_to_ask_later() -> None:
    harness = JointHarness(limits=TransactionLimits(step_participants_max=1))
    done = harness.join("a")
    harness.commit_joint({done: [A0]})
    keys = [joined(harness, number, A0, A1) for number in range(2)]
    keys += [harness.init(), after(done)]
    harness.add(keys[2], A0)
    harness.now_ms += TIMEOUT_MS
    asked = [(key, A0) for key in (*keys, keys[1])]
    later, aborted = InquiryOutcome.LATER, InquiryOutcome.ABORTED
    for outcomes in (
        [aborted, later, later, later, later],
        [aborted, aborted, later, later, aborted],
        [aborted] * 5,
    ):
        assert [each.outcome for each in harness.inquire(*asked)] == outcomes


def test_one_tick_ends_a_limited_number_of_transactions() -> None:
    harness = JointHarness(limits=TransactionLimits(step_transactions_max=3))
    for number in range(3):
        harness.now_ms += 1
        name = name_of()
        harness.run(
            harness.machine.joint.join_txn(
                JoinTxn(
                    name=type(name)(
                        transactional_id=f"joint-{number}", txn_version=1, owner="o", run="r"
                    ),
                    writer="w",
                    timeout_ms=TIMEOUT_MS,
                ),
                now_ms=harness.now_ms,
            )
        )
    harness.now_ms += TIMEOUT_MS
    assert len(harness.tick_joint()) == 1
    assert len(harness.tick_joint()) == 1
    assert len(harness.tick_joint()) == 1
    assert harness.tick_joint() == ()
