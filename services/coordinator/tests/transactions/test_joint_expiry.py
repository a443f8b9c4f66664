"""What is forgotten of joint transactions: idle producers of a pool, and ids that say nothing."""

import pytest
from joint_harness import JointHarness, name_of
from structlog.testing import capture_logs
from transactions_harness import A0, TIMEOUT_MS, after, state_of
from transactions_service_harness import Cluster

from semel_common.errors import (
    InvalidProducerIdMappingError,
    ThrottlingQuotaExceededError,
    TransactionAbortableError,
)
from semel_coordinator.transactions.loops.id_expiry import expire_idle
from semel_coordinator.transactions.machine import (
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

EXPIRATION_MS = 10 * TIMEOUT_MS
LIMITS = TransactionLimits(transactional_id_expiration_ms=EXPIRATION_MS)
COMMITTED = JointEnded(outcome=Outcome.COMMITTED)


@pytest.fixture
def harness() -> JointHarness:
    return JointHarness(limits=LIMITS)


def written(harness: JointHarness, version: int, *writers: str) -> list[TransactionKey]:
    """Commit a version, wait for its markers, and return its writers."""
    keys = [harness.join(writer, name_of(version)) for writer in writers]
    harness.commit_joint({key: [A0] for key in keys}, name_of(version), end_id=f"of {version}")
    harness.complete(*keys)
    return keys


def pool(harness: JointHarness) -> list[int]:
    return list(harness.machine._state.joints.by_id["joint"].pool)


# -- producers ----------------------------------------------------------------------------------


def test_what_no_version_has_used_for_long_leaves_the_pool(harness: JointHarness) -> None:
    keys = written(harness, 1, *"abc")
    harness.now_ms += EXPIRATION_MS - 1
    written(harness, 2, "a")
    assert harness.expire_joint() == ()
    assert len(pool(harness)) == 3
    assert harness.expire_joint(after_ms=1) == ()
    assert pool(harness) == [keys[0].producer_id]
    assert set(harness.machine._state.producers) == {keys[0].producer_id}
    assert harness.machine._state.joints.writer_count == 1
    assert harness.expire() == (), "who writes for an id of joint transactions has none of its own"


def test_producer_ids_that_have_left_are_never_given_again(harness: JointHarness) -> None:
    gone = written(harness, 1, *"abc")
    harness.expire_joint(after_ms=EXPIRATION_MS)
    assert pool(harness) == []
    for restart in (False, True):
        if restart:
            harness.restart()
        assert harness.ask_to_join("late") is None, "its version is known"
    new = written(harness, 2, *"abc")
    assert not {key.producer_id for key in new} & {key.producer_id for key in gone}
    (answer,) = harness.inquire((after(gone[0]), A0))
    assert answer.outcome is InquiryOutcome.ABORTED
    assert harness.verified
    with pytest.raises(TransactionAbortableError):
        harness.add_to(gone[0], A0)
    name = TransactionName(
        transactional_id="joint", producer_id=gone[0].producer_id, producer_epoch=0
    )
    asked = harness.run(harness.machine.get_transaction_outcome(name, now_ms=harness.now_ms))
    assert asked.outcome is KnownOutcome.TOO_OLD_TO_KNOW


def test_who_is_live_or_waits_for_markers_stays_and_so_do_those_before(
    harness: JointHarness,
) -> None:
    first, second, third = written(harness, 1, *"abc")
    fourth = written(harness, 2, *"abcd")[3]
    harness.now_ms += EXPIRATION_MS
    harness.join("x", name_of(3))
    live = harness.join("y", name_of(3))
    assert live == after(second, 2)
    harness.expire_joint()
    assert pool(harness) == [first.producer_id, second.producer_id]
    third = harness.join("z", name_of(3))
    assert third.producer_epoch == 0
    assert third.producer_id > fourth.producer_id
    harness.commit_joint({third: [A0]}, name_of(3))
    harness.complete(*[key for key in harness.decided() if key != third])
    harness.expire_joint(after_ms=EXPIRATION_MS)
    assert len(pool(harness)) == 3
    harness.complete(third)
    harness.expire_joint()
    assert pool(harness) == []


def test_there_is_room_again_for_later_ones() -> None:
    limits = TransactionLimits(
        transactional_id_expiration_ms=EXPIRATION_MS, all_joint_writers_max=2
    )
    harness = JointHarness(limits=limits)
    written(harness, 1, *"ab")
    other = JointName(transactional_id="other", txn_version=1, owner="o", run="r")
    with pytest.raises(ThrottlingQuotaExceededError):
        harness.join("a", other)
    harness.expire_joint(after_ms=EXPIRATION_MS)
    harness.join("a", other)


# -- ids ----------------------------------------------------------------------------------------


def test_an_id_that_carries_a_version_stays(harness: JointHarness) -> None:
    written(harness, 1, "a")
    assert harness.expire_joint(after_ms=10 * EXPIRATION_MS) == ()
    assert harness.ask_to_join("b") is None


def test_an_id_for_one_transaction_alone_is_forgotten(harness: JointHarness) -> None:
    key = harness.join("a", one_shot=True)
    harness.now_ms += TIMEOUT_MS - 1
    harness.commit_joint({key: [A0]})
    assert harness.expire_joint(after_ms=EXPIRATION_MS) == (), "markers are missing"
    harness.complete(key)
    harness.restart()
    assert harness.expire_joint() == ("joint",)
    assert not harness.machine._state.is_known("joint")
    for _ in range(2):
        with pytest.raises(InvalidProducerIdMappingError) as refused:
            harness.commit_joint({key: [A0]})
        assert refused.value.details == {}, "nobody knows what became of it"
        harness.restart()
    assert harness.expire_joint() == ()


def test_an_id_without_a_version_is_forgotten_unless_one_is_open(harness: JointHarness) -> None:
    harness.join("a")
    assert harness.expire_joint(after_ms=2 * EXPIRATION_MS) == ()
    harness.abort_joint()
    assert harness.expire_joint(after_ms=EXPIRATION_MS - 1) == ()
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, record)
    assert state_of(restored) == state_of(harness.machine)
    assert harness.expire_joint(after_ms=1) == ("joint",)
    names = harness.run(harness.machine.expiry.expire_joint_ids(["joint"], now_ms=harness.now_ms))
    assert names == (), "it is gone already"
    assert harness.commit_joint({}) == COMMITTED


async def test_the_expiry_looks_at_joint_transactions_too() -> None:
    cluster = Cluster()
    async with cluster.coordinator(limits=LIMITS, send=False) as coordinator:
        machine, now_ms = coordinator.machine, cluster.clock.now_ms()
        for number in range(11):
            name = JointName(
                transactional_id=f"joint-{number}", txn_version=1, owner="owner", run="run"
            )
            call = JoinTxn(name=name, writer="a", timeout_ms=TIMEOUT_MS)
            await coordinator.runner.run(lambda: machine.joint.join_txn(call, now_ms=now_ms))  # noqa: B023 - called at once
        await coordinator.runner.run(lambda: machine.joint.tick(now_ms + TIMEOUT_MS))
        cluster.clock.advance(TIMEOUT_MS + EXPIRATION_MS)
        with capture_logs() as logs:
            await expire_idle(coordinator.runner, machine, cluster.clock)
        gone = [log["transactional_id"] for log in logs]
        assert gone == [f"joint-{number}" for number in range(11)]
        assert not machine._state.producers
