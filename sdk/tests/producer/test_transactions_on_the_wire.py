"""Transactions as the services see them: which requests go out, when, and with what."""

import asyncio

import pytest
from network_faults import Hold, HoldReply, LoseReply, LoseRequest, Refuse
from producer_harness import (
    GROUP,
    OFFSETS,
    QUICK,
    FakeCluster,
    begun,
    elapse,
    ends,
    open_client,
    values,
)

from aiosemel import (
    ProducerOptions,
    TopicPartition,
)
from aiosemel.errors import (
    AbortableTransactionError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    IllegalStateError,
    InvalidConfigError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    NotCoordinatorError,
    RequestTimedOutError,
    SemelError,
    StaleMemberEpochError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnknownMemberIdError,
)
from semel.broker.v1.broker_pb2 import ProduceRequest
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_ABORT, TRANSACTION_RESULT_COMMIT
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1.group_pb2 import TxnOffsetCommitRequest

# -- the ordinary way ------------------------------------------------------------------------------


async def test_records_of_a_transaction_are_visible_together(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        for partition in range(4):
            await producer.send("t", b"v", partition=partition)
        assert fake.visible("t", 0) == []
        await producer.commit()
    assert [fake.visible("t", partition) for partition in range(4)] == [[b"v"]] * 4


async def test_a_commit_names_its_participants_once_c190(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_offsets(OFFSETS, GROUP)
        for partition in (2, 0, 2):
            await producer.send("t", b"v", partition=partition)
        await producer.commit()
    (end,) = ends(fake)
    assert (end.transactional_id, end.producer_epoch) == ("orders", 0)
    assert end.result == TRANSACTION_RESULT_COMMIT
    (topic,) = end.participants.topics
    assert (topic.topic_id, list(topic.partitions)) == (fake.topics["t"], [2, 0])
    assert list(end.participants.group_ids) == ["g"]
    assert end.wait == transactions.WAIT_FOR_DECIDED


async def test_a_transaction_that_lasts_registers_its_participants_together(
    fake: FakeCluster,
) -> None:
    released = asyncio.Event()
    fake.then("Produce", Hold(released))
    async with open_client(fake) as client:
        producer = await begun(client, ProducerOptions(registration_delay_ms=0))
        for partition in (0, 1):
            await producer.send("t", b"v", partition=partition)
        await producer.send_offsets(OFFSETS, GROUP)
        await elapse(0.01)
        released.set()
        await producer.commit()
    (partitions,) = fake.asked(transactions.AddPartitionsToTxnRequest)
    (group,) = fake.asked(transactions.AddOffsetsToTxnRequest)
    assert [list(topic.partitions) for topic in partitions.topics] == [[0, 1]]
    assert group.group_id == "g"


async def test_a_transaction_that_ends_soon_is_never_registered(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client, ProducerOptions(registration_delay_ms=60_000))
        await producer.send("t", b"v", partition=0)
        await producer.send_offsets(OFFSETS, GROUP)
        await producer.commit()
    assert not {"AddPartitionsToTxn", "AddOffsetsToTxn"} & set(fake.names())
    assert fake.visible("t", 0) == [b"v"]


async def test_every_transaction_has_an_epoch_of_its_own_c203(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        for number in range(3):
            if number:
                await producer.begin_transaction()
            await producer.send("t", b"v", partition=0)
            await producer.commit()
    batches = fake.log("t", 0).batches
    assert [(b.producer_epoch, b.base_sequence) for b in batches] == [(0, 0), (1, 0), (2, 0)]
    assert all(batch.transactional for batch in batches)
    assert {request.transactional_id for request in fake.asked(ProduceRequest)} == {"orders"}


async def test_a_transaction_that_sent_nothing_ends_without_a_request_c191(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.commit()
        await producer.begin_transaction()
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"never drained", partition=0)
        await producer.abort()
        await producer.begin_transaction()
        await producer.send("t", b"v", partition=0)
        await producer.commit()
    assert len(ends(fake)) == 1
    assert fake.visible("t", 0) == [b"v"]


async def test_an_abort_names_all_that_was_sent_to(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_and_wait("t", b"v", partition=3)
        delivery = await producer.send("t", b"never sent", partition=1)
        await producer.abort()
        with pytest.raises(TransactionAbortedError):
            await delivery
    (end,) = ends(fake)
    assert end.result == TRANSACTION_RESULT_ABORT
    assert [list(topic.partitions) for topic in end.participants.topics] == [[3]]
    assert fake.visible("t", 3) == []


async def test_an_abort_does_not_wait_for_a_broker_that_hangs(fake: FakeCluster) -> None:
    fake.then("Produce", Hold(asyncio.Event()))
    async with open_client(fake) as client:
        producer = await begun(client)
        delivery = await producer.send("t", b"v", partition=0)
        await elapse(0.1)
        before = asyncio.get_running_loop().time()
        await producer.abort()
        assert asyncio.get_running_loop().time() - before < 0.1
        with pytest.raises(TransactionAbortedError):
            delivery.result()
        await producer.begin_transaction()
        await producer.send("t", b"w", partition=0)
        await producer.commit()
    assert fake.visible("t", 0) == [b"w"]


async def test_a_commit_flushes_at_once_c211(fake: FakeCluster) -> None:
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = await begun(client)
        fake.then("Produce", HoldReply(released))
        await producer.send("t", b"1", partition=0)
        await elapse(0.1)
        await producer.send("t", b"2", partition=1)
        committing = asyncio.create_task(producer.commit())
        await elapse(0.1)
        assert fake.stored("t", 1) == [b"2"], "it waited for the request before"
        assert ends(fake) == [], "EndTxn went before all was acknowledged (C-190)"
        released.set()
        await committing
    assert len(ends(fake)) == 1


async def test_a_commit_can_wait_until_it_is_visible(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders")
        await producer.init_transactions(wait_until_visible=False)
        async with producer.transaction(wait_until_visible=True) as txn:
            await txn.send("t", b"v")
    (init,) = fake.asked(transactions.InitProducerIdRequest)
    assert init.wait == transactions.WAIT_FOR_DECIDED
    assert [end.wait for end in ends(fake)] == [transactions.WAIT_FOR_COMPLETE]


async def test_columns_go_into_a_transaction(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_columns("t", values(1_000), partition=0)
        await producer.flush()
        assert len(fake.stored("t", 0)) == 1_000
        await producer.commit()
    assert fake.visible("t", 0) == values(1_000)


# -- init ------------------------------------------------------------------------------------------


async def test_init_names_the_caller(fake: FakeCluster) -> None:
    fake.then("InitProducerId", LoseReply(), Refuse(NotCoordinatorError("x")))
    async with open_client(fake) as client:
        one = client.transactional_producer("orders", ProducerOptions(transaction_timeout_ms=5))
        await one.init_transactions()
        two = client.transactional_producer("orders")
        await two.init_transactions()
    first, *repeats, other = fake.asked(transactions.InitProducerIdRequest)
    assert repeats == [first, first], "a repeat takes nothing from a successor"
    assert (first.transaction_timeout_ms, first.init_number) == (5, 1)
    assert first.wait == transactions.WAIT_FOR_COMPLETE
    assert other.instance_id != first.instance_id
    assert fake.transactional["orders"].epoch == 1


async def test_init_can_be_called_again_after_a_time_out_c011(fake: FakeCluster) -> None:
    fake.down = True
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders", QUICK)
        for _ in range(2):
            with pytest.raises(RequestTimedOutError):
                await producer.init_transactions()
        with pytest.raises(IllegalStateError, match="INITIALIZING"):
            await producer.begin_transaction()
        fake.down = False
        await producer.init_transactions()
        await producer.begin_transaction()
    numbers = [r.init_number for r in fake.asked(transactions.InitProducerIdRequest)]
    assert set(numbers) == {1}


async def test_a_refused_init_ends_the_producer(fake: FakeCluster) -> None:
    fake.then("InitProducerId", Refuse(InvalidTransactionTimeoutError("too long")))
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders")
        with pytest.raises(InvalidTransactionTimeoutError):
            await producer.init_transactions()
        with pytest.raises(SemelError, match="this producer can only be closed: too long"):
            await producer.begin_transaction()


async def test_an_empty_transactional_id_is_refused(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidConfigError, match="transactional_id is empty"):
            client.transactional_producer("")


# -- offsets ---------------------------------------------------------------------------------------


async def test_offsets_carry_member_and_metadata_c010(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_offsets(OFFSETS, GROUP)
        await producer.commit()
    (request,) = fake.asked(TxnOffsetCommitRequest)
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "m", 4)
    (topic,) = request.topics
    assert [(p.partition, p.committed_offset, p.metadata) for p in topic.partitions] == [
        (0, 5, ""),
        (1, 7, "mine"),
    ]


async def test_offset_commits_of_a_transaction_are_counted(fake: FakeCluster) -> None:
    fake.then("TxnOffsetCommit", LoseReply(), None, LoseRequest())
    async with open_client(fake) as client:
        producer = await begun(client)
        await asyncio.gather(*(producer.send_offsets(OFFSETS, GROUP) for _ in range(3)))
        await producer.commit()
        await producer.begin_transaction()
        await producer.send_offsets(OFFSETS, GROUP)
        await producer.commit()
    sequences = [[sequence for sequence, _ in fake.offsets[1, epoch, "g"]] for epoch in range(2)]
    assert sequences == [[0, 1, 2], [0]]


async def test_offsets_that_cannot_be_do_not_count(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        for wrong in (-1 << 64, 1 << 63):
            with pytest.raises(InvalidRequestError, match=f"offset is {wrong}, not 0 to 92"):
                await producer.send_offsets({TopicPartition("in", 0): wrong}, GROUP)
        await producer.send_offsets(OFFSETS, GROUP)
        await producer.commit()
    assert [request.base_sequence for request in fake.asked(TxnOffsetCommitRequest)] == [0]


async def test_no_offsets_are_no_request(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client)
        await producer.send_offsets({}, GROUP)
        await producer.commit()
    assert fake.asked(TxnOffsetCommitRequest) == []
    assert ends(fake) == []


@pytest.mark.parametrize(
    "error",
    [
        UnknownMemberIdError("x"),
        FencedMemberEpochError("x"),
        StaleMemberEpochError("x"),
        GroupIdNotFoundError("x"),
        TransactionAbortableError("x"),
        InvalidProducerEpochError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_refused_offsets_make_the_transaction_abortable_c202(
    fake: FakeCluster, error: SemelError
) -> None:
    fake.then("TxnOffsetCommit", Refuse(error))
    async with open_client(fake) as client:
        producer = await begun(client)
        with pytest.raises(type(error)):
            await producer.send_offsets(OFFSETS, GROUP)
        with pytest.raises(AbortableTransactionError):
            await producer.send("t", b"v")
        with pytest.raises(TransactionAbortedError):
            await producer.commit()
        await producer.abort()
        await producer.begin_transaction()
        await producer.send_offsets(OFFSETS, GROUP)
        await producer.commit()
    assert [(end.result, list(end.participants.group_ids)) for end in ends(fake)] == [
        (TRANSACTION_RESULT_ABORT, ["g"]),
        (TRANSACTION_RESULT_COMMIT, ["g"]),
    ]


async def test_offsets_without_an_answer_make_the_transaction_abortable_c011(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        fake.then("TxnOffsetCommit", *[LoseReply()] * 100)
        with pytest.raises(RequestTimedOutError):
            await producer.send_offsets(OFFSETS, GROUP)
        with pytest.raises(TransactionAbortedError):
            await producer.commit()
        await producer.abort()


async def test_a_commit_waits_for_offsets_under_way(fake: FakeCluster) -> None:
    released = asyncio.Event()
    fake.then("TxnOffsetCommit", HoldReply(released))
    async with open_client(fake) as client:
        producer = await begun(client)
        sending = asyncio.create_task(producer.send_offsets(OFFSETS, GROUP))
        await elapse(0.1)
        committing = asyncio.create_task(producer.commit())
        await elapse(0.1)
        assert ends(fake) == []
        released.set()
        await asyncio.gather(sending, committing)
    assert len(ends(fake)) == 1


async def test_offsets_that_wait_do_not_slip_into_the_next_transaction(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await begun(client, QUICK)
        fake.then("TxnOffsetCommit", Hold(asyncio.Event()))
        first = asyncio.create_task(producer.send_offsets(OFFSETS, GROUP))
        await elapse(0.01)
        second = asyncio.create_task(producer.send_offsets(OFFSETS, GROUP))
        await elapse(0.01)
        await producer.abort()
        await producer.begin_transaction()
        fake.then("TxnOffsetCommit", *[Refuse(FencedMemberEpochError("x"))] * 3)
        for task in (first, second):
            with pytest.raises((IllegalStateError, FencedMemberEpochError)):
                await task
        await producer.send("t", b"v", partition=0)
        await producer.commit()
    assert fake.visible("t", 0) == [b"v"]
