"""What a cancelled call leaves behind, for every call that can wait.

Before EndTxn(commit) went out: the transaction is aborted in the background, CancelledError goes
on. After: the call learns the outcome, and CancelledError goes on, or it raises
TransactionOutcomeUnknownError. CancelledError is never swallowed.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from network_faults import Hold, HoldReply, LoseReply, LoseRequest, Refuse
from producer_harness import GROUP, OFFSETS, FakeCluster, begun, elapse, ends, open_client, ready

from aiosemel import ProducerOptions, TransactionalProducer, TransactionOutcome
from aiosemel.errors import (
    ProducerFencedError,
    RequestTimedOutError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_ABORT, TRANSACTION_RESULT_COMMIT
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest

NEVER = asyncio.Event
ABORT, COMMIT = TRANSACTION_RESULT_ABORT, TRANSACTION_RESULT_COMMIT


async def cancelled(call: Awaitable[object], after: float = 0.1) -> BaseException:
    """Cancel a call while it waits; return what it raised."""

    async def run() -> None:
        await call

    task = asyncio.create_task(run())
    await elapse(after)
    assert not task.done(), "it did not wait"
    task.cancel()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(result, BaseException), "the cancellation was swallowed"
    return result


def results(fake: FakeCluster) -> list[int]:
    return [end.result for end in ends(fake)]


# -- before the commit was sent -------------------------------------------------------------------


async def test_a_cancelled_init_can_be_called_again(fake: FakeCluster) -> None:
    fake.then("InitProducerId", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders")
        raised = await cancelled(producer.init_transactions())
        assert isinstance(raised, asyncio.CancelledError)
        await producer.init_transactions()
    first, second = fake.asked(InitProducerIdRequest)
    assert first == second


async def test_a_send_that_is_cancelled_while_it_waits_is_not_sent(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        raised = await cancelled(producer.send("later", b"v"))
        assert isinstance(raised, asyncio.CancelledError)
        fake.create_topic("later")
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert (fake.stored("later"), fake.visible("t", 0)) == ([], [b"w"])


async def test_a_cancelled_wait_for_a_delivery_loses_nothing(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", HoldReply(released))
    async with open_client(fake) as client:
        producer = await begun(client)
        raised = await cancelled(producer.send_and_wait("t", b"v", partition=0))
        assert isinstance(raised, asyncio.CancelledError)
        released.set()
        await producer.commit()
    assert fake.visible("t", 0) == [b"v"]


async def test_cancelled_offsets_make_the_transaction_abortable(fake: FakeCluster) -> None:
    fake.then("TxnOffsetCommit", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client)
        raised = await cancelled(producer.send_offsets(OFFSETS, GROUP))
        assert isinstance(raised, asyncio.CancelledError)
        with pytest.raises(TransactionAbortableError, match="send_offsets was cancelled"):
            await producer.send("t", b"v")
        await producer.abort()
    assert results(fake) == [ABORT]


async def test_a_commit_cancelled_before_it_was_sent_aborts_in_the_background(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        fake.then("Produce", HoldReply(NEVER()))
        await producer.send("t", b"v", partition=0)
        raised = await cancelled(producer.commit())
        assert isinstance(raised, asyncio.CancelledError)
        assert fake.transactional["orders"].epoch == 0, "it waited for the abort"
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert results(fake) == [ABORT, COMMIT]
    assert fake.visible("t", 0) == [b"w"]


async def test_an_abort_after_a_cancelled_commit_joins_the_one_in_the_background(
    fake: FakeCluster,
) -> None:
    fake.then("Produce", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        await cancelled(producer.commit())
        await producer.abort()
        await producer.begin_transaction()
    assert results(fake) == [ABORT]


async def test_an_abort_in_the_background_that_finds_a_successor_ends_the_producer(
    fake: FakeCluster,
) -> None:
    fake.then("Produce", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        await elapse(0.1)
        fake.supersede("orders")
        await cancelled(producer.commit())
        with pytest.raises(ProducerFencedError):
            await producer.abort()


async def test_an_abort_in_the_background_that_gets_no_answer_can_be_called_again(
    fake: FakeCluster,
) -> None:
    fake.then("Produce", HoldReply(NEVER()))
    fake.then("EndTxn", *[LoseRequest()] * 1_000)
    async with open_client(fake) as client:
        producer = await begun(client, ProducerOptions(max_block_ms=1_000))
        await producer.send("t", b"v", partition=0)
        await cancelled(producer.commit())
        await elapse(2)
        fake.script["EndTxn"].clear()
        await producer.abort()
        await producer.begin_transaction()


async def test_a_begin_tries_an_abort_again_that_got_no_answer_in_the_background(
    fake: FakeCluster,
) -> None:
    fake.then("Produce", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client, ProducerOptions(max_block_ms=1_000))
        await producer.send("t", b"v", partition=0)
        await elapse(0.1)
        fake.down = True
        await cancelled(producer.commit())
        for _ in range(3):
            with pytest.raises(RequestTimedOutError):
                await producer.begin_transaction()
        await elapse(2)
        fake.down = False
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert set(results(fake)[:-1]) == {ABORT}
    assert fake.visible("t", 0) == [b"w"]


async def test_a_cancelled_abort_goes_on_in_the_background(fake: FakeCluster) -> None:
    fake.then("EndTxn", LoseRequest())
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=0)
        raised = await cancelled(producer.abort(), after=0.01)
        assert isinstance(raised, asyncio.CancelledError)
        await producer.begin_transaction()
    assert set(results(fake)) == {ABORT}


async def test_a_begin_that_waits_for_an_abort_can_be_cancelled(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", HoldReply(NEVER()))
    fake.then("EndTxn", Hold(released))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        await cancelled(producer.commit())
        raised = await cancelled(producer.begin_transaction())
        assert isinstance(raised, asyncio.CancelledError)
        released.set()
        await producer.begin_transaction()
    assert results(fake) == [ABORT]


async def test_closing_waits_for_an_abort_in_the_background(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        fake.then("Produce", HoldReply(NEVER()))
        await producer.send("t", b"v", partition=0)
        await cancelled(producer.commit())
    assert results(fake) == [ABORT]
    assert fake.transactional["orders"].outcomes[0] == ("ABORTED", "CLIENT")


# -- after the commit was sent --------------------------------------------------------------------


async def test_a_commit_cancelled_after_it_was_sent_learns_its_outcome(fake: FakeCluster) -> None:
    fake.then("EndTxn", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        raised = await cancelled(producer.commit())
        assert isinstance(raised, asyncio.CancelledError)
        await producer.begin_transaction()
    assert results(fake) == [COMMIT, COMMIT]
    assert fake.visible("t", 0) == [b"v"]


async def test_a_cancelled_commit_that_learns_of_an_abort_leaves_it_to_the_caller(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=0)
        fake.time_out("orders")
        fake.then("EndTxn", Hold(NEVER()))
        raised = await cancelled(producer.commit())
        assert isinstance(raised, asyncio.CancelledError)
        with pytest.raises(TransactionAbortedError):
            await producer.commit()
        await producer.abort()
        await producer.begin_transaction()
    assert results(fake) == [COMMIT, COMMIT]


async def test_a_commit_cancelled_after_it_was_sent_says_if_its_outcome_is_unknown(
    fake: FakeCluster,
) -> None:
    fake.then("EndTxn", *[HoldReply(NEVER())] * 2)
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        before = asyncio.get_running_loop().time()
        raised = await cancelled(producer.commit())
        assert asyncio.get_running_loop().time() - before == pytest.approx(1.1, abs=0.01)
        assert isinstance(raised, TransactionOutcomeUnknownError)
        assert isinstance(raised.__cause__, asyncio.CancelledError)
        await producer.commit()
        await producer.begin_transaction()
    assert set(results(fake)) == {COMMIT}
    assert fake.visible("t", 0) == [b"v"]


async def test_no_grace_means_no_question(fake: FakeCluster) -> None:
    fake.then("EndTxn", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client, ProducerOptions(cancelled_commit_grace_ms=0))
        await producer.send("t", b"v", partition=0)
        assert isinstance(await cancelled(producer.commit()), TransactionOutcomeUnknownError)
    assert results(fake) == [COMMIT]


async def test_a_second_cancellation_ends_the_wait_for_the_outcome(fake: FakeCluster) -> None:
    fake.then("EndTxn", *[HoldReply(NEVER())] * 2)
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        committing = asyncio.create_task(producer.commit())
        await elapse(0.1)
        committing.cancel()
        await elapse(0.1)
        assert not committing.done()
        committing.cancel()
        with pytest.raises(TransactionOutcomeUnknownError):
            await committing
        await producer.commit()


async def test_a_cancelled_commit_that_finds_a_successor_is_unknown(fake: FakeCluster) -> None:
    fake.then("EndTxn", HoldReply(NEVER()), Refuse(ProducerFencedError("x")))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        raised = await cancelled(producer.commit())
        assert isinstance(raised, TransactionOutcomeUnknownError)
        assert not raised.can_ask_again


# -- blocks, task groups, time-outs ---------------------------------------------------------------


async def in_a_block(
    producer: TransactionalProducer, then: Callable[[], Awaitable[object]]
) -> None:
    async with producer.transaction() as txn:
        await txn.send("t", b"v", partition=0)
        await then()


async def test_a_cancelled_block_aborts_in_the_background(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        raised = await cancelled(in_a_block(producer, asyncio.Event().wait))
        assert isinstance(raised, asyncio.CancelledError)
        assert fake.transactional["orders"].epoch == 0, "it waited for the abort"
        async with producer.transaction() as txn:
            await txn.send("t", b"w", partition=0)
    assert results(fake) == [ABORT, COMMIT]
    assert fake.visible("t", 0) == [b"w"]


async def test_a_block_whose_commit_is_cancelled_knows_its_outcome(fake: FakeCluster) -> None:
    fake.then("EndTxn", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await ready(client)
        txn = producer.transaction()

        async def run() -> None:
            async with txn:
                await txn.send("t", b"v", partition=0)

        assert isinstance(await cancelled(run()), asyncio.CancelledError)
        assert txn.outcome is TransactionOutcome.COMMITTED
    assert fake.visible("t", 0) == [b"v"]


async def test_a_task_group_cancels_a_transaction_and_raises_only_what_went_wrong(
    fake: FakeCluster,
) -> None:
    async def fail() -> None:
        await elapse(0.1)
        raise ZeroDivisionError

    async with open_client(fake) as client:
        producer = await ready(client)

        async def run() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(in_a_block(producer, asyncio.Event().wait))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup) as raised:
            await run()
        assert [type(error) for error in raised.value.exceptions] == [ZeroDivisionError]
    assert results(fake) == [ABORT]


async def test_a_time_out_before_the_commit_was_sent_is_a_time_out(fake: FakeCluster) -> None:
    fake.then("Produce", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await ready(client)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await in_a_block(producer, lambda: elapse(0.1))
        await producer.begin_transaction()
    assert results(fake) == [ABORT]


async def test_a_time_out_after_a_commit_that_took_effect_is_a_time_out(
    fake: FakeCluster,
) -> None:
    fake.then("EndTxn", HoldReply(NEVER()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await producer.commit()
        await producer.begin_transaction()
    assert fake.visible("t", 0) == [b"v"]


async def test_a_time_out_after_the_commit_was_sent_says_if_its_outcome_is_unknown(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=0)
        fake.then("EndTxn", LoseReply(), *[LoseRequest()] * 100)
        with pytest.raises(TransactionOutcomeUnknownError):
            async with asyncio.timeout(0.5):
                await producer.commit()
        fake.script["EndTxn"].clear()
        await producer.commit()
    assert fake.visible("t", 0) == [b"v"]
