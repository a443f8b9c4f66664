"""Forgetting: idle transactional ids, and the fences that participants do not need any more."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from transactions_harness import A0, A1, NOW_MS, TransactionsHarness, after
from transactions_requests import ask
from transactions_service_harness import Cluster, until

from semel.common.v1 import participants_pb2
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InvalidProducerIdMappingError, NotCoordinatorError
from semel_common.ids import Participant, producer_id_of
from semel_coordinator.transactions.loops.id_expiry import expire, expire_idle
from semel_coordinator.transactions.machine import (
    FenceInquiry,
    InquiryOutcome,
    KnownOutcome,
    TransactionKey,
    TransactionLimits,
    TransactionName,
)

EXPIRATION_MS = 1_000
LIMITS = TransactionLimits(transactional_id_expiration_ms=EXPIRATION_MS)


@pytest.fixture
def harness() -> TransactionsHarness:
    return TransactionsHarness(limits=LIMITS)


def expired(harness: TransactionsHarness, *, after_ms: int = EXPIRATION_MS) -> tuple[str, ...]:
    return harness.expire(after_ms=after_ms)


# -- transactional ids


def test_an_idle_id_is_forgotten_and_not_before_its_time(harness: TransactionsHarness) -> None:
    key = harness.init()
    harness.now_ms += 500
    harness.commit(key)
    assert expired(harness, after_ms=EXPIRATION_MS - 1) == ()
    assert expired(harness, after_ms=1) == ("app",)
    assert expired(harness) == ()


def test_a_transaction_that_is_open_or_waits_for_markers_is_not_idle(
    harness: TransactionsHarness,
) -> None:
    """C-097: however long it takes."""
    key = harness.init()
    harness.add(key, A0)
    assert expired(harness) == ()
    harness.commit(key)
    assert expired(harness) == ()
    harness.complete(key)
    assert expired(harness, after_ms=0) == ("app",)


def test_what_is_prepared_is_not_idle(harness: TransactionsHarness) -> None:
    harness.prepare(harness.init(), [A0])
    assert expired(harness) == ()


def test_an_id_that_was_used_between_look_and_act_stays(harness: TransactionsHarness) -> None:
    key = harness.init()
    harness.now_ms += EXPIRATION_MS
    producer_ids = harness.run(harness.machine.expiry.producer_ids())
    harness.abort(key)
    machine = harness.machine
    assert (
        machine.expiry.expire_transactional_ids(producer_ids, now_ms=harness.now_ms).response == ()
    )


def test_a_clock_that_went_back_makes_no_producer_idle(harness: TransactionsHarness) -> None:
    harness.init()
    harness.now_ms = NOW_MS - 10 * EXPIRATION_MS
    assert expired(harness, after_ms=0) == ()


def test_a_producer_id_is_never_given_out_twice(harness: TransactionsHarness) -> None:
    """Not after an expiry, and not after a restart or a snapshot behind it."""
    given_ids = {harness.init().producer_id}
    for restart in (False, True, False):
        assert expired(harness) == ("app",)
        if restart:
            harness.restart()
        given_ids.add(harness.init(instance="another").producer_id)
    restored = harness.new_machine()
    for offset, record in harness.machine.snapshot():
        restored.replay(offset, record)
    harness.machine = restored
    assert expired(harness) == ("app",)
    given_ids.add(harness.init(instance="last").producer_id)
    assert len(given_ids) == 5


def test_who_still_holds_an_expired_id_is_told_and_commits_nothing(
    harness: TransactionsHarness,
) -> None:
    key = harness.init()
    expired(harness)
    with pytest.raises(InvalidProducerIdMappingError, match="unknown"):
        harness.commit(key, [A0])
    (answer,) = harness.inquire((key, A0))
    assert (answer.outcome, harness.verified) == (InquiryOutcome.ABORTED, True)
    successor = harness.init(instance="two")
    with pytest.raises(InvalidProducerIdMappingError, match="has the producer id"):
        harness.commit(key, [A0])
    assert successor.producer_epoch == 0


def test_the_outcomes_of_an_expired_id_are_too_old_to_know(harness: TransactionsHarness) -> None:
    key = harness.init()
    harness.commit(key)
    expired(harness)
    harness.init(instance="two")
    for transactional_id in ("app", None):
        name = TransactionName(
            transactional_id=transactional_id, producer_id=key.producer_id, producer_epoch=0
        )
        machine = harness.machine
        answer = machine.get_transaction_outcome(name, now_ms=harness.now_ms).response
        assert answer.outcome is KnownOutcome.TOO_OLD_TO_KNOW


async def test_everything_idle_is_forgotten_and_logged() -> None:
    cluster = Cluster()
    async with cluster.coordinator(limits=LIMITS, send=False) as coordinator:
        await coordinator.init()
        cluster.clock.advance(EXPIRATION_MS)
        with capture_logs() as logs:
            await expire_idle(coordinator.runner, coordinator.machine, cluster.clock)
        assert [log["transactional_id"] for log in logs] == ["app"]


async def test_nothing_expires_any_more_once_the_clock_jumps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is used from then on has another clock's time."""
    monkeypatch.setattr("semel_coordinator.transactions.loops.id_expiry._PIECE", 1)
    cluster = Cluster()
    async with cluster.coordinator(limits=LIMITS, send=False) as coordinator:
        for name in ("first", "second"):
            await coordinator.init(name=name)
        cluster.clock.advance(EXPIRATION_MS)
        asyncio.get_running_loop().call_soon(cluster.clock.jump, -EXPIRATION_MS)
        with capture_logs() as logs:
            await expire_idle(coordinator.runner, coordinator.machine, cluster.clock)
        assert len(logs) == 1


