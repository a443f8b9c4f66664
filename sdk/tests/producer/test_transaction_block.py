"""Transactions as context managers."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from network_faults import Hold, LoseReply, LoseRequest, Refuse, RefusePartition
from producer_harness import GROUP, OFFSETS, QUICK, FakeCluster, elapse, ends, open_client, ready

from aiosemel import (
    ProducerOptions,
    SemelClient,
    Transaction,
    TransactionalProducer,
    TransactionOutcome,
)
from aiosemel.errors import (
    ClosedError,
    IllegalStateError,
    InvalidProducerIdMappingError,
    InvalidRecordError,
    ProducerFencedError,
    RequestTimedOutError,
    RetriableError,
    SemelError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_ABORT


async def run(transaction: Transaction, then: Callable[[], object]) -> None:
    """Send something within a transaction, then do something more."""
    async with transaction as txn:
        await txn.send_and_wait("t", b"v", partition=0)
        then()


async def go_on_after(transaction: Transaction, error: type[SemelError]) -> None:
    """Send something within a transaction, mind no error of a kind, and end later."""
    async with transaction as txn:
        with suppress(error):
            await txn.send_and_wait("t", b"v", partition=0)
        await elapse(1)


async def send_within(transaction: Transaction) -> None:
    """Send something within a transaction, whose end waits for it."""
    async with transaction as txn:
        await txn.send("t", b"v", partition=0)


async def close_within(
    transaction: Transaction, closed: TransactionalProducer | SemelClient, *, sends: bool
) -> None:
    """Close something within a transaction, and go on."""
    async with transaction as txn:
        if sends:
            await txn.send_and_wait("t", b"v", partition=0)
        await closed.close()


async def commit_for(producer: TransactionalProducer, timeout_ms: int) -> None:
    """Commit within a transaction, and go on when that takes too long."""
    async with producer.transaction() as txn:
        await txn.send("t", b"v", partition=0)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await producer.commit()


def outcome_of(transaction: Transaction) -> TransactionOutcome | None:
    """Look again: a type checker believes that nothing changes."""
    return transaction.outcome


async def test_the_end_of_the_block_commits(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        async with producer.transaction() as txn:
            assert outcome_of(txn) is None
            await txn.send("t", b"1", partition=0)
            await txn.send_and_wait("t", b"2", partition=0)
            await txn.send_columns("t", [b"3", b"4"], partition=0)
            await txn.send_offsets(OFFSETS, GROUP)
        assert outcome_of(txn) is TransactionOutcome.COMMITTED
    assert fake.visible("t", 0) == [b"1", b"2", b"3", b"4"]


async def test_an_exception_in_the_block_aborts_and_goes_on(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        txn = producer.transaction()
        with pytest.raises(ZeroDivisionError):
            await run(txn, lambda: 1 // 0)
        assert outcome_of(txn) is TransactionOutcome.ABORTED
        async with producer.transaction() as second:
            await second.send("t", b"w", partition=0)
    assert fake.visible("t", 0) == [b"w"]
    assert outcome_of(txn) is TransactionOutcome.ABORTED


async def test_a_definite_abort_leaves_the_producer_ready(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        txn = producer.transaction()
        with pytest.raises(TransactionAbortedError):
            await run(txn, lambda: fake.time_out("orders"))
        assert outcome_of(txn) is TransactionOutcome.ABORTED
        async with producer.transaction() as second:
            await second.send("t", b"w", partition=0)
    assert fake.visible("t", 0) == [b"w"]


async def test_a_commit_that_never_went_out_is_a_definite_abort(fake: FakeCluster) -> None:
    options = ProducerOptions(max_block_ms=1_000)
    async with open_client(fake) as client:
        producer = await ready(client, options)
        fake.then("Produce", Hold(asyncio.Event()))
        with pytest.raises(TransactionAbortedError, match="not everything was acknowledged"):
            async with producer.transaction() as txn:
                await txn.send("t", b"v", partition=0)
        assert outcome_of(txn) is TransactionOutcome.ABORTED
        await producer.begin_transaction()
    assert {end.result for end in ends(fake)} == {TRANSACTION_RESULT_ABORT}


async def test_an_unknown_outcome_leaves_the_question_open(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client, QUICK)
        fake.then("EndTxn", LoseReply(), *[LoseRequest()] * 100)
        with pytest.raises(TransactionOutcomeUnknownError):
            async with producer.transaction() as txn:
                await txn.send("t", b"v", partition=0)
        assert outcome_of(txn) is TransactionOutcome.UNKNOWN
        fake.script["EndTxn"].clear()
        await producer.commit()
        assert outcome_of(txn) is TransactionOutcome.COMMITTED


async def test_a_fatal_error_in_the_block_goes_on_as_it_is(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        fake.then("Produce", RefusePartition(ProducerFencedError("x")))
        with pytest.raises(ProducerFencedError):
            async with producer.transaction() as txn:
                await txn.send_and_wait("t", b"v", partition=0)
    assert ends(fake) == []


@pytest.mark.parametrize("error", [ProducerFencedError("x"), InvalidProducerIdMappingError("x")])
async def test_a_block_that_lost_its_producer_unseen_does_not_end_as_if_committed(
    fake: FakeCluster, error: SemelError
) -> None:
    fake.then("AddPartitionsToTxn", Refuse(error))
    async with open_client(fake) as client:
        producer = await ready(client)
        txn = producer.transaction()
        with pytest.raises(TransactionAbortedError) as raised:
            await go_on_after(txn, RetriableError)
        assert isinstance(raised.value.__cause__, type(error))
        assert outcome_of(txn) is TransactionOutcome.ABORTED
    assert ends(fake) == []
    assert fake.visible("t", 0) == []


async def test_a_block_that_goes_on_after_a_fatal_error_does_not_end_as_if_committed(
    fake: FakeCluster,
) -> None:
    fake.then("Produce", RefusePartition(ProducerFencedError("x")))
    async with open_client(fake) as client:
        producer = await ready(client)
        with pytest.raises(TransactionAbortedError):
            await go_on_after(producer.transaction(), ProducerFencedError)
    assert ends(fake) == []


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize("closes", ["producer", "client"])
async def test_a_block_whose_producer_was_closed_does_not_end_as_if_committed(
    fake: FakeCluster, closes: str, *, sends: bool
) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        closed = client if closes == "client" else producer
        txn = producer.transaction()
        with pytest.raises(TransactionAbortedError, match="transaction 0 of orders") as raised:
            await close_within(txn, closed, sends=sends)
        assert isinstance(raised.value.__cause__, ClosedError)
        assert outcome_of(txn) is TransactionOutcome.ABORTED
    assert fake.visible("t", 0) == []


async def test_a_block_that_is_closed_in_its_commit_does_not_end_as_if_committed(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        fake.then("Produce", Hold(asyncio.Event()))
        txn = producer.transaction()
        running = asyncio.create_task(send_within(txn))
        await elapse(0.1)
        await producer.close()
        with pytest.raises(TransactionAbortedError):
            await running
        assert outcome_of(txn) is TransactionOutcome.ABORTED


async def test_a_block_that_goes_on_after_a_cancelled_commit_does_not_end_as_if_committed(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        fake.then("Produce", Hold(asyncio.Event()))
        with pytest.raises(TransactionAbortedError, match="commit was cancelled"):
            await commit_for(producer, timeout_ms=100)
        async with producer.transaction() as second:
            await second.send("t", b"w", partition=0)
    assert fake.visible("t", 0) == [b"w"]


async def test_a_block_may_abort_after_a_cancelled_commit(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        fake.then("Produce", Hold(asyncio.Event()))
        async with producer.transaction() as txn:
            await txn.send("t", b"v", partition=0)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await producer.commit()
            await producer.abort()
        assert outcome_of(txn) is TransactionOutcome.ABORTED


async def test_an_abort_of_its_own_is_no_loss_to_a_block(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        async with producer.transaction() as txn:
            await txn.send("t", b"v", partition=0)
            await producer.abort()
            await producer.close()
        assert outcome_of(txn) is TransactionOutcome.ABORTED


async def test_an_abort_that_fails_does_not_hide_why(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        fake.then("EndTxn", Refuse(ProducerFencedError("x")))
        txn = producer.transaction()
        with pytest.raises(ZeroDivisionError):
            await run(txn, lambda: 1 // 0)
        assert outcome_of(txn) is TransactionOutcome.ABORTED


async def fail_unanswered(
    fake: FakeCluster, transaction: Transaction, *, send_fails: bool = False
) -> None:
    """Let a block fail, and its abort get no answer."""
    async with transaction as txn:
        await txn.send_and_wait("t", b"never", partition=0)
        fake.then("EndTxn", *[LoseRequest()] * 100)
        if not send_fails:
            raise ZeroDivisionError
        fake.then("Produce", RefusePartition(InvalidRecordError("no")))
        await txn.send("t", b"refused", partition=0)


@pytest.mark.parametrize("send_fails", [False, True])
async def test_an_abort_without_an_answer_is_sent_again_by_the_next_block(
    fake: FakeCluster, send_fails: bool
) -> None:
    async with open_client(fake) as client:
        producer = await ready(client, QUICK)
        txn = producer.transaction()
        with pytest.raises((ZeroDivisionError, TransactionAbortedError)):
            await fail_unanswered(fake, txn, send_fails=send_fails)
        with pytest.raises(IllegalStateError, match="the abort is not answered yet; begin_tr"):
            await producer.send("t", b"outside", partition=0)
        with pytest.raises(RequestTimedOutError):
            await producer.begin_transaction()
        fake.script["EndTxn"].clear()
        async with producer.transaction() as again:
            await again.send("t", b"v", partition=0)
    assert outcome_of(txn) is TransactionOutcome.ABORTED
    assert fake.visible("t", 0) == [b"v"]


async def test_closing_sends_an_abort_without_an_answer_again(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client, QUICK)
        with pytest.raises(ZeroDivisionError):
            await fail_unanswered(fake, producer.transaction())
        fake.script["EndTxn"].clear()
    assert fake.transactional["orders"].epoch == 1


async def test_a_block_may_end_its_transaction_itself(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        async with producer.transaction() as txn:
            await txn.send("t", b"v", partition=0)
            await producer.commit()
        async with producer.transaction() as other:
            await producer.abort()
    assert (txn.outcome, other.outcome) == (
        TransactionOutcome.COMMITTED,
        TransactionOutcome.ABORTED,
    )
    assert len(ends(fake)) == 1


async def test_a_transaction_that_is_over_takes_nothing(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        async with producer.transaction() as old:
            pass
        async with producer.transaction() as new:
            for call in (
                old.send("t", b"v"),
                old.send_and_wait("t", b"v"),
                old.send_columns("t", [b"v"]),
                old.send_offsets(OFFSETS, GROUP),
            ):
                with pytest.raises(IllegalStateError, match="has ended"):
                    await call
            await new.send("t", b"w", partition=0)
        with pytest.raises(IllegalStateError, match="only once"):
            await _enter(new)
    assert fake.visible("t", 0) == [b"w"]


async def _enter(transaction: Transaction) -> None:
    async with transaction:
        pass
