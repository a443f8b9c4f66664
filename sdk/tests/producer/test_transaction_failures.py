"""What fails within a transaction, calls out of order, and closing."""

import asyncio

import pytest
from network_faults import Hold, HoldReply, LoseRequest, Refuse, RefusePartition
from producer_harness import GROUP, OFFSETS, QUICK, FakeCluster, begun, elapse, ends, open_client

from aiosemel import (
    ProducerOptions,
)
from aiosemel.errors import (
    ClosedError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    ProducerFencedError,
    RequestTimedOutError,
    SemelError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnknownServerError,
)
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_ABORT, TRANSACTION_RESULT_COMMIT

# -- failures of sends -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        InvalidProducerEpochError("x"),
        TransactionAbortableError("x"),
        InvalidTxnStateError("x"),
        InvalidRecordError("x"),
        UnknownServerError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_failed_send_makes_the_transaction_abortable_c193_c197_c199_c209(
    fake: FakeCluster, error: SemelError
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        fake.then("Produce", RefusePartition(error))
        await producer.send("t", b"v", partition=0)
        with pytest.raises(TransactionAbortedError) as raised:
            await producer.commit()
        assert isinstance(raised.value.__cause__, type(error))
        with pytest.raises(TransactionAbortableError):
            await producer.send("t", b"v")
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert [end.result for end in ends(fake)] == [
        TRANSACTION_RESULT_ABORT,
        TRANSACTION_RESULT_COMMIT,
    ]
    assert fake.visible("t", 0) == [b"w"]


async def test_a_fenced_send_is_fatal_c007(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        fake.then("Produce", RefusePartition(ProducerFencedError("x")))
        delivery = await producer.send("t", b"v")
        with pytest.raises(ProducerFencedError):
            await delivery
        with pytest.raises(TransactionAbortedError) as raised:
            await producer.commit()
        assert isinstance(raised.value.__cause__, ProducerFencedError)
        with pytest.raises(ProducerFencedError):
            await producer.abort()


@pytest.mark.parametrize("error", [ProducerFencedError("x"), TransactionAbortableError("x")])
@pytest.mark.parametrize("registration", ["AddPartitionsToTxn", "AddOffsetsToTxn"])
async def test_a_refused_registration_shows_c008_c199(
    fake: FakeCluster, registration: str, error: SemelError
) -> None:
    fake.then(registration, Refuse(error))
    async with open_client(fake) as client:
        producer = await begun(client)
        if registration == "AddPartitionsToTxn":
            await producer.send_and_wait("t", b"v")
        else:
            await producer.send_offsets(OFFSETS, GROUP)
        await elapse(0.3)
        with pytest.raises(type(error)):
            await producer.send("t", b"v")


async def test_a_registration_without_an_answer_hinders_no_call(fake: FakeCluster) -> None:
    fake.then("AddPartitionsToTxn", *[LoseRequest()] * 100)
    options = ProducerOptions(transaction_timeout_ms=1_000)
    async with open_client(fake) as client:
        producer = await begun(client, options)
        await producer.send_and_wait("t", b"v", partition=0)
        await elapse(5)
        await producer.commit()
    assert fake.visible("t", 0) == [b"v"]


async def test_a_batch_that_expires_makes_the_commit_fail_c196(fake: FakeCluster) -> None:
    fake.then("Produce", *[LoseRequest()] * 1_000)
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send("t", b"v", partition=0)
        with pytest.raises(TransactionAbortedError, match="not acknowledged in 1000 ms"):
            await producer.commit()
        assert ends(fake) == []
        await producer.abort()
    (end,) = ends(fake)
    assert end.result == TRANSACTION_RESULT_ABORT
    assert [list(topic.partitions) for topic in end.participants.topics] == [[0]]


async def test_a_defect_of_the_sender_aborts_and_the_next_transaction_goes_on(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    async with open_client(fake) as client:
        producer = await begun(client)
        with monkeypatch.context() as patch:
            patch.setattr("aiosemel._producer.sending.sender.produce_request", broken)
            await producer.send("t", b"v", partition=0)
            with pytest.raises(TransactionAbortedError, match="ended by a bug"):
                await producer.commit()
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert fake.visible("t", 0) == [b"w"]


async def test_what_was_queued_behind_a_failure_is_given_up(fake: FakeCluster) -> None:
    fake.then("Produce", RefusePartition(InvalidRecordError("x")))
    async with open_client(fake) as client:
        producer = await begun(client)
        first = await producer.send("t", b"1", partition=0)
        await elapse(0.0005)
        second = await producer.send("t", b"2", partition=0)
        with pytest.raises(InvalidRecordError):
            await first
        with pytest.raises(TransactionAbortableError, match="not sent"):
            await second


async def test_a_commit_that_waits_too_long_for_acknowledgements_can_go_on(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    options = ProducerOptions(max_block_ms=1_000)
    async with open_client(fake) as client:
        producer = await begun(client, options)
        fake.then("Produce", HoldReply(released))
        await producer.send("t", b"v", partition=0)
        with pytest.raises(RequestTimedOutError, match="not everything was acknowledged"):
            await producer.commit()
        assert ends(fake) == []
        released.set()
        await producer.send("t", b"w", partition=1)
        await producer.commit()
    assert (fake.visible("t", 0), fake.visible("t", 1)) == ([b"v"], [b"w"])


async def test_an_abort_can_be_called_again_after_a_time_out_c011(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send_and_wait("t", b"v", partition=0)
        fake.down = True
        for _ in range(2):
            with pytest.raises(RequestTimedOutError):
                await producer.abort()
        with pytest.raises(RequestTimedOutError, match="still being aborted"):
            await producer.begin_transaction()
        with pytest.raises(IllegalStateError, match="ABORTING_TRANSACTION: the abort is not ans"):
            await producer.send("t", b"v", partition=0)
        fake.down = False
        await producer.abort()
        await producer.begin_transaction()


# -- order of calls --------------------------------------------------------------------------------


async def test_calls_out_of_order_name_the_state(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders")
        with pytest.raises(IllegalStateError, match="UNINITIALIZED"):
            await producer.begin_transaction()
        await producer.init_transactions()
        with pytest.raises(IllegalStateError, match="READY"):
            await producer.send("t", b"v")
        with pytest.raises(IllegalStateError, match="READY"):
            await producer.send_columns("t", [b"v"])
        with pytest.raises(IllegalStateError, match="READY"):
            await producer.commit()
        with pytest.raises(IllegalStateError, match="READY"):
            await producer.send_offsets(OFFSETS, GROUP)


async def test_two_commits_at_the_same_time_are_one_too_many(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v")
        committing = asyncio.create_task(producer.commit())
        await asyncio.sleep(0)
        for call in (producer.commit, producer.abort):
            with pytest.raises(IllegalStateError, match="while commit goes on"):
                await call()
        await committing


async def test_a_begin_beside_a_commit_says_that_the_producer_is_in_use(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v")
        committing = asyncio.create_task(producer.commit())
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateError, match=r"while commit goes on: .* is in use"):
            await producer.begin_transaction()
        await committing
        await producer.begin_transaction()


@pytest.mark.parametrize(
    ("method", "request_name", "says"),
    [
        ("init_transactions", "InitProducerId", "init_transactions was not answered; call it ag"),
        ("prepare", "PrepareTxn", "prepare was not answered; call it again, or abort"),
        ("commit", "EndTxn", r"the last commit is not known; await resolve\(\)"),
    ],
)
async def test_a_begin_after_a_call_without_an_answer_names_the_way_on(
    fake: FakeCluster, method: str, request_name: str, says: str
) -> None:
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders", QUICK)
        if method != "init_transactions":
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"v", partition=0)
        fake.then(request_name, *[LoseRequest()] * 1_000)
        with pytest.raises(SemelError):
            await getattr(producer, method)()
        with pytest.raises(IllegalStateError, match=says) as raised:
            await producer.begin_transaction()
        assert "in use" not in raised.value.message


async def test_a_send_that_waits_does_not_slip_into_the_next_transaction(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        late = asyncio.create_task(producer.send("not-there-yet", b"late"))
        await elapse(0.05)
        await producer.abort()
        await producer.begin_transaction()
        fake.create_topic("not-there-yet")
        with pytest.raises(IllegalStateError, match="has ended"):
            await late
        await producer.commit()
    assert fake.stored("not-there-yet") == []


async def test_a_closed_producer_refuses_everything(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.close()
        await producer.close()
        for call in (
            producer.init_transactions,
            producer.begin_transaction,
            producer.commit,
            producer.abort,
            producer.flush,
        ):
            with pytest.raises(ClosedError):
                await call()
        with pytest.raises(ClosedError):
            await producer.send("t", b"v")


async def test_a_flush_returns_at_once_when_the_transaction_can_only_be_aborted(
    fake: FakeCluster,
) -> None:
    """A batch on its way then may not be sent again: there is nothing to wait for."""
    fake.then("Produce", Hold(asyncio.Event()), RefusePartition(InvalidRecordError("x")))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        await elapse(0.1)
        refused = await producer.send("t", b"w", partition=1)
        with pytest.raises(InvalidRecordError):
            await refused
        async with asyncio.timeout(1):
            await producer.flush()


# -- closing ---------------------------------------------------------------------------------------


async def test_closing_aborts_an_open_transaction(fake: FakeCluster) -> None:
    async with open_client(fake) as client, client.transactional_producer("orders") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"v", partition=0)
    (end,) = ends(fake)
    assert end.result == TRANSACTION_RESULT_ABORT
    assert producer.transactional_id == "orders"


@pytest.mark.parametrize("ending", ["commit", "prepare"])
async def test_closing_aborts_a_transaction_whose_end_waits_for_its_sends(
    fake: FakeCluster, ending: str
) -> None:
    fake.then("Produce", HoldReply(asyncio.Event()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        waiting = asyncio.create_task(getattr(producer, ending)())
        await elapse(0.1)
        await producer.close()
        with pytest.raises(TransactionAbortedError) as raised:
            await waiting
    assert isinstance(raised.value.__cause__, ClosedError)
    (end,) = ends(fake)
    assert end.result == TRANSACTION_RESULT_ABORT


async def test_closing_waits_five_seconds_at_most(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=0)
        fake.down = True
        before = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - before == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize("turns", range(4))
async def test_a_request_that_an_abort_meets_before_it_has_begun_holds_up_nothing(
    fake: FakeCluster, turns: int
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=0)
        for _ in range(turns):
            await asyncio.sleep(0)
        await producer.abort()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"w", partition=0)
        await producer.commit()
    assert fake.visible("t", 0) == [b"w"]
