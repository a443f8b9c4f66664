"""What becomes of a commit: committed, aborted or unknown, and never two of them."""

import asyncio

import pytest
from network_faults import LoseReply, LoseRequest, Refuse
from producer_harness import QUICK, FakeCluster, begun, ends, open_client

from aiosemel.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    IllegalStateError,
    InvalidProducerIdMappingError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
)
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_COMMIT


@pytest.mark.parametrize("fault", [LoseReply(), LoseRequest()])
async def test_a_lost_commit_is_asked_again(
    fake: FakeCluster, fault: LoseReply | LoseRequest
) -> None:
    fake.then("EndTxn", fault)
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        await producer.commit()
        await producer.begin_transaction()
    first, second = ends(fake)
    assert first == second
    assert fake.visible("t", 0) == [b"v"]


async def test_concurrent_transactions_are_retried_in_20_ms_c200(fake: FakeCluster) -> None:
    fake.then("EndTxn", *[Refuse(ConcurrentTransactionsError("x"))] * 3)
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        before = asyncio.get_running_loop().time()
        await producer.commit()
        assert asyncio.get_running_loop().time() - before < 0.09
    assert len(ends(fake)) == 4


async def test_other_retriable_errors_are_retried_in_100_ms_c200(fake: FakeCluster) -> None:
    fake.then("EndTxn", Refuse(CoordinatorLoadInProgressError("x")))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        before = asyncio.get_running_loop().time()
        await producer.commit()
        assert 0.08 <= asyncio.get_running_loop().time() - before <= 0.15


async def test_an_unknown_outcome_is_said_and_can_be_asked_for(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send("t", b"v", partition=0)
        fake.then("EndTxn", LoseReply(), *[LoseRequest()] * 100)
        with pytest.raises(TransactionOutcomeUnknownError) as raised:
            await producer.commit()
        unknown = raised.value
        assert (unknown.transactional_id, unknown.producer_id, unknown.producer_epoch) == (
            "orders",
            1,
            0,
        )
        assert unknown.can_ask_again
        for refused in (producer.abort, producer.begin_transaction, producer.init_transactions):
            with pytest.raises(IllegalStateError, match="COMMITTING_TRANSACTION"):
                await refused()
        with pytest.raises(IllegalStateError, match="COMMITTING_TRANSACTION"):
            await producer.send("t", b"late")
        fake.script["EndTxn"].clear()
        await producer.commit()
        await producer.begin_transaction()
    assert fake.visible("t", 0) == [b"v"]
    assert {end.result for end in ends(fake)} == {TRANSACTION_RESULT_COMMIT}


async def test_closing_after_an_unknown_outcome_sends_no_abort(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send("t", b"v", partition=0)
        fake.then("EndTxn", *[LoseRequest()] * 100)
        with pytest.raises(TransactionOutcomeUnknownError):
            async with asyncio.timeout(30):
                await producer.commit()
        fake.script["EndTxn"].clear()
    assert {end.result for end in ends(fake)} == {TRANSACTION_RESULT_COMMIT}


async def test_a_transaction_that_timed_out_is_a_definite_abort(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=0)
        fake.time_out("orders")
        with pytest.raises(TransactionAbortedError, match="TIMED_OUT") as raised:
            await producer.commit()
        assert raised.value.details["reason"] == "TIMED_OUT"
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert fake.visible("t", 0) == [b"w"]
    assert len(ends(fake)) == 2, "an abort was sent for an epoch after its commit"


async def test_a_fenced_producer_is_done_and_its_transaction_aborted_c005(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=0)
        fake.supersede("orders")
        with pytest.raises(TransactionAbortedError) as raised:
            await producer.commit()
        assert isinstance(raised.value.__cause__, ProducerFencedError)
        with pytest.raises(ProducerFencedError):
            await producer.abort()
    assert fake.visible("t", 0) == []


async def test_a_bare_fence_after_a_commit_is_an_unknown_outcome(fake: FakeCluster) -> None:
    fake.then("EndTxn", LoseReply(), Refuse(ProducerFencedError("a successor came")))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        with pytest.raises(TransactionOutcomeUnknownError) as raised:
            await producer.commit()
        assert not raised.value.can_ask_again
        with pytest.raises(ProducerFencedError):
            await producer.commit()


async def test_a_commit_that_took_effect_before_the_fence_succeeds(fake: FakeCluster) -> None:
    fenced = ProducerFencedError("a successor came", outcome="COMMITTED")
    fake.then("EndTxn", LoseReply(), Refuse(fenced))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        await producer.commit()
        with pytest.raises(ProducerFencedError):
            await producer.begin_transaction()
    assert fake.visible("t", 0) == [b"v"]


async def test_another_producer_id_is_fatal_c019(fake: FakeCluster) -> None:
    fake.then("EndTxn", Refuse(InvalidProducerIdMappingError("expired")))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        with pytest.raises(InvalidProducerIdMappingError):
            await producer.abort()
        with pytest.raises(InvalidProducerIdMappingError):
            await producer.begin_transaction()
        other = client.transactional_producer("orders")
        await other.init_transactions()
