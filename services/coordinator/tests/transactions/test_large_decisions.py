"""What one decision writes at the most: every one of them goes into one append."""

from collections.abc import Awaitable, Callable

import pytest
from joint_harness import JointHarness
from transactions_harness import A0, TIMEOUT_MS, TransactionsHarness, TransactionsSerde
from transactions_service_harness import Cluster, Coordinator

from semel_common.errors import ThrottlingQuotaExceededError
from semel_common.ids import GroupId, Participant, TopicPartition
from semel_coordinator.recovery import _commits as commits
from semel_coordinator.transactions.loops.timeout_sweep import abort_timed_out
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    EndJointTxn,
    Inquiry,
    InquiryOutcome,
    JointId,
    JointName,
    JoinTxn,
    ParticipantsAdded,
    Producer,
    ProducerIdsGiven,
    TransactionKey,
    TransactionLimits,
    in_order,
)
from semel_coordinator.transactions.machine.state.entities import OUTCOMES_KEPT, size_bytes_of
from semel_runtime.runner.runner_options import RunnerOptions

WRITERS = 8
GROUPS = 9_000
JOINED_BYTES = 18 << 20
"""What these take, of names as long as they may be."""


def groups(number: int) -> list[Participant]:
    return [GroupId(f"{number}-{each}-".ljust(255, "x")) for each in range(GROUPS)]


def joint_name(run: str) -> JointName:
    return JointName(transactional_id="joint", txn_version=1, owner="owner", run=run)


async def join(coordinator: Coordinator, writer: str, run: str = "run") -> TransactionKey:
    call = JoinTxn(name=joint_name(run), writer=writer, timeout_ms=TIMEOUT_MS)
    joint = coordinator.machine.joint
    key = await coordinator.runner.run(lambda: joint.join_txn(call, now_ms=0))
    assert key is not None
    return key


async def register(coordinator: Coordinator, transactional_id: str, key: TransactionKey) -> None:
    participants = groups(key.producer_id)
    await coordinator.runner.run(
        lambda: coordinator.machine.add_partitions_to_txn(
            transactional_id, key, participants, now_ms=0
        )
    )


async def open_version(coordinator: Coordinator) -> None:
    for number in range(WRITERS):
        await register(coordinator, "joint", await join(coordinator, f"w{number}"))
    assert coordinator.machine._state.participants_bytes > JOINED_BYTES


async def owner_aborts(coordinator: Coordinator) -> None:
    call = EndJointTxn(name=joint_name("run"), commit=False, writers={}, end_id="end")
    joint = coordinator.machine.joint
    await coordinator.runner.run(lambda: joint.end_joint_txn(call, now_ms=0))


async def new_run_joins(coordinator: Coordinator) -> None:
    await join(coordinator, "first", "new run")


async def time_is_over(coordinator: Coordinator) -> None:
    joint = coordinator.machine.joint
    assert await coordinator.runner.run(lambda: joint.tick(TIMEOUT_MS), privileged=True)


@pytest.mark.parametrize("end", [owner_aborts, new_run_joins, time_is_over])
async def test_a_version_is_ended_however_much_was_registered(
    end: Callable[[Coordinator], Awaitable[None]],
) -> None:
    async with Cluster().coordinator(send=False) as coordinator:
        await open_version(coordinator)
        await end(coordinator)
        assert len(coordinator.machine.markers.pending()) == WRITERS


async def test_transactions_with_many_participants_time_out_over_restarts_too() -> None:
    cluster = Cluster()
    async with cluster.coordinator(send=False) as coordinator:
        for number in range(WRITERS):
            name = f"id-{number}"
            await register(coordinator, name, await coordinator.init(name=name))
    async with cluster.coordinator(send=False) as coordinator:
        await abort_timed_out(coordinator.runner, coordinator.machine, cluster.clock)
        assert len(coordinator.machine.markers.pending()) == WRITERS


async def test_an_inquiry_about_many_large_transactions_is_answered() -> None:
    async with Cluster().coordinator(send=False) as coordinator:
        keys = []
        for number in range(WRITERS):
            keys.append(await coordinator.init(name=f"id-{number}"))
            await register(coordinator, f"id-{number}", keys[-1])
        inquiries = [Inquiry(key=key, participant=A0) for key in keys]
        machine = coordinator.machine
        answers = await coordinator.runner.run(
            lambda: machine.inquire_transactions(inquiries, now_ms=TIMEOUT_MS)
        )
    outcomes = [answer.outcome for answer in answers]
    assert outcomes == [InquiryOutcome.ABORTED] + [InquiryOutcome.LATER] * (WRITERS - 1)


