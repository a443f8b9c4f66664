"""Preparing, completing, and the outcome that a successor learns."""

import asyncio

import pytest
from network_faults import Hold, HoldReply, LoseReply, LoseRequest, Refuse, RefusePartition
from producer_harness import (
    GROUP,
    OFFSETS,
    QUICK,
    FakeCluster,
    begun,
    elapse,
    ends,
    open_client,
    ready,
)

from aiosemel import PreparedTransactionId, TransactionOutcome, TransactionState
from aiosemel.errors import (
    ApplicationRecoverableError,
    ClosedError,
    IllegalStateError,
    InvalidRequestError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionAbortedError,
)
from semel.coordinator.v1 import transactions_pb2 as transactions

FIRST = PreparedTransactionId(transactional_id="orders", producer_id=1, producer_epoch=0)


def completions(fake: FakeCluster) -> list[transactions.CompletePreparedTxnRequest]:
    return fake.asked(transactions.CompletePreparedTxnRequest)


# -- the name ------------------------------------------------------------------------------------


@pytest.mark.parametrize("transactional_id", ["orders", "a:b:", ":", "ä 1"])
def test_a_name_is_read_as_it_was_written(transactional_id: str) -> None:
    name = PreparedTransactionId(
        transactional_id=transactional_id, producer_id=2**60, producer_epoch=7
    )
    assert PreparedTransactionId.parse(str(name)) == name


@pytest.mark.parametrize("text", ["", "1:2", "1:2:", "x:2:orders", "1:-2:orders", "orders"])
def test_a_malformed_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="does not name a prepared transaction"):
        PreparedTransactionId.parse(text)


# -- preparing -----------------------------------------------------------------------------------


