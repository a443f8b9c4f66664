"""Producers whose identity is of no use any more, or soon: they get another, and lose nothing."""

import pytest
from network_faults import LoseReply, LoseRequest, Refuse
from pool_harness import divide, inits, pool_of, send, send_and, visible
from producer_harness import QUICK, FakeCluster, elapse, open_client, ready

from aiosemel import ProducerOptions
from aiosemel.errors import (
    InvalidProducerTokenError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionAbortedError,
)
from semel.broker.v1.broker_pb2 import ProduceRequest
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest

EXPIRATION_S = 10
REFUSED = Refuse(InvalidProducerTokenError("the token is wrong"))


@pytest.fixture
def forgetful(fake: FakeCluster) -> FakeCluster:
    """A cluster that says how long it remembers idle transactional ids."""
    fake.transactional_id_expiration_ms = EXPIRATION_S * 1_000
    return fake


# -- transactional ids that expire ----------------------------------------------------------------


async def test_a_pool_takes_its_ids_again_after_half_of_the_expiration(
    forgetful: FakeCluster,
) -> None:
    async with pool_of(forgetful, 2) as pool:
        await send(pool, b"1")
        await elapse(EXPIRATION_S / 2 - 1)
        await send(pool, b"2")
        assert inits(forgetful) == ["orders-0", "orders-1"]
        await elapse(EXPIRATION_S / 2)
        await send(pool, b"3")
        await send(pool, b"4")
    assert inits(forgetful) == ["orders-0", "orders-1", "orders-0", "orders-1"]
    assert visible(forgetful) == {b"1", b"2", b"3", b"4"}


async def test_a_producer_that_is_in_use_keeps_its_identity(forgetful: FakeCluster) -> None:
    async with open_client(forgetful) as client:
        producer = await ready(client)
        for _ in range(20):
            async with producer.transaction() as transaction:
                await transaction.send("t", b"v", partition=0)
            await elapse(EXPIRATION_S / 2 - 1)
    assert len(forgetful.asked(InitProducerIdRequest)) == 1


async def test_transactions_that_send_nothing_keep_no_identity(forgetful: FakeCluster) -> None:
    async with open_client(forgetful) as client:
        producer = await ready(client)
        for _ in range(6):
            await elapse(1)
            async with producer.transaction():
                pass
    assert len(forgetful.asked(InitProducerIdRequest)) == 2


async def test_an_old_service_says_nothing_and_nothing_changes(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = await ready(client)
        await elapse(10**6)
        async with producer.transaction():
            pass
    assert len(fake.asked(InitProducerIdRequest)) == 1


async def test_a_renewal_without_an_answer_goes_on_with_the_next_transaction(
    forgetful: FakeCluster,
) -> None:
    async with open_client(forgetful) as client:
        producer = await ready(client, QUICK)
        await elapse(EXPIRATION_S)
        forgetful.then("InitProducerId", LoseReply(), *(LoseRequest(),) * 100)
        with pytest.raises(RequestTimedOutError):
            await producer.begin_transaction()
        forgetful.script["InitProducerId"].clear()
        async with producer.transaction() as transaction:
            await transaction.send("t", b"v", partition=0)
    assert forgetful.visible("t") == [b"v"]
    assert {question.init_number for question in forgetful.asked(InitProducerIdRequest)} == {1, 2}


async def test_a_renewal_fences_no_successor(forgetful: FakeCluster) -> None:
    async with pool_of(forgetful, 1) as pool:
        await elapse(EXPIRATION_S)
        forgetful.then("InitProducerId", Refuse(ProducerFencedError("a newer one")))
        with pytest.raises(ProducerFencedError, match="another process"):
            await send(pool, b"v")
        assert isinstance(pool.error, ProducerFencedError)


async def test_a_renewal_keeps_what_is_prepared(forgetful: FakeCluster) -> None:
    async with open_client(forgetful) as client:
        producer = await ready(client)
        await producer.begin_transaction()
        await producer.send("t", b"v", partition=0)
        prepared = await producer.prepare()
        await elapse(EXPIRATION_S)
        await producer.begin_transaction()
        await producer.complete_prepared(prepared, commit=True)
        await producer.abort()
    assert [*forgetful.prepared.completed.values()] == [True]
    assert [question.keep_prepared for question in forgetful.asked(InitProducerIdRequest)] == [
        False,
        True,
    ]


# -- tokens whose secret is gone ------------------------------------------------------------------


async def test_records_of_a_plain_producer_are_stored_under_another_id(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"1", partition=0)
        fake.then("Produce", REFUSED)
        await producer.send_and_wait("t", b"2", partition=0)
        await producer.send_and_wait("t", b"3", partition=1)
    assert fake.stored("t", 0) == [b"1", b"2"]
    assert fake.stored("t", 1) == [b"3"]
    assert len(fake.asked(InitProducerIdRequest)) == 2


async def test_records_in_flight_keep_their_order(fake: FakeCluster) -> None:
    values = [b"%d" % each for each in range(8)]
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(batch_size_bytes=17))
        await producer.send_and_wait("t", b"first", partition=0)
        fake.then("Produce", *(REFUSED,) * 5)
        for value in values:
            await producer.send("t", value, partition=0)
        await producer.flush()
    assert fake.stored("t", 0) == [b"first", *values]


async def test_a_token_that_stays_wrong_ends_a_send_but_not_its_producer(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        fake.then("Produce", *(REFUSED,) * 3)
        with pytest.raises(InvalidProducerTokenError, match="the token is wrong"):
            await client.producer().send_and_wait("t", b"1", partition=0)
        assert len(fake.asked(ProduceRequest)) == 3
        await client.producer().send_and_wait("t", b"2", partition=0)
    assert fake.stored("t", 0) == [b"2"]


async def test_a_transaction_aborts_and_the_next_one_has_another_token(fake: FakeCluster) -> None:
    async with pool_of(fake, 1) as pool:
        fake.then("Produce", REFUSED)
        with pytest.raises(TransactionAbortedError, match="the token is wrong"):
            await send(pool, b"1")
        await send(pool, b"2")
        with pytest.raises(ZeroDivisionError):
            await send_and(pool, b"3", divide)
        await send(pool, b"4")
    assert visible(fake) == {b"2", b"4"}
    assert inits(fake) == ["orders-0", "orders-0"]