async def test_a_successor_ends_all_that_is_prepared() -> None:
    async with Cluster().coordinator(send=False) as coordinator:
        key = await coordinator.init()
        for _ in range(WRITERS):
            participants = in_order(groups(key.producer_epoch))
            key = await coordinator.runner.run(
                lambda: coordinator.machine.prepare_txn(
                    "app",
                    key,  # noqa: B023 - called at once
                    participants=participants,  # noqa: B023 - called at once
                    now_ms=0,
                )
            )
        await coordinator.init(instance="two")
        assert len(coordinator.machine.markers.pending()) == WRITERS


def test_there_is_no_room_for_more_bytes_than_one_decision_may_write() -> None:
    limits = TransactionLimits(all_participants_bytes_max=size_bytes_of([A0]))
    harness = TransactionsHarness(limits=limits)
    key = harness.init()
    with pytest.raises(ThrottlingQuotaExceededError, match="bytes"):
        harness.add(key, GroupId("a" * 100))
    with pytest.raises(ThrottlingQuotaExceededError, match="bytes"):
        harness.commit(key, [GroupId("a" * 100)])
    harness.add(key, A0)
    key = harness.commit(key)
    with pytest.raises(ThrottlingQuotaExceededError, match="bytes"):
        harness.prepare(key, [A0])
    harness.complete(*[marker.key for marker in harness.machine.markers.pending()])
    harness.prepare(key, [A0])


def test_the_bytes_of_a_record_are_never_more_than_is_counted() -> None:
    """However the participants are mixed, and however long their names are."""
    topics = [TopicPartition(name, 2**31 - 1) for name in ("a", "ü" * 64, "x" * 22)]
    lists: tuple[list[Participant], ...] = (
        [each for pair in zip(topics, map(GroupId, "abc"), strict=True) for each in pair] * 50,
        [GroupId("\U0001f600" * 255), *topics],
        [TopicPartition("x" * 22, partition) for partition in range(10_000)],
        [GroupId(f"{number}") for number in range(10_000)],
    )
    for participants in lists:
        record = ParticipantsAdded(
            producer_id=0,
            producer_epoch=0,
            start_ms=0,
            traceparent="",
            participants=tuple(participants),
        )
        # What stands around the whole list: two numbers.
        assert len(TransactionsSerde().encode(record)) <= size_bytes_of(participants) + 16


def test_a_recovery_is_cut_into_commits_by_size_and_by_number() -> None:
    large = ParticipantsAdded(
        producer_id=0, producer_epoch=0, start_ms=0, traceparent="", participants=tuple(groups(0))
    )
    small = [ProducerIdsGiven(partition=each, count=1) for each in range(10_001)]
    pieces = commits([small[0], large, large, small[1]])
    assert [len(piece) for piece in pieces] == [2, 1, 1]
    assert [len(commit) for commit in commits(small)] == [10_000, 1]


def test_the_largest_decision_there_can_be_fits_into_an_append() -> None:
    """All participants in one version, with as many writers and as long names as there may be."""
    harness, limits, long = JointHarness(), TransactionLimits(), "\U0001f600" * 250
    for attempt in range(OUTCOMES_KEPT):
        name = JointName(
            transactional_id=long, txn_version=2**62, owner=long, run=f"{long}{attempt}"
        )
        call = JoinTxn(name=name, writer="w", timeout_ms=TIMEOUT_MS)
        key = harness.run(harness.machine.joint.join_txn(call, now_ms=harness.now_ms))
        assert key is not None
        harness.add(key, A0, transactional_id=long)
        harness.tick_joint(after_ms=TIMEOUT_MS)
    each_bytes = {type(record): len(harness.serde.encode(record)) for record in harness.records}
    id_bytes = each_bytes.pop(JointId)
    assert set(each_bytes) == {DecidedTransaction, Producer}
    most_bytes = (
        limits.all_participants_bytes_max
        + sum(each_bytes.values()) * limits.joint_writers_max
        + id_bytes
    )
    assert most_bytes <= RunnerOptions().decision_bytes_max