async def test_prepare_names_what_acknowledged_and_begins_the_next_epoch(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v", partition=1)
        await producer.send_offsets(OFFSETS, GROUP)
        prepared = await producer.prepare()
        assert prepared == FIRST
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
        await producer.complete_prepared(prepared, commit=True)
    (request,) = fake.asked(transactions.PrepareTxnRequest)
    (topic,) = request.participants.topics
    assert list(topic.partitions) == [1]
    assert list(request.participants.group_ids) == ["g"]
    assert (completions(fake)[0].prepared_epoch, completions(fake)[0].producer_epoch) == (0, 2)
    assert fake.prepared.completed == {(1, 0): True}
    assert fake.visible("t", 0) == [b"w"]


async def test_a_transaction_that_sent_nothing_is_still_prepared(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        assert await producer.prepare() == FIRST
        await producer.complete_prepared(FIRST, commit=False)
    assert fake.prepared.completed == {(1, 0): False}


@pytest.mark.parametrize("fault", [LoseReply(), LoseRequest()])
async def test_what_is_lost_is_asked_again(
    fake: FakeCluster, fault: LoseReply | LoseRequest
) -> None:
    fake.then("PrepareTxn", fault)
    fake.then("CompletePreparedTxn", fault)
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v")
        prepared = await producer.prepare()
        await producer.complete_prepared(prepared, commit=True, wait_until_visible=True)
    first, second = fake.asked(transactions.PrepareTxnRequest)
    assert first == second
    first_completion, second_completion = completions(fake)
    assert first_completion == second_completion
    assert first_completion.wait == transactions.WAIT_FOR_COMPLETE


async def test_a_block_that_prepares_does_nothing_at_its_end(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        async with producer.transaction() as transaction:
            await transaction.send("t", b"v")
            prepared = await transaction.prepare()
        assert transaction.outcome is TransactionOutcome.PREPARED
        second = producer.transaction()

        async def fail_when_prepared() -> None:
            async with second:
                await second.prepare()
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await fail_when_prepared()
        assert second.outcome is TransactionOutcome.PREPARED
    assert prepared == FIRST
    assert not ends(fake)


async def test_an_unacknowledged_send_cannot_be_prepared(fake: FakeCluster) -> None:
    fake.then("Produce", RefusePartition(OutOfOrderSequenceNumberError("x")))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v")
        with pytest.raises(TransactionAbortedError):
            await producer.prepare()
        with pytest.raises(TransactionAbortedError):
            await producer.prepare()
        await producer.abort()
    assert not fake.asked(transactions.PrepareTxnRequest)


async def test_no_prepare_goes_out_before_all_sends_are_acknowledged(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send("t", b"v")
        preparing = asyncio.create_task(producer.prepare())
        await elapse(0.05)
        assert not fake.asked(transactions.PrepareTxnRequest)
        with pytest.raises(IllegalStateError, match="while prepare goes on"):
            await producer.abort()
        released.set()
        assert await preparing == FIRST


# -- what goes wrong -----------------------------------------------------------------------------


async def test_a_prepare_without_answer_may_be_asked_again(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("PrepareTxn", *[HoldReply(released)] * 4)
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        await producer.send("t", b"v")
        with pytest.raises(RequestTimedOutError):
            await producer.prepare()
        with pytest.raises(IllegalStateError, match="PREPARING_TRANSACTION"):
            await producer.commit()
        fake.script["PrepareTxn"].clear()
        assert await producer.prepare() == FIRST


@pytest.mark.parametrize("sends", [0, 1])
async def test_a_prepare_without_answer_may_be_given_up(fake: FakeCluster, sends: int) -> None:
    """Also if nothing was sent: the coordinator may have ended the epoch."""
    released = asyncio.Event()
    fake.then("PrepareTxn", *[HoldReply(released)] * 4)
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        for _ in range(sends):
            await producer.send("t", b"v")
        with pytest.raises(RequestTimedOutError):
            await producer.prepare()
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"w")
        await producer.commit()
    aborted, committed = ends(fake)
    assert (aborted.producer_epoch, committed.producer_epoch) == (0, 1)


async def test_what_is_being_prepared_is_not_registered_any_more(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("PrepareTxn", Hold(released))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        preparing = asyncio.create_task(producer.prepare())
        await elapse(1)
        released.set()
        await preparing
    assert not fake.asked(transactions.AddPartitionsToTxnRequest)


@pytest.mark.parametrize(
    ("held", "fault", "requests"),
    [("PrepareTxn", HoldReply, 1), ("Produce", Hold, 0)],
    ids=["it has gone out", "it has not gone out"],
)
async def test_a_prepare_that_is_cancelled_aborts(
    fake: FakeCluster, held: str, fault: type[Hold | HoldReply], requests: int
) -> None:
    fake.then(held, fault(asyncio.Event()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send("t", b"v")
        preparing = asyncio.create_task(producer.prepare())
        await elapse(0.05)
        preparing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await preparing
        await producer.begin_transaction()
    (aborted,) = ends(fake)
    assert aborted.producer_epoch == 0
    assert len(fake.asked(transactions.PrepareTxnRequest)) == requests


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("released_after", [0, 0.0005, 0.01])
async def test_nothing_is_prepared_that_closing_aborts(
    fake: FakeCluster, released_after: float, *, lost: bool
) -> None:
    """Whatever PrepareTxn is answered, before or after the abort: an abort was sent."""
    released = asyncio.Event()
    never = Refuse(InvalidTxnStateError("ended otherwise", outcome="ABORTED"))
    fake.then("PrepareTxn", *([LoseReply(), never] if lost else [HoldReply(released)]))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        preparing = asyncio.create_task(producer.prepare())
        await elapse(0.05)
        closing = asyncio.create_task(producer.close())
        await elapse(released_after)
        released.set()
        await closing
        with pytest.raises(TransactionAbortedError) as raised:
            await preparing
    assert isinstance(raised.value.__cause__, ClosedError)
    assert len(ends(fake)) == 1


async def test_a_prepare_that_is_cancelled_after_closing_has_aborted_is_cancelled(
    fake: FakeCluster,
) -> None:
    fake.then("PrepareTxn", HoldReply(asyncio.Event()))
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        preparing = asyncio.create_task(producer.prepare())
        await elapse(0.05)
        await producer.close()
        preparing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await preparing
    assert len(ends(fake)) == 1


async def test_a_transaction_that_timed_out_is_not_prepared(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v")
        fake.time_out("orders")
        with pytest.raises(TransactionAbortedError, match="TIMED_OUT"):
            await producer.prepare()
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"w")
        await producer.prepare()
    assert list(fake.prepared.waiting) == [(1, 1)]


async def test_a_fenced_producer_prepares_and_completes_nothing(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        prepared = await producer.prepare()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"v")
        fake.supersede("orders")
        with pytest.raises(ProducerFencedError):
            await producer.complete_prepared(prepared, commit=True)
        for _ in range(2):
            with pytest.raises(TransactionAbortedError) as caught:
                await producer.prepare()
            assert isinstance(caught.value.__cause__, ProducerFencedError)


async def test_an_answer_that_makes_no_sense_ends_the_producer(fake: FakeCluster) -> None:
    fake.then("PrepareTxn", Refuse(InvalidTxnStateError("x", outcome="COMMITTED")))
    async with open_client(fake) as client:
        producer = await begun(client)
        with pytest.raises(InvalidTxnStateError):
            await producer.prepare()
        with pytest.raises(ApplicationRecoverableError):
            await producer.begin_transaction()


# -- successors and others -----------------------------------------------------------------------


async def test_a_successor_is_told_what_it_has_to_complete(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.prepare()
        await producer.begin_transaction()
        await producer.prepare()
        successor = client.transactional_producer("orders")
        kept = await successor.init_transactions(keep_prepared=True)
        assert [each.producer_epoch for each in kept] == [0, 1]
        for each in kept:
            await successor.complete_prepared(each, commit=each.producer_epoch == 0)
    assert fake.prepared.completed == {(1, 0): True, (1, 1): False}


async def test_a_successor_that_does_not_ask_aborts_them(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        await (await begun(client)).prepare()
        assert await client.transactional_producer("orders").init_transactions() == ()
    assert fake.prepared.completed == {(1, 0): False}


async def test_anybody_may_complete_by_the_admin_client(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        prepared = await (await begun(client)).prepare()
        await client.admin().complete_prepared(prepared, commit=True)
        with pytest.raises(InvalidTxnStateError):
            await client.admin().complete_prepared(
                prepared, commit=False, operator="ada", reason="its host is lost"
            )
    silent, told = completions(fake)
    assert not silent.HasField("producer_epoch")
    assert not silent.HasField("operator")
    assert (told.operator.name, told.operator.reason) == ("ada", "its host is lost")


async def test_the_admin_client_lists_what_is_prepared(fake: FakeCluster) -> None:
    listing = transactions.TransactionListing(
        transactional_id="orders", producer_id=1, state=transactions.TRANSACTION_STATE_PREPARED
    )
    response = transactions.ListTransactionsResponse(transactions=[listing])
    fake.canned["coordinator:1", "ListTransactions"] = response
    async with open_client(fake) as client:
        assert await client.admin().list_prepared_transactions() == (FIRST,)
        (listed,) = await client.admin().list_transactions()
        assert listed.state is TransactionState.PREPARED
    assert list(fake.asked(transactions.ListTransactionsRequest)[0].states) == [
        transactions.TRANSACTION_STATE_PREPARED
    ]


async def test_another_id_s_transaction_is_not_completed_by_mistake(fake: FakeCluster) -> None:
    other = PreparedTransactionId(transactional_id="other", producer_id=1, producer_epoch=0)
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders")
        with pytest.raises(IllegalStateError):
            await producer.complete_prepared(FIRST, commit=True)
        await producer.init_transactions()
        with pytest.raises(InvalidRequestError, match="not prepared under 'orders'"):
            await producer.complete_prepared(other, commit=True)
    assert not completions(fake)
