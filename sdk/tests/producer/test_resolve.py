"""resolve(): the outcome of a commit without an answer, and the producer's next step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from network_faults import LoseReply, LoseRequest, Refuse
from producer_harness import QUICK, FakeCluster, begun, elapse, ends, open_client

from aiosemel import (
    AbortReason,
    KnownOutcome,
    NextStep,
    Resolution,
    SemelClient,
    TransactionalProducer,
)
from aiosemel.errors import (
    CoordinatorNotAvailableError,
    IllegalStateError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionOutcomeUnknownError,
)
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_COMMIT
from semel.coordinator.v1 import outcomes_pb2 as wire


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("t", partitions=1)
    return cluster


@asynccontextmanager
async def unknown(
    fake: FakeCluster, *faults: LoseReply | LoseRequest | Refuse
) -> AsyncIterator[tuple[SemelClient, TransactionalProducer, TransactionOutcomeUnknownError]]:
    """A producer whose commit was not answered, because these faults happened to it."""
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send("t", b"v", partition=0)
        fake.then("EndTxn", *faults)
        with pytest.raises(TransactionOutcomeUnknownError) as raised:
            await producer.commit()
        fake.script["EndTxn"].clear()
        yield client, producer, raised.value


Faults = tuple[LoseReply | LoseRequest | Refuse, ...]

LOST_REPLY: Faults = (LoseReply(), *[LoseRequest()] * 100)
LOST_REQUEST: Faults = (LoseRequest(),) * 100
SUCCEEDED: Faults = (LoseReply(), Refuse(ProducerFencedError("a successor came")))
"""The commit took effect; then a successor came, and the answer tells nothing of the commit."""


@pytest.mark.parametrize("faults", [LOST_REPLY, LOST_REQUEST])
async def test_a_commit_whose_request_or_answer_was_lost_is_committed(
    fake: FakeCluster, faults: Faults
) -> None:
    """It is the same request, which never takes effect twice."""
    async with unknown(fake, *faults) as (_, producer, error):
        assert await error.resolve() == Resolution(
            outcome=KnownOutcome.COMMITTED, abort_reason=None, next_step=NextStep.BEGIN
        )
        await producer.begin_transaction()
    assert fake.visible("t", 0) == [b"v"]
    assert {end.result for end in ends(fake)} == {TRANSACTION_RESULT_COMMIT}


@pytest.mark.parametrize("faults", [LOST_REPLY, LOST_REQUEST])
async def test_all_who_want_to_know_are_told_the_same(fake: FakeCluster, faults: Faults) -> None:
    async with unknown(fake, *faults) as (_, producer, error):
        fake.then("EndTxn", LoseReply())
        resolutions = await asyncio.gather(*(error.resolve() for _ in range(3)))
        assert set(resolutions) == {
            Resolution(outcome=KnownOutcome.COMMITTED, abort_reason=None, next_step=NextStep.BEGIN)
        }
        await producer.begin_transaction()


async def test_a_transaction_that_timed_out_is_aborted_and_the_producer_goes_on(
    fake: FakeCluster,
) -> None:
    async with unknown(fake, *LOST_REQUEST) as (_, producer, error):
        fake.time_out("orders")
        assert await error.resolve() == Resolution(
            outcome=KnownOutcome.ABORTED,
            abort_reason=AbortReason.TIMED_OUT,
            next_step=NextStep.ABORT,
        )
        await producer.abort()
        await producer.begin_transaction()
    assert fake.visible("t", 0) == []


async def test_a_successor_does_not_hide_that_it_was_committed(fake: FakeCluster) -> None:
    async with unknown(fake, *SUCCEEDED) as (_, producer, error):
        assert not error.can_ask_again
        assert await error.resolve() == Resolution(
            outcome=KnownOutcome.COMMITTED, abort_reason=None, next_step=NextStep.NEW_PRODUCER
        )
        asked = fake.asked(wire.GetTransactionOutcomeRequest)
        assert asked == [
            wire.GetTransactionOutcomeRequest(
                transactional_id="orders", producer_id=1, producer_epoch=0
            )
        ]
        with pytest.raises(ProducerFencedError):
            await producer.begin_transaction()


async def test_a_successor_that_aborted_it_says_so(fake: FakeCluster) -> None:
    fenced = (LoseRequest(), Refuse(ProducerFencedError("a successor came")))
    async with unknown(fake, *fenced) as (_, _, error):
        fake.supersede("orders")
        resolution = await error.resolve()
    assert (resolution.outcome, resolution.abort_reason) == (
        KnownOutcome.ABORTED,
        AbortReason.FENCED,
    )
    assert resolution.next_step is NextStep.NEW_PRODUCER


async def test_a_closed_producer_only_asks_until_the_time_out_decides(fake: FakeCluster) -> None:
    async with unknown(fake, *LOST_REQUEST) as (_, producer, error):
        await producer.close()
        sent = len(ends(fake))
        asking = asyncio.create_task(error.resolve())
        await elapse(3)
        assert not asking.done()
        fake.time_out("orders")
        resolution = await asking
    assert (resolution.outcome, resolution.next_step) == (
        KnownOutcome.ABORTED,
        NextStep.NEW_PRODUCER,
    )
    assert len(ends(fake)) == sent
    assert len(fake.asked(wire.GetTransactionOutcomeRequest)) > 1


async def test_an_outcome_that_is_too_old_is_not_guessed(fake: FakeCluster) -> None:
    too_old = wire.GetTransactionOutcomeResponse(
        outcome=wire.TRANSACTION_OUTCOME_TOO_OLD_TO_KNOW, producer_id=1, current_epoch=-1
    )
    fake.canned["coordinator:1", "GetTransactionOutcome"] = too_old
    async with unknown(fake, *SUCCEEDED) as (_, _, error):
        assert (await error.resolve()).outcome is KnownOutcome.TOO_OLD_TO_KNOW


async def test_it_asks_until_an_answer_comes(fake: FakeCluster) -> None:
    async with unknown(fake, *LOST_REPLY) as (_, _, error):
        fake.then("EndTxn", *LOST_REQUEST)
        asking = asyncio.create_task(error.resolve())
        await elapse(10)
        assert not asking.done()
        fake.script["EndTxn"].clear()
        assert (await asking).outcome is KnownOutcome.COMMITTED


async def test_a_coordinator_that_is_away_is_asked_again(fake: FakeCluster) -> None:
    async with unknown(fake, *SUCCEEDED) as (_, _, error):
        away = [Refuse(CoordinatorNotAvailableError("x"))] * 1_000
        fake.then("GetTransactionOutcome", *away)
        with pytest.raises(RequestTimedOutError, match="transaction 0 of orders is still not"):
            await error.resolve(timeout_ms=120_000)
        fake.script["GetTransactionOutcome"].clear()
        assert (await error.resolve(timeout_ms=5_000)).outcome is KnownOutcome.COMMITTED


async def test_a_cancelled_question_is_cancelled(fake: FakeCluster) -> None:
    async with unknown(fake, *LOST_REPLY) as (_, _, error):
        fake.then("EndTxn", *LOST_REQUEST)
        asking = asyncio.create_task(error.resolve())
        await elapse(0.5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        fake.script["EndTxn"].clear()
        assert (await error.resolve()).outcome is KnownOutcome.COMMITTED


async def test_an_old_error_is_resolved_when_the_producer_has_gone_on(fake: FakeCluster) -> None:
    async with unknown(fake, *LOST_REPLY) as (_, producer, error):
        await producer.commit()
        await producer.begin_transaction()
        resolution = await error.resolve()
        assert (resolution.outcome, resolution.next_step) == (
            KnownOutcome.COMMITTED,
            NextStep.BEGIN,
        )
        await producer.abort()


async def test_an_error_that_no_commit_has_raised_cannot_be_resolved() -> None:
    error = TransactionOutcomeUnknownError(
        "x", transactional_id="orders", producer_id=1, producer_epoch=0, can_ask_again=True
    )
    with pytest.raises(IllegalStateError):
        await error.resolve()
