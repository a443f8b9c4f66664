"""A join that comes late, or is repeated, once its attempt at a version is aborted."""

from collections.abc import Callable

import pytest
from joint_harness import JointHarness, name_of
from transactions_harness import A0, TIMEOUT_MS, after

from semel_common.errors import ProducerFencedError, TransactionAbortableError
from semel_coordinator.transactions.machine import JointEnded, Outcome, TransactionKey


@pytest.fixture
def harness() -> JointHarness:
    return JointHarness()


def restart_from_snapshot(harness: JointHarness) -> None:
    machine = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        machine.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    harness.machine = machine


def abort_as_operator(harness: JointHarness) -> None:
    (writer,) = harness.described().writers
    key = TransactionKey(writer.producer_id, writer.producer_epoch)
    abort = harness.machine.operators.abort_transaction
    harness.run(abort("joint", key, dry_run=False, now_ms=harness.now_ms))


ENDS: dict[str, Callable[[JointHarness], object]] = {
    "aborted by its owner": lambda it: it.abort_joint(end_id="first"),
    "timed out": lambda it: it.tick_joint(after_ms=TIMEOUT_MS),
    "aborted by an operator": abort_as_operator,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_late_join_of_an_attempt_that_was_aborted_begins_no_other(
    harness: JointHarness, end: Callable[[JointHarness], object]
) -> None:
    """No writer would end that before its time-out, and the next version would wait."""
    harness.join("a")
    end(harness)
    for restart in (JointHarness.restart, restart_from_snapshot):
        with pytest.raises(TransactionAbortableError, match="writer 'a' of version 1") as late:
            harness.join("a")
        assert late.value.details == {"outcome": "ABORTED"}
        restart(harness)
    again = harness.join("b")
    with pytest.raises(TransactionAbortableError):
        harness.join("a")
    assert [writer.writer for writer in harness.described().writers] == ["b"]
    assert harness.commit_joint({again: [A0]}) == JointEnded(outcome=Outcome.COMMITTED)
    assert harness.ask_to_join("a") is None
    harness.join("a", name_of(2))


def test_a_late_join_waits_for_no_other_version(harness: JointHarness) -> None:
    harness.join("a")
    harness.abort_joint()
    harness.join("a", name_of(2))
    with pytest.raises(TransactionAbortableError):
        harness.join("a")


def test_a_newer_run_begins_with_the_names_of_the_older_one(harness: JointHarness) -> None:
    key = harness.join("a")
    harness.abort_joint()
    assert harness.join("a", name_of(run="newer")) == after(key)
    with pytest.raises(ProducerFencedError):
        harness.join("a")


def test_so_many_aborted_writers_are_known_as_ever_wrote_at_once(harness: JointHarness) -> None:
    for attempt in range(3):
        for writer in "ab":
            harness.join(f"{writer}{attempt}")
        harness.abort_joint(end_id=str(attempt))
    joint = harness.machine._state.joints.by_id["joint"]
    assert [joint.was_aborted(name_of(), f"a{attempt}") for attempt in range(3)] == [
        False,
        False,
        True,
    ]
    assert len(joint.pool) == 2
    harness.expire_joint(after_ms=10**10)
    assert not harness.machine._state.joints.by_id
