"""Transactional ids have a bound for each principal, which lasts as long as the ids do."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joint_harness import JointHarness, name_of
from joint_steps import JointStep, joint_steps
from msgspec.structs import replace
from transactions_harness import TIMEOUT_MS
from transactions_on_the_move import MOVED, Pair
from transactions_steps import LIMITS, steps

from semel_common.errors import SemelError, ThrottlingQuotaExceededError
from semel_coordinator.transactions.machine import (
    EndJointTxn,
    InitProducerId,
    JointName,
    JoinTxn,
    TransactionLimits,
    TransactionsMachine,
)

ALICE, BOB = "User:alice", "User:bob"
LIMITED = TransactionLimits(transactional_ids_per_principal_max=2)
EXPIRATION_MS = LIMITED.transactional_id_expiration_ms


def init(harness: JointHarness, name: str, principal: str = ALICE, instance: str = "one") -> None:
    call = InitProducerId(
        transactional_id=name,
        instance_id=instance,
        init_number=1,
        timeout_ms=TIMEOUT_MS,
        principal=principal,
    )
    harness.run(harness.machine.init_producer_id(call, now_ms=harness.now_ms))


def joint_name(name: str, version: int = 1) -> JointName:
    return replace(name_of(version), transactional_id=name)


def join(harness: JointHarness, name: str, principal: str = ALICE) -> None:
    call = JoinTxn(name=joint_name(name), writer="w", timeout_ms=TIMEOUT_MS, principal=principal)
    harness.run(harness.machine.joint.join_txn(call, now_ms=harness.now_ms))


def counts(machine: TransactionsMachine) -> dict[str, int]:
    return dict(machine._state.principals.counts)


@pytest.fixture
def harness() -> JointHarness:
    """A coordinator at which one principal has all the ids that it may have."""
    made = JointHarness(limits=LIMITED)
    init(made, "a")
    join(made, "joint")
    return made


@pytest.fixture
def pair() -> Pair:
    """Two coordinators, and a partition of transactional ids that moves."""
    return Pair()


def check_full(harness: JointHarness, principal: str = ALICE) -> None:
    said = f"{principal} has 2 transactional ids .*transactional_ids_per_principal_max: use"
    with pytest.raises(ThrottlingQuotaExceededError, match=said):
        init(harness, "too many", principal)
    with pytest.raises(ThrottlingQuotaExceededError, match=said):
        join(harness, "too many", principal)
    abort = EndJointTxn(
        name=joint_name("too many"), commit=False, writers={}, end_id="e", principal=principal
    )
    with pytest.raises(ThrottlingQuotaExceededError, match=said):
        harness.run(harness.machine.joint.end_joint_txn(abort, now_ms=harness.now_ms))


def test_one_principal_is_refused_past_the_bound_and_another_is_not(harness: JointHarness) -> None:
    check_full(harness)
    init(harness, "other", BOB)
    assert counts(harness.machine) == {ALICE: 2, BOB: 1}


def test_an_id_belongs_to_the_principal_that_made_it(harness: JointHarness) -> None:
    init(harness, "a", BOB, instance="two")
    join(harness, "joint", BOB)
    harness.run(
        harness.machine.joint.join_txn(
            JoinTxn(
                name=replace(joint_name("joint"), owner="another", run="two"),
                writer="w",
                timeout_ms=TIMEOUT_MS,
                reset=True,
                principal=BOB,
            ),
            now_ms=harness.now_ms,
        )
    )
    assert counts(harness.machine) == {ALICE: 2}


def test_the_count_outlives_a_restart_and_a_snapshot(harness: JointHarness) -> None:
    harness.restart()
    check_full(harness)
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, harness.serde.decode(harness.serde.encode(record)))
    harness.machine = restored
    check_full(harness)


def test_an_id_that_expires_makes_room(harness: JointHarness) -> None:
    assert harness.expire(after_ms=EXPIRATION_MS) == ("a",)
    assert counts(harness.machine) == {ALICE: 1}
    init(harness, "one more")
    check_full(harness)


def test_without_a_bound_and_without_a_principal_nothing_is_refused() -> None:
    for limits, principal in ((TransactionLimits(), ALICE), (LIMITED, "")):
        harness = JointHarness(limits=limits)
        for number in range(3):
            init(harness, f"app-{number}", principal)
        assert counts(harness.machine) == ({ALICE: 3} if principal else {})


def test_ids_that_move_count_where_they_are(pair: Pair) -> None:
    init(pair.old, "app", ALICE)
    pair.move()
    assert counts(pair.old.machine) == {}
    assert counts(pair.new.machine) == {ALICE: 1}


def test_an_older_volume_counts_off_what_has_moved_since(pair: Pair) -> None:
    init(pair.old, "app", ALICE)
    pair.tell(pair.old, MOVED)
    assert counts(pair.old.machine) == {}


@settings(max_examples=100)
@given(st.lists(steps | joint_steps, max_size=60), st.lists(st.integers(0, 5), max_size=10))
def test_the_count_is_that_of_the_ids_that_are_known(
    taken: list[JointStep], names: list[int]
) -> None:
    harness = JointHarness(limits=LIMITS)
    for name in names:
        with contextlib.suppress(SemelError):
            (init if name % 2 else join)(harness, f"app-{name}", (ALICE, BOB)[name % 3 > 0])
    for step in taken:
        with contextlib.suppress(SemelError):
            step(harness)
    state = harness.machine._state
    known = [each.principal for each in state.transactional_ids.values()]
    known += [each.known.principal for each in state.joints.by_id.values()]
    assert counts(harness.machine) == {each: known.count(each) for each in known if each}