async def test_nothing_expires_in_the_first_tick_after_a_start_or_a_pause() -> None:
    """Requests that lie in this process's buffers come first."""
    cluster = Cluster()
    async with cluster.coordinator(limits=LIMITS, send=False) as coordinator:
        await coordinator.init()
        cluster.clock.advance(EXPIRATION_MS)
        runner, machine = coordinator.runner, coordinator.machine
        expiring = asyncio.create_task(expire(runner, machine, cluster.clock, interval_ms=0))
        key = await coordinator.init()
        assert machine.current_epoch(key.producer_id) is not None
        await until(lambda: machine.current_epoch(key.producer_id) is None)
        expiring.cancel()
        await asyncio.gather(expiring, return_exceptions=True)


# -- fences


def needless(
    harness: TransactionsHarness, key: TransactionKey, participant: Participant = A0
) -> bool:
    inquiry = FenceInquiry(
        producer_id=key.producer_id, fence=key.producer_epoch, participant=participant
    )
    (answer,) = harness.run(harness.machine.expiry.inquire_fences([inquiry]))
    assert harness.verified
    assert answer.error is None
    return answer.is_needless


def test_a_fence_is_needed_as_long_as_a_commit_below_it_waits_for_anybody(
    harness: TransactionsHarness,
) -> None:
    """The participant itself may have acknowledged long ago: its marker is sent again at a start,
    and an inquiry would still be answered COMMITTED."""
    key = harness.init()
    harness.commit(key, [A0, A1])
    assert not needless(harness, after(key))
    assert not needless(harness, after(key), A1)
    harness.complete(key)
    assert needless(harness, after(key))


def test_a_fence_is_needless_where_nothing_was_committed(harness: TransactionsHarness) -> None:
    key = harness.init()
    harness.abort(key, [A0])
    harness.commit(after(key), [A1])
    assert needless(harness, after(key, 2), A0)
    assert not needless(harness, after(key, 2), A1)
    assert needless(harness, after(key), A1), "what is not below the fence does not count"


def test_fences_of_producers_that_are_not_known_are_needless(harness: TransactionsHarness) -> None:
    key = harness.init()
    expired(harness)
    assert needless(harness, after(key))
    assert needless(harness, TransactionKey(key.producer_id + 9, 7))


def test_only_the_owner_says_that_a_fence_is_needless() -> None:
    harness = TransactionsHarness(instance_id=0, coordinators=2)
    inquiry = FenceInquiry(producer_id=producer_id_of(1, 1), fence=1, participant=A0)
    (answer,) = harness.run(harness.machine.expiry.inquire_fences([inquiry]))
    assert isinstance(answer.error, NotCoordinatorError)
    assert not answer.is_needless


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["commit", "abort", "complete", "restart"]), max_size=20))
def test_nothing_below_a_needless_fence_is_ever_answered_committed(steps: list[str]) -> None:
    """Whatever happens afterwards: this is what lets a participant forget."""
    harness = TransactionsHarness(limits=LIMITS)
    current = first = harness.init()
    safe_below = 0
    for step in steps:
        if step == "commit":
            current = harness.commit(current, [A0, A1])
        elif step == "abort":
            current = harness.abort(current, [A0])
        elif step == "complete":
            harness.complete(*(marker.key for marker in harness.machine.markers.pending()[:1]))
        else:
            harness.restart()
        if needless(harness, current):
            safe_below = current.producer_epoch
        for epoch in range(safe_below):
            (answer,) = harness.inquire((after(first, epoch), A0))
            assert answer.outcome is InquiryOutcome.ABORTED
        markers = harness.machine.markers.pending()
        committing = [marker.producer_epoch for marker in markers if A0 in marker.committing]
        assert all(epoch >= safe_below for epoch in committing)


async def test_fences_are_answered_beside_inquiries() -> None:
    cluster = Cluster()
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        await coordinator.end(key, A0)
        request = wire.InquireTransactionsRequest(cluster_id="test-cluster")
        partition = participants_pb2.TopicPartition(topic_id=A0.topic_id, partition=A0.partition)
        for participant in (
            participants_pb2.Participant(topic_partition=partition),
            participants_pb2.Participant(group_id="group-g"),
        ):
            request.fences.add(producer_id=key.producer_id, fence=1, participant=participant)
        request.fences.add(producer_id=1, fence=1, participant=participant)
        response = await ask(coordinator, request)
        assert isinstance(response, wire.InquireTransactionsResponse)
        assert [fence.needless for fence in response.fences] == [False, True, True]


# -- time-outs


async def test_a_transaction_that_ends_while_the_sweep_waits_is_not_hit_nor_the_next_one() -> None:
    """Kafka's race: its sweep collects what is late, and ends it by name some time later, when that
    name may belong to the next transaction. Here, finding and ending is one step."""
    cluster = Cluster()
    async with cluster.coordinator(send=False) as coordinator:
        key = await coordinator.init()
        machine = coordinator.machine
        cluster.clock.advance(60_000)
        now_ms = cluster.clock.now_ms()
        await coordinator.end(key, A0)
        request = wire.AddPartitionsToTxnRequest(
            transactional_id="app", producer_id=key.producer_id, producer_epoch=1
        )
        request.topics.add(topic_id=A0.topic_id, partitions=[A0.partition])
        await ask(coordinator, request)
        assert await coordinator.runner.run(lambda: machine.tick(now_ms)) == ()
        cluster.clock.advance(59_999)
        assert await coordinator.runner.run(lambda: machine.tick(cluster.clock.now_ms())) == ()
        assert machine.current_epoch(key.producer_id) == 1
